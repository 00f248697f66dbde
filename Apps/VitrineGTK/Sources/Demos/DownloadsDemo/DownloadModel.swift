import CGTK
import DemoSupport
import Foundation
import VitrineCore
import VitrineDownloads
import VitrinePipeline

/// The downloads and their states.
@MainActor
final class DownloadModel {
    let service = ImagePipeline(.memoryLean)
    /// The downloads, in the order of their start.
    private(set) var downloads: [Download] = []
    private(set) var statuses: [String: DownloadStatus] = [:]
    /// The folder of new downloads.
    var directory: String
    /// Called when downloads are added or removed.
    var onList: (@MainActor () -> Void)?
    /// Called when the state of a download changes.
    var onStatus: (@MainActor (DownloadStatus) -> Void)?
    /// The message of the last failure.
    var onProblem: (@MainActor (String) -> Void)?
    private let manager: DownloadManager
    private let addresses: [String]
    private var following: Task<Void, Never>?

    init(_ arguments: DemoArguments) {
        var configuration = DownloadManager.Configuration()
        configuration.identifier = "vitrine-downloads-demo"
        directory = arguments["--to"] ?? Self.downloadsFolder
        configuration.directory = directory
        if let directory = arguments["--state"] { configuration.journalDirectory = directory }
        if arguments.has("--agent") { configuration.mode = .agent }
        if let rate = arguments["--rate"].flatMap({ Int($0) }) { configuration.maximumRate = ByteCount(rate * 1000) }
        manager = DownloadManager(configuration)
        addresses = arguments.rest
    }

    /// Resumes the downloads of earlier runs, and starts those of the command line.
    func open() async {
        await reload()
        for address in addresses { await add(address) }
        following = Task { [weak self, updates = manager.updates] in
            for await status in updates { self?.take(status) }
        }
    }

    /// The folder for downloads of the user's desktop.
    private static var downloadsFolder: String {
        g_get_user_special_dir(G_USER_DIRECTORY_DOWNLOAD).map { String(cString: $0) }
            ?? path(NSHomeDirectory(), "Downloads")
    }

    /// Starts a download into ``directory``.
    ///
    /// - Returns: false if it was refused, after a call of ``onProblem``.
    @discardableResult
    func add(_ address: String) async -> Bool {
        let isStarted = await perform {
            guard let url = URL(string: address) else {
                throw DownloadError.invalidURL(address, reason: "it is not a URL")
            }
            var request = DownloadRequest(url)
            request.directory = self.directory
            try await self.manager.start(request)
        }
        await reload()
        return isStarted
    }

    /// Performs the action of a download's button.
    func toggle(_ id: String) async {
        guard let download = downloads.first(where: { $0.id == id }), let state = statuses[id]?.state else { return }
        await perform {
            switch state {
            case .waiting, .running, .delayed: try await download.pause()
            case .paused: try await download.resume()
            case .failed, .cancelled: try await download.retry()
            case .completed: break
            }
        }
    }

    /// Removes a download from the list.
    func remove(_ id: String) async {
        guard let download = downloads.first(where: { $0.id == id }) else { return }
        await perform { try await download.remove() }
        await reload()
    }

    /// Stops all downloads, for the next run.
    func close() async {
        following?.cancel()
        await manager.close()
    }

    private func reload() async {
        await perform {
            self.downloads = try await self.manager.restore()
            for download in self.downloads { self.statuses[download.id] = download.status }
            self.onList?()
        }
    }

    private func take(_ status: DownloadStatus) {
        let isNew = statuses[status.id] == nil
        statuses[status.id] = status
        if isNew { Task { await reload() } }
        onStatus?(status)
    }

    /// - Returns: false after a failure.
    @discardableResult
    private func perform(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch {
            onProblem?(failureText(error))
            return false
        }
    }
}
