#if canImport(Darwin) && !os(macOS)
import Darwin
import Foundation
import VitrineCore
import VitrineNetwork

/// The events of a background session, until a download reads them.
///
/// The session may report before the list of downloads has been read, and without a manager. A loaded file is moved to
/// ``files`` within the call, because the system deletes it after that.
final class TransferInbox: Broadcast {
    /// A download that waits for its file.
    struct Run: Sendable {
        /// The address without credentials.
        let url: String
        let progress: TransferProgress
    }

    struct State: BroadcastState {
        /// The task of each download.
        var tasks: [String: any BackgroundTask] = [:]
        /// The numbers of tasks that were stopped here. Their later events are ignored.
        var stopped: Set<Int> = []
        /// The results of ended tasks.
        var ends: [String: Result<Void, NetworkError>] = [:]
        /// The downloads that wait for their tasks.
        var runs: [String: Run] = [:]
        /// The downloads that ended since the system was last told that all events are processed.
        var arrived: Set<String> = []
        /// The number of times the session has reported all events, and the number of those that were answered.
        var deliveries = 0, answered = 0
        var version = 0
        var isClosed: Bool { false }
        var waiters = BroadcastWaiters()

        /// Whether a task is the current one of a download.
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

    /// - Parameter data: The resume data, if there is any.
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

    /// Keeps a complete file if its response is a success.
    private func keep(_ location: URL, of id: String, _ response: URLResponse?) throws(NetworkError) {
        guard let response = response as? HTTPURLResponse, let url = response.url else {
            throw .invalidResponse(url: "", reason: "it is not an HTTP response")
        }
        let head = HTTPResponseHead(response, at: url)
        guard (200..<300).contains(head.status) else {
            throw .status(url: SourceURL.withoutCredentials(url.absoluteString), head)
        }
        do throws(FileError) {
            let field = head.headers["Content-Disposition"]
            try files.keep(location.path(percentEncoded: false), of: id, named: field)
        } catch {
            throw .file(error)
        }
    }

    private static func failure(_ error: any Error, _ run: Run?) -> NetworkError {
        let (url, received) = (run?.url ?? "", run?.progress.current.received ?? 0)
        let failure = NetworkError(error, url: url, received: received > 0 ? received : nil)
        // The user or the system has cancelled it, and not this program. It may be retried.
        guard case .cancelled = failure else { return failure }
        return .truncated(url: url, received: ByteCount(received), reason: "the system stopped the transfer")
    }

    // MARK: The end of all events

    /// Returns the ended downloads once the session has reported all events of the time when the program did not run.
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

/// The files of a background session's downloads: complete files that wait for their verification, the names that their
/// servers proposed, and resume data. All calls block.
struct BackgroundFiles: Sendable {
    private enum Kind: String, CaseIterable {
        /// A complete file.
        case loaded
        /// Its field `Content-Disposition`.
        case named
        /// Data to resume with.
        case resume
    }

    let directory: String

    init(_ configuration: DownloadManager.Configuration) {
        directory = FilePath.join(
            configuration.journalDirectory, FileName.name(for: configuration.identifier) + ".transfers")
    }

    private func path(_ kind: Kind, _ id: String) -> String {
        FilePath.join(directory, FileName.name(for: id) + "." + kind.rawValue)
    }

    /// Keeps a complete file.
    func keep(_ location: String, of id: String, named disposition: String?) throws(FileError) {
        try Directory.create(directory)
        // Before the file, whose presence means that everything is complete.
        if let disposition {
            try AtomicFile.write(Array(disposition.utf8), to: path(.named, id), permissions: 0o600)
        } else {
            unlink(path(.named, id))
        }
        try FileRename.move(location, to: path(.loaded, id), replaces: true)
    }

    /// Keeps resume data. Without it the file is loaded from the beginning.
    func keep(_ data: Data, of id: String) {
        do throws(FileError) {
            try Directory.create(directory)
            try AtomicFile.write([UInt8](data), to: path(.resume, id), permissions: 0o600)
        } catch {
            Log.logger("downloads").warning("Resume data was not kept", metadata: ["error": "\(error)"])
        }
    }

    /// Returns the complete file, if there is one.
    ///
    /// - Returns: nil for the part if another process has it open.
    func loaded(_ record: DownloadRecord) throws(FileError) -> (part: PartialFile?, head: HTTPResponseHead)? {
        let path = path(.loaded, record.id)
        guard FilePath.exists(path) else { return nil }
        var headers = HTTPHeaders()
        if let field = read(.named, record.id) {
            headers.append("Content-Disposition", String(decoding: field, as: UTF8.self))
        }
        return (
            try PartialFile.openWhole(path, identity: record.id),
            HTTPResponseHead(status: 200, headers: headers, url: record.url))
    }

    /// Returns the resume data and deletes it, because it can be used once.
    func takeResumeData(of id: String) -> Data? {
        defer { unlink(path(.resume, id)) }
        return read(.resume, id).map { Data($0) }
    }

    private func read(_ kind: Kind, _ id: String) -> [UInt8]? {
        do throws(FileError) { return try FileContents.read(path(kind, id)) } catch { return nil }
    }

    /// Deletes the files of a download.
    func remove(_ id: String) {
        for kind in Kind.allCases { unlink(path(kind, id)) }
    }

    /// Deletes the files of downloads that are not on the list.
    func removeOthers(than ids: Set<String>) {
        let names = Set(ids.map { FileName.name(for: $0) })
        do throws(FileError) {
            for name in try Directory.names(ofFilesIn: directory) {
                let stem = name.lastIndex(of: ".").map { String(name[..<$0]) } ?? name
                if !names.contains(stem) { unlink(FilePath.join(directory, name)) }
            }
        } catch {
            // The directory does not exist, so there are no files.
        }
    }
}
#endif
