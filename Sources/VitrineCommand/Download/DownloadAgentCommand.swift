import ArgumentParser
import VitrineCore
import VitrineDownloads

/// `vitrine download agent`.
struct DownloadAgentCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agent",
        abstract: "Looks at the process that downloads, ends it, or has it started with every login.",
        subcommands: [Status.self, Stop.self, Install.self])

    /// `vitrine download agent status`.
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Says whether it runs, and what it does; exit status 1 if it does not run.")

        @Flag(help: "A JSON object instead of text.")
        var json = false

        func run() async throws {
            guard let info = try await DownloadAgent().info() else {
                Output.row(json ? "{}" : "It does not run.")
                throw ExitCode(1)
            }
            Output.row(
                json
                    ? JSONLine.text(info)
                    : "Process \(info.process): \(info.downloads) downloads, \(info.unsettled) of them under way.")
        }
    }

    /// `vitrine download agent stop`.
    struct Stop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends it. What is under way goes on with the next one.")

        func run() async throws {
            if try await !DownloadAgent().stop() { Output.row("It does not run.") }
        }
    }

    /// `vitrine download agent install`.
    struct Install: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Writes a systemd user unit that starts it with every login, and keeps it.")

        @Flag(help: "Print the unit instead.")
        var printOnly = false

        func run() async throws {
            let agent = DownloadAgent()
            if printOnly { return Output.contents(PathText.bytes(of: try agent.systemdUnit())) }
            let path = try await agent.install()
            Output.name(path)
            Output.row("To begin now: systemctl --user enable --now \(DownloadAgent.unitName)")
            Output.row("To go on without a login: loginctl enable-linger")
        }
    }
}
