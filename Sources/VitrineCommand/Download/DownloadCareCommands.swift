import ArgumentParser
import VitrineCore
import VitrineDownloads

/// The common part of the subcommands that act on downloads.
protocol DownloadCare: AsyncParsableCommand {
    var selection: DownloadSelection { get }
    func care(for download: Download) async throws(DownloadError)
}

extension DownloadCare {
    func run() async throws {
        let manager = DownloadCommand.manager()
        for download in try await selection.downloads(of: manager) { try await care(for: download) }
        await manager.close()
    }
}

/// `vitrine download pause`.
struct DownloadPauseCommand: DownloadCare {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Pauses downloads.")
    @OptionGroup var selection: DownloadSelection
    func care(for download: Download) async throws(DownloadError) { try await download.pause() }
}

/// `vitrine download resume`.
struct DownloadResumeCommand: DownloadCare {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Resumes paused downloads.")
    @OptionGroup var selection: DownloadSelection
    func care(for download: Download) async throws(DownloadError) { try await download.resume() }
}

/// `vitrine download cancel`.
struct DownloadCancelCommand: DownloadCare {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancels downloads and deletes their received bytes.")
    @OptionGroup var selection: DownloadSelection
    func care(for download: Download) async throws(DownloadError) { try await download.cancel() }
}

/// `vitrine download retry`.
struct DownloadRetryCommand: DownloadCare {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Retries downloads that failed, or that wait for their next attempt.")
    @OptionGroup var selection: DownloadSelection
    func care(for download: Download) async throws(DownloadError) { try await download.retry() }
}

/// `vitrine download remove`.
struct DownloadRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Removes downloads from the list.",
        discussion: "Running downloads are cancelled, and their received bytes deleted. Complete files stay.")

    @Argument(help: ArgumentHelp("Identifiers, or their unique beginnings. (default: none)", valueName: "id"))
    var ids: [String] = []

    @Flag(help: "Remove all downloads that completed, failed or were cancelled.")
    var ended = false

    func validate() throws {
        guard ended != !ids.isEmpty else { throw ValidationError("remove needs either identifiers or --ended") }
    }

    func run() async throws {
        let manager = DownloadCommand.manager()
        if ended {
            try await manager.removeSettled()
        } else {
            var selection = DownloadSelection()
            selection.ids = ids
            for download in try await selection.downloads(of: manager) { try await download.remove() }
        }
        await manager.close()
    }
}

/// `vitrine download reset`.
struct DownloadResetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Replaces a damaged list of downloads by an empty one.",
        discussion: """
            The damaged list is renamed to a name with .damaged- and the time, and its path is printed. Files and \
            parts of files stay. A readable list does not change; see 'vitrine download remove'.
            """)

    @Flag(help: "Use the list of 'add --no-agent' instead of the list of the agent.")
    var noAgent = false

    func run() async throws {
        let manager = noAgent ? DownloadManager() : DownloadCommand.manager()
        let path = try await manager.setListAside()
        if let path { Output.name(path) } else { Output.row("The list is not damaged.") }
        await manager.close()
    }
}

/// `vitrine download agent`.
struct DownloadAgentCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agent",
        abstract: "Controls the process that downloads in the background.",
        subcommands: [Status.self, Stop.self, Install.self])

    /// `vitrine download agent status`.
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status",
            abstract: "Prints the state of the agent. The exit status is 1 if it does not run.")

        @Flag(help: "Print a JSON object instead of text.")
        var json = false

        func run() async throws {
            guard let info = try await DownloadAgent().info() else {
                Output.row(json ? "{}" : "The agent does not run.")
                throw ExitCode(1)
            }
            Output.row(
                json
                    ? JSONLine.text(info)
                    : "Process \(info.process): \(info.downloads) downloads, \(info.unsettled) of them unfinished.")
        }
    }

    /// `vitrine download agent stop`.
    struct Stop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "stop",
            abstract: "Stops the agent. Its downloads resume when it starts again.")

        func run() async throws {
            if try await !DownloadAgent().stop() { Output.row("The agent does not run.") }
        }
    }

    /// `vitrine download agent install`.
    struct Install: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "install",
            abstract: "Writes a systemd user unit that starts the agent at every login.")

        @Flag(help: "Print the unit instead of writing it.")
        var printOnly = false

        func run() async throws {
            let agent = DownloadAgent()
            if printOnly { return Output.contents(PathText.bytes(of: try agent.systemdUnit())) }
            let path = try await agent.install()
            Output.name(path)
            Output.row("To start it now: systemctl --user enable --now \(DownloadAgent.unitName)")
            Output.row("To run it without a login: loginctl enable-linger")
        }
    }
}
