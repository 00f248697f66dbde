import ArgumentParser
import VitrineCore
import VitrineDownloads

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine download`: downloads that outlive the program.
struct DownloadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download",
        abstract: "Downloads files in the background, and resumes interrupted downloads.",
        discussion: """
            The process vitrine-agent downloads. It continues when this command ends, and ends when its list is \
            finished. Interrupted downloads resume if the source has not changed. A file appears under its name when \
            it is complete and verified.

              vitrine download add https://example.org/video.mp4 -o video.mp4
              vitrine download watch
            """,
        subcommands: [
            DownloadAddCommand.self, DownloadListCommand.self, DownloadWatchCommand.self, DownloadWaitCommand.self,
            DownloadPauseCommand.self, DownloadResumeCommand.self, DownloadCancelCommand.self,
            DownloadRetryCommand.self, DownloadRemoveCommand.self, DownloadResetCommand.self,
            DownloadAgentCommand.self,
        ])

    /// Returns the manager of the list of the agent.
    static func manager() -> DownloadManager { DownloadManager(mode: .agent) }

    /// Returns the downloads of a list without an agent. Waits, and says so, while another program uses the list.
    static func list(of manager: DownloadManager) async throws -> [Download] {
        var isTold = false
        while true {
            do {
                return try await manager.restore()
            } catch {
                guard case .inUse(let path) = error else { throw error }
                if !isTold {
                    Diagnostics.write("waiting for another program, which uses the list of downloads at \(path)")
                    isTold = true
                }
            }
            // Nothing reports that a lock is free, and that of a killed process is free as well.
            try await Task.sleep(for: .milliseconds(100))
        }
    }
}

/// The downloads of a subcommand.
struct DownloadSelection: ParsableArguments {
    @Argument(help: ArgumentHelp("Identifiers, or their unique beginnings.", valueName: "id"))
    var ids: [String]

    /// Returns the downloads with the identifiers.
    ///
    /// - Throws: `ValidationError` for an identifier without a download, or with several.
    func downloads(of manager: DownloadManager) async throws -> [Download] {
        let all = try await manager.restore()
        return try ids.map { id in
            let found = all.filter { $0.id.hasPrefix(id.lowercased()) }
            guard let first = found.first, !id.isEmpty else {
                throw ValidationError("there is no download \(id); 'vitrine download list' lists them")
            }
            guard found.count == 1 else {
                throw ValidationError("several downloads begin with \(id); add more characters")
            }
            return first
        }
    }
}

/// `vitrine download list`.
struct DownloadListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists downloads in the order in which they run.")

    @Flag(help: "Print one JSON object per line instead of text.")
    var json = false

    func run() async throws {
        let manager = DownloadCommand.manager()
        for download in try await manager.restore() {
            if let status = download.status { DownloadReport(status).print(asJSON: json) }
        }
        await manager.close()
    }
}

/// `vitrine download watch`.
struct DownloadWatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Shows the progress of all downloads until they have finished.")

    @Flag(help: "Print a JSON object for every change.")
    var json = false

    func run() async throws {
        let manager = DownloadCommand.manager()
        let unsettled = try await manager.restore().filter { $0.status?.state.isSettled == false }
        _ = await DownloadFollower(unsettled, asJSON: json).follow()
        await manager.close()
    }
}

/// `vitrine download wait`.
struct DownloadWaitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Waits until downloads have finished.",
        discussion: "The exit status is 1 if a download failed or was cancelled.")

    @Argument(
        help: ArgumentHelp(
            "Identifiers, or their unique beginnings. (default: all unfinished downloads)", valueName: "id"))
    var ids: [String] = []

    @Flag(help: "Print a JSON object for every change.")
    var json = false

    func run() async throws {
        let manager = DownloadCommand.manager()
        let downloads: [Download]
        if ids.isEmpty {
            downloads = try await manager.restore().filter { $0.status?.state.isSettled == false }
        } else {
            var selection = DownloadSelection()
            selection.ids = ids
            downloads = try await selection.downloads(of: manager)
        }
        let failures = await DownloadFollower(downloads, asJSON: json).follow()
        await manager.close()
        if failures > 0 { throw ExitCode(1) }
    }
}
