import VitrineCore

/// Who carries downloads: the ``DownloadEngine`` of this process, or the agent.
protocol DownloadBackend: AnyObject, Sendable {
    /// How each download is, as far as that is known here.
    var board: StatusBroadcaster { get }

    /// All downloads, in the order of their turns.
    func list() async throws(DownloadError) -> [DownloadStatus]

    /// Begins a download, or finds the one of the same address.
    ///
    /// - Parameter id: Chosen by who asks: whoever asks twice, as the first answer was lost, gets one.
    func start(_ request: DownloadRequest, id: String) async throws(DownloadError) -> DownloadStatus

    /// Does something to a download, and returns when that is in the journal.
    func perform(_ command: DownloadCommand, on id: String) async throws(DownloadError)

    /// Changes how many bytes all may take, and how many run.
    func set(_ limits: DownloadLimits) async throws(DownloadError)

    /// Returns when nothing runs or waits any more.
    func settled() async throws(DownloadError)

    /// What a download failed with, more exactly than its status tells; nil if nobody knows.
    func error(of id: String) -> DownloadError?

    /// Why there will be no more on the board; nil if nothing went wrong.
    var ending: DownloadError? { get }

    /// Stops what this process does. Returns at once.
    func shutDown()

    /// Stops what this process does, and returns when others can go on with it.
    func close() async
}

/// What can be done to a download.
package enum DownloadCommand: Sendable, Hashable, Codable {
    case pause, resume, cancel, retry, remove
    case setPriority(Priority)
    /// Puts it before another one; nil for behind all.
    case move(before: String?)
    case setMaximumRate(ByteCount?)
}

/// What holds for all downloads together.
package enum DownloadLimits: Sendable, Hashable, Codable {
    case count(Int, perHost: Int)
    case rate(ByteCount?)
}

extension DownloadBackend {
    var ending: DownloadError? { nil }

    /// The path of a download's file, when it is there.
    func file(of id: String) async throws(DownloadError) -> String {
        var version = 0
        while let news = await board.next(after: version, of: id) {
            version = news.version
            guard let status = news.status ?? news.removedCompletion else { throw .unknown(id: id) }
            switch status.state {
            case .completed: return status.path
            case .cancelled: throw .cancelled
            case .failed: throw error(of: id) ?? status.failure.map { .reported($0) } ?? .cancelled
            case .waiting, .running, .delayed, .paused: break
            }
        }
        throw Task.isCancelled ? .cancelled : ending ?? .cancelled
    }
}
