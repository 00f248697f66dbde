#if canImport(Darwin) && !os(macOS)
import Foundation
import VitrineCore
import VitrineNetwork

/// Carries downloads by a background `URLSession`, which continues while the program is suspended and after the system
/// has ended it. Type-checked, not run on a device.
///
/// A task has the identifier of its download as its description. In the next run of the program, the engine runs every
/// unsettled download on its list. Each run finds a complete file, a running task, resume data, or nothing. If the user
/// ends the program, the system stops its tasks, and the next start resumes them from the resume data.
final class BackgroundTransfers: DownloadCarrier {
    let inbox: TransferInbox
    private let session: any BackgroundSession

    init(_ session: any BackgroundSession, _ inbox: TransferInbox) {
        self.session = session
        self.inbox = inbox
    }

    /// The sessions of this program. Each identifier may have only one session, which therefore outlives its managers.
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
            // A task without a description belongs to another version of the program.
            let id = task.taskDescription ?? ""
            let isWanted = wanted.contains(id)
                && inbox.withState { state in
                    if state.tasks[id] == nil { state.tasks[id] = task }
                    return state.isCurrent(task, id)
                }
            // For example, it was paused just before the program ended.
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
            try await run.watched(progress) { await self.transfer(record, progress: progress, engine: run.engine) }
        } catch {
            // Resume data of one source is useless for another.
            if case .network = error, !record.request.mirrors.isEmpty { await discard(record) }
            throw error
        }
        guard let file = try await loaded(record) else {
            throw .network(.truncated(url: Self.address(record), received: .zero, reason: "the file is missing"))
        }
        return file
    }

    /// Returns the complete file, if there is one.
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
        _ record: DownloadRecord, progress: TransferProgress, engine: DownloadEngine
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

    /// Starts a task, unless the download has one.
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

    /// Stops the task of a download and keeps its resume data.
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

    func setPriority(_ priority: RequestPriority, of id: String) {
        inbox.withState { $0.tasks[id] }?.priority = Self.priority(priority)
    }

    // MARK: Conversions for the session

    private static func priority(_ priority: RequestPriority) -> Float {
        Float(priority.rawValue) / Float(RequestPriority.veryHigh.rawValue)
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
    /// Forgets the task of a download.
    fileprivate mutating func forget(_ id: String) {
        tasks[id] = nil
        ends[id] = nil
        runs[id] = nil
    }
}
extension DownloadManager {
    /// Processes the events for which the system wakes the program after its downloads have ended. Type-checked, not
    /// run on a device.
    ///
    /// ```swift
    /// func application(
    ///     _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
    ///     completionHandler: @escaping () -> Void
    /// ) {
    ///     manager.handleEvents(forSession: identifier, completionHandler: completionHandler)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - identifier: The identifier of the session.
    ///   - completionHandler: Called on the main actor once the session has reported all events and the loaded files
    ///     are verified and in place. It is called at once if the list of downloads cannot be read.
    /// - Returns: Whether the session belongs to this manager: one of ``Mode/agent`` with this
    ///   ``Configuration/identifier``. The handler is not called otherwise.
    @MainActor @discardableResult
    public func handleEvents(forSession identifier: String, completionHandler: @escaping () -> Void) -> Bool {
        guard identifier == configuration.identifier, let engine = lease.backend as? DownloadEngine,
            let transfers = engine.carrier as? BackgroundTransfers
        else { return false }
        Task {
            do throws(DownloadError) {
                try await restore()
                await engine.finish(transfers.inbox.delivered())
            } catch {
                engine.log.error("The list of downloads cannot be read", metadata: ["error": "\(error)"])
            }
            completionHandler()
        }
        return true
    }
}
#endif
