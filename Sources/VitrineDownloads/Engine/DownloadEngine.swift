#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineNetwork

/// Keeps the list of downloads and runs them.
///
/// The state of a download changes under the lock. Subscribers see changes in that order, and each record has a
/// revision, so that the journal keeps the newest one. A run reads its pending action when it ends.
final class DownloadEngine: DownloadBackend {
    /// The action to take after the task of a download has ended.
    enum PendingAction: Sendable {
        case pause, cancel
        /// Hides the download from all calls but the one that removes it.
        case remove
    }

    struct Entry: Sendable {
        var record: DownloadRecord
        /// The task that uses its part file: a run, or its deletion. Never two at once.
        var task: Task<Void, Never>?
        var pendingAction: PendingAction?
        /// Waits for the time of the next attempt.
        var timer: Task<Void, Never>?
        let limit: RateLimit
        /// Whether it is in the journal. It does not start before that.
        var isNoted: Bool
        /// The number of attempts in a row without progress.
        var failures = 0
        /// Whether the bytes that the last attempt received were lost, because their body cannot be resumed.
        var hasLostBytes = false
        /// The last error in this run of the program.
        var error: DownloadError?
        /// Whether it waits for a network, and the number of attempts in a row that found none.
        var isOffline = false, offlineTries = 0
        /// Whether the process may have ended because of it.
        var isSuspect = false
        /// The number of bytes that was last stored beside its starts.
        var furthest = 0
        /// Whether its task did not end after a cancellation. Nothing waits for it any more.
        var isAbandoned = false

        init(_ record: DownloadRecord, isNoted: Bool) {
            self.record = record
            self.isNoted = isNoted
            limit = RateLimit(record.request.maximumRate?.bytes)
        }

        mutating func cancelRetryTimer() {
            timer?.cancel()
            timer = nil
            record.status.retryDate = nil
        }
    }

    struct State: Sendable {
        var entries: [String: Entry] = [:]
        /// The downloads that can only be listed and removed.
        var damaged: [String: Journal.DamagedRecord] = [:]
        var journal: Journal?
        /// Whether another process has begun a list in the place of a deleted one. It lacks these downloads.
        var isListTaken = false
        var limit: Int
        var limitPerHost: Int
        var isShutDown = false
        /// The number of runs that have ended, but whose end is not stored yet.
        var unstoredEnds = 0
        /// The revision of the last changed record.
        var revision = 0
        var watch: NetworkWatch?

        /// Returns the entry of an identifier, unless it is being removed.
        func entry(_ id: String) -> Entry? {
            guard let entry = entries[id], entry.pendingAction != .remove else { return nil }
            return entry
        }

        /// All records of the list, in no order.
        var records: [DownloadRecord] { entries.values.filter { $0.pendingAction != .remove }.map(\.record) }

        /// Whether no download runs, waits or is delayed, and the journal has the end of each.
        var isSettled: Bool {
            unstoredEnds == 0 && entries.values.allSatisfy { $0.task == nil && $0.record.status.state.isSettled }
        }
    }

    let configuration: DownloadManager.Configuration
    let broadcaster = StatusBroadcaster()
    let loader: NetworkLoader
    /// Transfers files in place of the loader; nil on most systems.
    let carrier: (any DownloadCarrier)?
    let rateLimit: RateLimit
    /// The threads of transfers. One that hangs may delay other transfers, but no call.
    let transfers = BlockingExecutor(threads: 8, name: "vitrine-load")
    let state: Locked<State>
    let log = Log.logger("downloads")
    private let opening = SingleFlight<String, Bool>()

    /// - Parameter carrier: Receives all downloads at once, unless a call limits their number.
    init(_ configuration: DownloadManager.Configuration, carrier: (any DownloadCarrier)? = nil) {
        self.configuration = configuration
        self.carrier = carrier
        rateLimit = RateLimit(configuration.maximumRate?.bytes)
        let client: any HTTPTransport = configuration.client ?? Self.makeClient()
        var network = configuration.network
        // The attempts of a download are counted here alone. Otherwise each of them would send several requests.
        network.retries.limit = 0
        network.retries.resumesAfterProgress = true
        loader = NetworkLoader(LimitedLoader(base: client), network, wallClock: configuration.clock)
        let (limit, limitPerHost) = carrier == nil ? (configuration.limit, configuration.limitPerHost) : (.max, .max)
        state = Locked(State(limit: max(1, limit), limitPerHost: max(1, limitPerHost)))
    }

