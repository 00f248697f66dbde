import ArgumentParser
import VitrineDownloads

/// `vitrine download list`.
struct DownloadListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists downloads in the order of their turns.")

    @Flag(help: "One JSON object a line instead of text.")
    var json = false

    func run() async throws {
        let manager = DownloadCommand.manager()
        for download in try await manager.downloads {
            if let status = download.status { DownloadReport(status).print(asJSON: json) }
        }
        await manager.close()
    }
}

/// `vitrine download watch`.
struct DownloadWatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Shows how downloads come on, until nothing is under way.")

    @Flag(help: "One JSON object a line whenever something changes.")
    var json = false

    func run() async throws {
        let manager = DownloadCommand.manager()
        let unsettled = try await manager.downloads.filter { $0.status?.state.isSettled == false }
        _ = await DownloadFollower(asJSON: json).follow(unsettled)
        await manager.close()
    }
}

/// `vitrine download wait`.
struct DownloadWaitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Waits for downloads, or for all of them.",
        discussion: "Exit status 1 if one of them failed or was cancelled.")

    @Argument(help: ArgumentHelp("Identifiers, or beginnings of them that no others have.", valueName: "id"))
    var ids: [String] = []

    @Flag(help: "One JSON object a line whenever something changes.")
    var json = false

    func run() async throws {
        let manager = DownloadCommand.manager()
        let downloads: [Download]
        if ids.isEmpty {
            downloads = try await manager.downloads.filter { $0.status?.state.isSettled == false }
        } else {
            var selection = DownloadSelection()
            selection.ids = ids
            downloads = try await selection.downloads(of: manager)
        }
        let failures = await DownloadFollower(asJSON: json).follow(downloads)
        await manager.close()
        if failures > 0 { throw ExitCode(1) }
    }
}
