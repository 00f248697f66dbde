#if canImport(Darwin) && !os(macOS)
import Foundation
import VitrineCore
import VitrineNetwork

/// What a background session has reported, until somebody looks. The session may report before the list of downloads
/// has been read, and after everybody has gone: a file it has brought is taken into ``files`` within the call, as it is
/// gone after that.
final class TransferInbox: Broadcast {
    /// Somebody who waits for a file.
    struct Run: Sendable {
        /// The address, without names and passwords.
        let url: String
        let progress: TransferProgress
    }

    struct State: BroadcastState {
        /// Who brings which download.
        var tasks: [String: any BackgroundTask] = [:]
        /// The numbers of tasks that were stopped here: what the session says of them does not count any more.
        var stopped: Set<Int> = []
        /// How tasks have ended.
        var ends: [String: Result<Void, NetworkError>] = [:]
        /// Who waits for them.
        var runs: [String: Run] = [:]
        /// Downloads that came to an end since the system was last told that all is done.
        var arrived: Set<String> = []
        /// How often the session has said that it has reported everything, and how many of that have been answered.
        var deliveries = 0, answered = 0
        var version = 0
        var isClosed: Bool { false }
        var waiters = BroadcastWaiters()

        /// Whether it is this task that counts for a download.
        func isCurrent(_ task: any BackgroundTask, _ id: String) -> Bool {
            tasks[id]?.taskIdentifier == task.taskIdentifier
        }
    }

    let files: BackgroundFiles
    private let state = Locked(State())

    init(_ files: BackgroundFiles) { self.files = files }

    func withState<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    // MARK: From the session

    /// - Parameter total: Negative if it is not known.
    func wrote(_ task: any BackgroundTask, received: Int, total: Int) {
        guard let id = task.taskDescription else { return }
        let progress = state.withLock { $0.isCurrent(task, id) ? $0.runs[id]?.progress : nil }
        progress?.update { step in
            step.received = received
            step.total = total < 0 ? nil : total
        }
    }

    func finished(_ task: any BackgroundTask, at location: URL, _ response: URLResponse?) {
        guard let id = task.taskDescription, !isStopped(task) else { return }
        let end = Result { () throws(NetworkError) in try keep(location, of: id, response) }
        change { state in
            state.version += 1
            state.arrived.insert(id)
            if state.isCurrent(task, id) { state.ends[id] = end }
        }
    }

    /// - Parameter data: What to go on with, if that can be done.
    func completed(_ task: any BackgroundTask, _ error: (any Error)?, resumeData data: Data?) {
        let number = task.taskIdentifier
        guard let id = task.taskDescription, state.withLock({ $0.stopped.remove(number) }) == nil else { return }
        if let data { files.keep(data, of: id) }
        change { state in
            guard state.isCurrent(task, id), state.ends[id] == nil else { return }
            state.version += 1
            state.arrived.insert(id)
            state.ends[id] = error.map { .failure(Self.failure($0, state.runs[id])) } ?? .success(())
        }
    }

    func deliveredAll() {
        change { state in
            state.version += 1
            state.deliveries += 1
        }
    }

    private func isStopped(_ task: any BackgroundTask) -> Bool {
        let number = task.taskIdentifier
        return state.withLock { $0.stopped.contains(number) }
    }

    /// Takes a file that is whole, if it is the one that was asked for.
    private func keep(_ location: URL, of id: String, _ response: URLResponse?) throws(NetworkError) {
        guard let response = response as? HTTPURLResponse, let url = response.url else {
            throw .invalidResponse(url: "", reason: "it is not HTTP")
        }
        let head = HTTPResponseHead(response, at: url)
        guard (200..<300).contains(head.status) else {
            throw .status(url: SourceURL.withoutCredentials(url.absoluteString), head)
        }
        do throws(FileError) {
            let field = head.headers.first("Content-Disposition")
            try files.keep(location.path(percentEncoded: false), of: id, named: field)
        } catch {
            throw .file(error)
        }
    }

    private static func failure(_ error: any Error, _ run: Run?) -> NetworkError {
        let (url, received) = (run?.url ?? "", run?.progress.current.received ?? 0)
        let failure = NetworkError(error, url: url, received: received > 0 ? received : nil)
        // Not by this program: the user has ended it, or the system had enough. It may be tried again.
        guard case .cancelled = failure else { return failure }
        return .truncated(url: url, received: ByteCount(received), reason: "the system has stopped it")
    }

    // MARK: The end of all events

    /// Returns when the session has reported all that happened while the program did not run, with the downloads that
    /// came to an end.
    func delivered() async -> Set<String> {
        let seen = state.withLock { $0.answered }
        while true {
            let (isDelivered, version) = state.withLock { ($0.deliveries > seen, $0.version) }
            if isDelivered || Task.isCancelled { break }
            await waitForChange(since: version)
        }
        return state.withLock { state in
            state.answered = state.deliveries
            return state.arrived
        }
    }
}
#endif