    private static func makeClient() -> any HTTPTransport {
        #if os(Linux)
        CurlLoader()
        #elseif canImport(Darwin)
        URLSessionLoader()
        #else
        preconditionFailure("This platform needs an explicit HTTP client.")
        #endif
    }

    // MARK: Opening

    /// Reads the journal, once.
    ///
    /// - Throws: ``DownloadError/cancelled`` after ``shutDown()``.
    func open() async throws(DownloadError) {
        let isOpen = try state.withLock { state throws(DownloadError) in
            if state.isShutDown { throw .cancelled }
            return state.journal != nil
        }
        if isOpen { return }
        do {
            _ = try await opening.value(for: "journal") { _ in
                guard self.state.withLock({ $0.journal == nil }) else { return true }
                let journal = try await Journal.open(
                    directory: self.configuration.journalDirectory, identifier: self.configuration.identifier)
                let content = try await journal.content()
                await self.carrier?.adopt(content.records)
                for record in self.adopt(content, journal) { try await self.save(record, endsRun: true) }
                self.startWaiting()
                return true
            }
        } catch let error as DownloadError {
            throw error
        } catch {
            throw .cancelled
        }
    }

    /// - Returns: The changed records.
    private func adopt(_ content: Journal.Content, _ journal: Journal) -> [DownloadRecord] {
        let changed = state.withLock { state -> [DownloadRecord]? in
            guard !state.isShutDown else { return nil }
            state.journal = journal
            var changed: [DownloadRecord] = []
            for record in content.records {
                var entry = Entry(record, isNoted: true)
                state.revision = max(state.revision, record.revision)
                if entry.settle(after: content.starts[record.id]) {
                    state.revision &+= 1
                    entry.record.revision = state.revision
                    changed.append(entry.record)
                }
                state.entries[record.id] = entry
                broadcaster.show(entry.record.status, isFresh: false)
            }
            for record in content.damaged {
                state.damaged[record.status.id] = record
                broadcaster.show(record.status, isFresh: false)
            }
            state.watch = NetworkWatch { [weak self] in self?.networkChanged() }
            return changed
        }
        if changed == nil { journal.release() }
        return changed ?? []
    }

    /// Adds a download of another process to the list, unless it has one with its identifier.
    func adopt(_ record: DownloadRecord) async throws(DownloadError) {
        try await open()
        guard DownloadRecord.isIdentifier(record.id), record.status.id == record.id else {
            throw .unknown(id: record.id)
        }
        let added = state.withLock { state -> DownloadRecord? in
            guard state.entries[record.id] == nil else { return nil }
            var entry = Entry(record.sanitized(), isNoted: false)
            _ = entry.settle(after: nil)
            return keep(entry, in: &state)
        }
        guard let added else { return }
        try await save(added)
        state.withLock { $0.entries[record.id]?.isNoted = true }
        startWaiting()
    }

    func list() async throws(DownloadError) -> [DownloadStatus] {
        try await open()
        let (records, damaged) = state.withLock { ($0.records, $0.damaged.values.map(\.status)) }
        return damaged.sorted { $0.id < $1.id } + records.sorted(by: Self.precedes).map(\.status)
    }

    static func precedes(_ one: DownloadRecord, _ other: DownloadRecord) -> Bool {
        if one.request.priority != other.request.priority { return one.request.priority > other.request.priority }
        return (one.position, one.id) < (other.position, other.id)
    }

    // MARK: Closing

    /// Stops all downloads. The next manager that reads the journal resumes them.
    func shutDown() {
        let (entries, watch) = state.withLock { state in
            state.isShutDown = true
            return (Array(state.entries.values), state.watch.take())
        }
        withExtendedLifetime(watch) {}
        for entry in entries {
            entry.task?.cancel()
            entry.timer?.cancel()
        }
    }

    func close() async {
        shutDown()
        for task in state.withLock({ $0.entries.values.compactMap(\.task) }) { await task.value }
        await endsAreStored()
        if let journal = state.withLock({ $0.journal.take() }) {
            if await journal.isLost {
                do throws(DownloadError) { try await saveAll(in: journal) } catch {
                    let isTaken = if case .inUse = error { true } else { false }
                    state.withLock { $0.isListTaken = isTaken }
                }
            }
            await journal.close()
        }
        broadcaster.close()
    }

    /// The downloads that no list has after ``close()``.
    var unlisted: [DownloadRecord] { state.withLock { $0.isListTaken ? $0.records : [] } }

