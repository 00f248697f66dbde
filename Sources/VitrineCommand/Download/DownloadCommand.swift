import ArgumentParser
import Foundation
import VitrineCore
import VitrineDownloads

/// `vitrine download`: downloads that outlive the program.
struct DownloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Downloads files, over as many runs and restarts as it takes.",
        discussion: """
            A process of its own, vitrine-agent, does the work: it goes on when this command ends or is killed, and \
            ends when nothing is left to do. What breaks off goes on where it was, if the source is still the same; a \
            file appears under its name when it is whole and verified.
            """,
        subcommands: [
            DownloadAddCommand.self, DownloadListCommand.self, DownloadWatchCommand.self, DownloadWaitCommand.self,
            DownloadPauseCommand.self, DownloadResumeCommand.self, DownloadCancelCommand.self,
            DownloadRetryCommand.self, DownloadRemoveCommand.self, DownloadResetCommand.self,
            DownloadAgentCommand.self,
        ])

    /// The list that the agent carries.
    static func manager() -> DownloadManager { DownloadManager(mode: .agent) }
}

/// Which downloads a command is for.
struct DownloadSelection: ParsableArguments {
    @Argument(help: ArgumentHelp("Identifiers, or beginnings of them that no others have.", valueName: "id"))
    var ids: [String]

    /// Those of a manager.
    ///
    /// - Throws: `ValidationError` for what names none, or several.
    func downloads(of manager: DownloadManager) async throws -> [Download] {
        let all = try await manager.downloads
        return try ids.map { id in
            let found = all.filter { $0.id.hasPrefix(id.lowercased()) }
            guard let first = found.first, !id.isEmpty else { throw ValidationError("there is no download \(id)") }
            guard found.count == 1 else { throw ValidationError("several downloads begin with \(id)") }
            return first
        }
    }
}
