import VitrineCore

/// Carries downloads: the ``DownloadEngine`` of this process, or the agent.
protocol DownloadBackend: AnyObject, Sendable {
    /// The known status of each download.
    var broadcaster: StatusBroadcaster { get }

    /// Returns all downloads, in the order of the queue.
    func list() async throws(DownloadError) -> [DownloadStatus]

    /// Starts a download, or returns the one of the same address.
    ///
    /// - Parameter id: Chosen by the caller: repeating a call whose reply was lost does not start a second download.
    func start(_ request: DownloadRequest, id: String) async throws(DownloadError) -> DownloadStatus

    /// Executes a command, and returns once its result is in the journal.
    func perform(_ command: DownloadCommand, on id: String) async throws(DownloadError)

    /// Changes the limits of all downloads.
    func set(_ limits: DownloadLimits) async throws(DownloadError)

    /// Returns once no download runs, waits or is delayed.
    func settled() async throws(DownloadError)

    /// Returns the error of a download, which has more detail than its status, or nil if it is not known.
    func error(of id: String) -> DownloadError?

    /// The reason why no more statuses come, or nil without an error.
    var ending: DownloadError? { get }

    /// Stops the work of this process. Returns at once.
    func shutDown()

    /// Stops the work of this process, and returns once another process can resume it.
    func close() async
}

/// A command for one download.
package enum DownloadCommand: Sendable, Hashable, Codable {
    case pause, resume, cancel, retry, remove
    case setPriority(RequestPriority)
    /// Moves the download before another one, or to the end.
    case move(before: String?)
    case setMaximumRate(ByteCount?)
}

/// A limit of all downloads together.
package enum DownloadLimits: Sendable, Hashable, Codable {
    case count(Int, perHost: Int)
    case rate(ByteCount?)
}

extension DownloadBackend {
    var ending: DownloadError? { nil }

    /// Returns the path of a download's file, once it is complete.
    func file(of id: String) async throws(DownloadError) -> String {
        var version = 0
        while let update = await broadcaster.next(after: version, of: id) {
            version = update.version
            guard let status = update.status ?? update.removedCompletion else { throw .unknown(id: id) }
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

/// Keeps the downloads of a backend running. The manager, all its handles and all readers of updates share it. Its
/// deinitialization stops the work of this process.
final class BackendLease: Sendable {
    let backend: any DownloadBackend
    private let poster = Locked<Task<Void, Never>?>(nil)

    init(_ backend: any DownloadBackend) {
        self.backend = backend
        #if !VITRINE_NO_NOTIFICATIONS
        let broadcaster = backend.broadcaster
        let task = Task { [weak self] in
            let reference = WeakLease(lease: self)
            await NotificationPoster.run(broadcaster) { reference.lease }
        }
        poster.withLock { $0 = task }
        #endif
    }

    deinit {
        poster.withLock { $0 }?.cancel()
        backend.shutDown()
    }
}

/// A reference that does not keep downloads running.
private struct WeakLease: Sendable {
    #if compiler(>=6.3)
    weak let lease: BackendLease?
    #else
    // Swift 6.2 has no `weak let` (SE-0481). Nothing assigns this but the end of the object, which is synchronised.
    nonisolated(unsafe) weak var lease: BackendLease?
    #endif
}
