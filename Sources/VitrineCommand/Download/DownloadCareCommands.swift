import ArgumentParser
import VitrineDownloads

/// What the subcommands that do something to downloads have in common.
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
        commandName: "pause", abstract: "Stops downloads where they are.")
    @OptionGroup var selection: DownloadSelection
    func care(for download: Download) async throws(DownloadError) { try await download.pause() }
}

/// `vitrine download resume`.
struct DownloadResumeCommand: DownloadCare {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Lets paused downloads go on.")
    @OptionGroup var selection: DownloadSelection
    func care(for download: Download) async throws(DownloadError) { try await download.resume() }
}

/// `vitrine download cancel`.
struct DownloadCancelCommand: DownloadCare {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Stops downloads and throws away what is there of them.")
    @OptionGroup var selection: DownloadSelection
    func care(for download: Download) async throws(DownloadError) { try await download.cancel() }
}

/// `vitrine download retry`.
struct DownloadRetryCommand: DownloadCare {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Tries downloads again that failed, or wait for the next try.")
    @OptionGroup var selection: DownloadSelection
    func care(for download: Download) async throws(DownloadError) { try await download.retry() }
}

/// `vitrine download remove`.
struct DownloadRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Takes downloads off the list.",
        discussion: "What is under way is stopped, and what is there of it thrown away. Files that are whole stay.")

    @Argument(help: ArgumentHelp("Identifiers, or beginnings of them that no others have.", valueName: "id"))
    var ids: [String] = []

    @Flag(help: "Everything that has ended, well or not.")
    var ended = false

    func validate() throws {
        guard ended != !ids.isEmpty else { throw ValidationError("name downloads, or say --ended") }
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
        abstract: "Begins an empty list if the one that is there is damaged.",
        discussion: """
            The damaged list is kept: its file gets the ending .damaged- and the time, and its new path is printed. \
            Files and parts of files stay. A list that can be read is not touched; see "vitrine download remove".
            """)

    @Flag(help: "The list of \"add --no-agent\" instead of the agent's.")
    var noAgent = false

    func run() async throws {
        let manager = noAgent ? DownloadManager() : DownloadCommand.manager()
        let path = try await manager.setListAside()
        print(path ?? "The list is not damaged.")
        await manager.close()
    }
}
