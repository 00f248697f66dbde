#if canImport(Darwin) && !os(macOS)
import Foundation
import VitrineCore
import VitrineNetwork

/// Has a background `URLSession` bring the bytes of downloads: the system goes on while the program is suspended, and
/// when it has ended it. Type-checked, not run on a device.
///
/// A task bears the identifier of its download. In the next run of the program the engine lets everything on its list
/// run that is not settled, and each run finds what there is: the whole file, the task that goes on, data to resume
/// with, or nothing. A program that its user ends by hand loses its tasks; they go on from the resume data at its next
/// start.
final class BackgroundTransfers: DownloadCarrier {
    let inbox: TransferInbox
    private let session: any BackgroundSession

    init(_ session: any BackgroundSession, _ inbox: TransferInbox) {
        self.session = session
        self.inbox = inbox
    }

    /// As there may be one session of an identifier only, it stays as long as the program, whichever managers come and
    /// go.
    private static let known = Locked<[String: BackgroundTransfers]>([:])

    static func of(_ configuration: DownloadManager.Configuration) -> BackgroundTransfers {
        known.withLock { known in
            if let transfers = known[configuration.identifier] { return transfers }
            let inbox = TransferInbox(BackgroundFiles(configuration))
            let session = SystemSession(identifier: configuration.identifier, inbox: inbox)
            let transfers = BackgroundTransfers(session, inbox)
            known[configuration.identifier] = transfers
            return transfers
        }
    }

    func adopt(_ records: [DownloadRecord]) async {
        let wanted = Set(records.filter { !$0.status.state.isSettled }.map(\.id))
        for task in await session.tasks() {
            // One without a name is of another version of the program.
            let id = task.taskDescription ?? ""
            let isWanted = wanted.contains(id)
                && inbox.withState { state in
                    if state.tasks[id] == nil { state.tasks[id] = task }
                    return state.isCurrent(task, id)
                }
            // Paused, for example, just before the program was ended.
            if !isWanted { await cancel(task, of: id) }
        }
        let ids = Set(records.filter { ![.completed, .cancelled].contains($0.status.state) }.map(\.id))
        let files = inbox.files
        await BlockingExecutor.shared.run { files.removeOthers(than: ids) }
    }

    // MARK: One download

    func bring(_ run: DownloadRun) async throws(DownloadError) -> LoadedFile {
        let record = run.record
        if let file = try await loaded(record) { return file }
        let progress = TransferProgress()
        do throws(DownloadError) {
            try await run.watched(progress) { await self.transfer(record, progress, run.engine) }
        } catch {
            // What is there of one source is no beginning of another's.
            if case .network = error, !record.request.mirrors.isEmpty { await discard(record) }
            throw error
        }
        guard let file = try await loaded(record) else {
            throw .network(.truncated(url: Self.address(record), received: .zero, reason: "there is no file"))
        }
        return file
    }

    /// The file, if it has come.
    private func loaded(_ record: DownloadRecord) async throws(DownloadError) -> LoadedFile? {
        let files = inbox.files
        let found = try await DownloadEngine.onFiles { () throws(FileError) in try files.loaded(record) }
        guard let found else { return nil }
        inbox.withState { $0.forget(record.id) }
        guard let part = found.part else {
            throw .network(.busy(url: Self.address(record), path: record.status.path))
        }
        return LoadedFile(part: part, head: found.head, restarts: 0)
    }

    private func transfer(
        _ record: DownloadRecord, _ progress: TransferProgress, _ engine: DownloadEngine
    ) async -> Result<Void, NetworkError> {
        let id = record.id
        await begin(record, progress)
        while !Task.isCancelled {
            let (end, version) = inbox.withState { ($0.ends[id], $0.version) }
            if let end {
                inbox.withState { $0.forget(id) }
                return end
            }
            await inbox.waitForChange(since: version)
        }
        inbox.withState { $0.runs[id] = nil }
        if !engine.leavesAlone(id) { await stop(id) }
        return .failure(.cancelled(url: Self.address(record)))
    }

    /// Sees to it that there is a task.
    private func begin(_ record: DownloadRecord, _ progress: TransferProgress) async {
        let id = record.id
        let isUnderWay = inbox.withState { state in
            state.runs[id] = TransferInbox.Run(url: Self.address(record), progress: progress)
            if state.ends[id] == nil { state.arrived.remove(id) }
            return state.tasks[id] != nil
        }
        if isUnderWay { return }
        let files = inbox.files
        let data = await BlockingExecutor.shared.run { files.takeResumeData(of: id) }
        let task = data.map { session.task(resuming: $0) } ?? session.task(with: Self.request(record))
        task.taskDescription = id
        task.priority = Self.priority(record.request.priority)
        inbox.withState { $0.tasks[id] = task }
        task.resume()
    }

    /// Stops what brings a download, and keeps what to go on with.
    private func stop(_ id: String) async {
        if let task = inbox.withState({ $0.tasks[id] }) { await cancel(task, of: id) }
    }

    private func cancel(_ task: any BackgroundTask, of id: String) async {
        let number = task.taskIdentifier
        inbox.withState { state in
            state.stopped.insert(number)
            if state.tasks[id]?.taskIdentifier == number { state.forget(id) }
        }
        let data = await withCheckedContinuation { continuation in
            task.cancel(byProducingResumeData: { continuation.resume(returning: $0) })
        }
        let files = inbox.files
        if let data { await BlockingExecutor.shared.run { files.keep(data, of: id) } }
    }

    func discard(_ record: DownloadRecord) async {
        await stop(record.id)
        let files = inbox.files
        await BlockingExecutor.shared.run { files.remove(record.id) }
    }

    func setPriority(_ priority: Priority, of id: String) {
        inbox.withState { $0.tasks[id] }?.priority = Self.priority(priority)
    }

    // MARK: In the session's words

    private static func priority(_ priority: Priority) -> Float {
        Float(priority.rawValue) / Float(Priority.veryHigh.rawValue)
    }

    private static func request(_ record: DownloadRecord) -> URLRequest {
        var result = URLRequest(url: record.url)
        for field in record.request.headers { result.addValue(field.value, forHTTPHeaderField: field.name) }
        result.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        return result
    }

    private static func address(_ record: DownloadRecord) -> String {
        SourceURL.withoutCredentials(record.url.absoluteString)
    }
}

extension TransferInbox.State {
    /// What was known of a download's task does not count any more.
    fileprivate mutating func forget(_ id: String) {
        tasks[id] = nil
        ends[id] = nil
        runs[id] = nil
    }
}
#endif