    /// Returns once the journal has the ends of all runs, also in a cancelled task.
    private func endsAreStored() async {
        while true {
            let version = broadcaster.version
            if state.withLock({ $0.unstoredEnds == 0 }) { return }
            // A cancelled task would not wait.
            await Task { await broadcaster.waitForChange(since: version) }.value
        }
    }

    func settled() async throws(DownloadError) {
        try await open()
        while true {
            let version = broadcaster.version
            if state.withLock({ $0.isSettled }) { return }
            await broadcaster.waitForChange(since: version)
            if Task.isCancelled || state.withLock({ $0.isShutDown }) { throw .cancelled }
        }
    }

    /// Returns once none of some downloads has a task.
    func finish(_ ids: Set<String>) async {
        while !Task.isCancelled {
            let version = broadcaster.version
            let isBusy = state.withLock { state in ids.contains { state.entries[$0]?.task != nil } }
            if !isBusy || state.withLock({ $0.isShutDown }) { return }
            await broadcaster.waitForChange(since: version)
        }
    }

    /// Whether a run ends only because this process stops. Its transfer may then continue elsewhere.
    func leavesAlone(_ id: String) -> Bool {
        state.withLock { $0.isShutDown && $0.entries[id]?.pendingAction == nil }
    }

    // MARK: Changes

    func error(of id: String) -> DownloadError? {
        state.withLock { $0.entries[id]?.error ?? ($0.damaged[id] == nil ? nil : .damagedRecord(id: id)) }
    }

    /// Changes a download and shows its status.
    ///
    /// - Parameter body: Changes the entry, and returns whether it did.
    /// - Returns: The record for the journal, or nil without a change.
    @discardableResult
    func update(_ id: String, _ body: (inout Entry) -> Bool) -> DownloadRecord? {
        state.withLock { state in
            guard var entry = state.entry(id), body(&entry) else { return nil }
            return keep(entry, in: &state)
        }
    }

    /// Stores a changed entry and shows its status. Called under the lock, which keeps the order of changes.
    func keep(_ changed: Entry, in state: inout State) -> DownloadRecord {
        var entry = changed
        state.revision &+= 1
        entry.record.revision = state.revision
        state.entries[entry.record.id] = entry
        broadcaster.show(entry.record.status)
        return entry.record
    }

    /// Stores a record in the journal, unless it has a newer one.
    ///
    /// - Parameter endsRun: Whether a run has ended regularly.
    func save(_ record: DownloadRecord, endsRun: Bool = false) async throws(DownloadError) {
        guard let journal = state.withLock({ $0.journal }) else { return }
        try await journal.save(record, endsRun: endsRun)
        if journal.takeReplacement() { try await saveAll(in: journal) }
    }

    /// Stores all downloads of this process again, because the list was deleted while it was open.
    private func saveAll(in journal: Journal) async throws(DownloadError) {
        for record in state.withLock({ $0.records }) { try await journal.save(record, endsRun: false) }
    }

    /// Runs file operations on a thread that may block.
    static func onFiles<T: Sendable>(
        _ body: @escaping @Sendable () throws(FileError) -> T
    ) async throws(DownloadError) -> T {
        do throws(FileError) { return try await BlockingExecutor.shared.run(body) } catch { throw .file(error) }
    }
}

extension DownloadEngine.Entry {
    /// Prepares a download of an earlier run of the program.
    ///
    /// - Returns: Whether it has failed.
    fileprivate mutating func settle(after starts: Journal.Starts?) -> Bool {
        record.status.speed = nil
        record.status.retryDate = nil
        guard !record.status.state.isSettled else { return false }
        // The process that ran it has ended.
        record.status.state = .waiting
        var problem: DownloadError?
        do throws(DownloadError) {
            try record.request.check()
            if record.request.directory == nil {
                throw .invalidDestination(record.status.path, reason: "the journal has no directory for it")
            }
        } catch {
            problem = error
        }
        if let starts {
            isSuspect = starts.count > 0
            furthest = starts.received
            if starts.count >= DownloadEngine.highestStarts {
                let url = SourceURL.withoutCredentials(record.request.url.absoluteString)
                problem = .endsProcess(url: url, count: starts.count)
            }
        }
        guard let problem else { return false }
        isSuspect = false
        error = problem
        record.status.state = .failed
        record.status.failure = DownloadStatus.Failure(problem)
        record.status.ended = Date()
        return true
    }
}
