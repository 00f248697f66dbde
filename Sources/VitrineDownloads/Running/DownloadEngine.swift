#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineNetwork

/// Keeps the list of downloads and lets them run in turn.
///
/// What a download is to be next is decided under the lock, at once, and shown in the same order; the journal hears of
/// it in the order of the decisions. A run looks at what is wanted of it when it ends.
final class DownloadEngine: DownloadBackend {
    /// What is wanted of a download whose task is to end.
    enum Wish: Sendable {
        case pause, cancel
        /// It is as good as gone: nobody but the task that removes it may find it any more.
        case remove
    }

    struct Entry: Sendable {
        var record: DownloadRecord
        /// What is being done with its part file: a run, or throwing it away. Never two at once.
        var task: Task<Void, Never>?
        var wish: Wish?
        /// Waits for the time of the next try.
        var alarm: Task<Void, Never>?
        let limit: RateLimit
        /// Whether it is in the journal, without which it does not begin.
        var isNoted: Bool
        /// Tries without any progress, in a row.
        var failures = 0
        /// Why it failed last, in this run of the program.
        var error: DownloadError?
        /// Whether it waits for a network.
        var isOffline = false

        init(_ record: DownloadRecord, isNoted: Bool) {
            self.record = record
            self.isNoted = isNoted
            limit = RateLimit(record.request.maximumRate?.bytes)
        }

        mutating func stopAlarm() {
            alarm?.cancel()
            alarm = nil
            record.status.retryDate = nil
        }
    }

    struct State: Sendable {
        var entries: [String: Entry] = [:]
        var journal: Journal?
        var limit: Int
        var limitPerHost: Int
        var isShutDown = false
        /// The order in which records were changed.
        var revision = 0
        var watch: NetworkWatch?

        /// The entry of an identifier, unless it is being removed.
        func entry(_ id: String) -> Entry? {
            guard let entry = entries[id], entry.wish != .remove else { return nil }
            return entry
        }

        /// All that are on the list, in no order.
        var records: [DownloadRecord] { entries.values.filter { $0.wish != .remove }.map(\.record) }

        /// Whether nothing happens and nothing will by itself.
        var isSettled: Bool {
            entries.values.allSatisfy { $0.task == nil && $0.record.status.state.isSettled }
        }
    }

    let configuration: DownloadManager.Configuration
    let board = StatusBoard()
    let loader: NetworkLoader
    /// Brings the bytes in place of the loader; nil on most systems.
    let carrier: (any DownloadCarrier)?
    let rateLimit: RateLimit
    let state: Locked<State>
    let log = Log.logger("downloads")
    private let opening = SingleFlight<String, Bool>()

    /// - Parameter carrier: Gets all downloads at once, unless somebody limits their number.
    init(_ configuration: DownloadManager.Configuration, carrier: (any DownloadCarrier)? = nil) {
        self.configuration = configuration
        self.carrier = carrier
        rateLimit = RateLimit(configuration.maximumRate?.bytes)
        let client: any DataLoading = configuration.client ?? Self.makeClient()
        loader = NetworkLoader(
            LimitedLoader(base: client), configuration.network, wallClock: configuration.clock)
        let (limit, limitPerHost) = carrier == nil ? (configuration.limit, configuration.limitPerHost) : (.max, .max)
        state = Locked(State(limit: max(1, limit), limitPerHost: max(1, limitPerHost)))
    }

    private static func makeClient() -> any DataLoading {
        #if os(Linux)
        CurlLoader()
        #elseif canImport(Darwin)
        URLSessionLoader()
        #else
        preconditionFailure("A client has to be given on this platform.")
        #endif
    }

    // MARK: Beginning

    /// Reads the journal, once.
    ///
    /// - Throws: ``DownloadError/cancelled`` after the end.
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
                let records = try await journal.records()
                await self.carrier?.adopt(records)
                self.adopt(records, journal)
                return true
            }
        } catch let error as DownloadError {
            throw error
        } catch {
            throw .cancelled
        }
    }

    private func adopt(_ records: [DownloadRecord], _ journal: Journal) {
        let isWanted = state.withLock { state in
            guard !state.isShutDown else { return false }
            state.journal = journal
            for record in records {
                var record = record
                // Whoever ran it has gone.
                if !record.status.state.isSettled { record.status.state = .waiting }
                record.status.speed = nil
                record.status.retryDate = nil
                state.entries[record.id] = Entry(record, isNoted: true)
                state.revision = max(state.revision, record.revision)
                board.show(record.status, isFresh: false)
            }
            state.watch = NetworkWatch { [weak self] in self?.networkChanged() }
            return true
        }
        if isWanted { pump() } else { journal.release() }
    }

    func list() async throws(DownloadError) -> [DownloadStatus] {
        try await open()
        return state.withLock { $0.records }.sorted(by: Self.precedes).map(\.status)
    }

    static func precedes(_ one: DownloadRecord, _ other: DownloadRecord) -> Bool {
        if one.request.priority != other.request.priority { return one.request.priority > other.request.priority }
        return (one.position, one.id) < (other.position, other.id)
    }

    // MARK: Ending

    /// Stops everything; what was running goes on when somebody reads the journal again.
    func shutDown() {
        let (entries, watch) = state.withLock { state in
            state.isShutDown = true
            return (Array(state.entries.values), state.watch.take())
        }
        withExtendedLifetime(watch) {}
        for entry in entries {
            entry.task?.cancel()
            entry.alarm?.cancel()
        }
    }

    func close() async {
        shutDown()
        for task in state.withLock({ $0.entries.values.compactMap(\.task) }) { await task.value }
        if let journal = state.withLock({ $0.journal.take() }) { await journal.close() }
        board.close()
    }

    func settled() async throws(DownloadError) {
        try await open()
        while true {
            let version = board.version
            if state.withLock({ $0.isSettled }) { return }
            await board.waitForChange(since: version)
            if Task.isCancelled || state.withLock({ $0.isShutDown }) { throw .cancelled }
        }
    }

    /// Returns when none of some downloads is being worked on.
    func finish(_ ids: Set<String>) async {
        while !Task.isCancelled {
            let version = board.version
            let isBusy = state.withLock { state in ids.contains { state.entries[$0]?.task != nil } }
            if !isBusy || state.withLock({ $0.isShutDown }) { return }
            await board.waitForChange(since: version)
        }
    }

    /// Whether a run ends only because this process stops, so that whoever else carries the download may go on.
    func leavesAlone(_ id: String) -> Bool {
        state.withLock { $0.isShutDown && $0.entries[id]?.wish == nil }
    }

    // MARK: Changes

    func error(of id: String) -> DownloadError? { state.withLock { $0.entries[id]?.error } }

    /// Changes a download, shows it, and gives its record for the journal.
    ///
    /// - Parameter body: Changes it; false for no change after all.
    /// - Returns: nil if there is no such download, or nothing changed.
    @discardableResult
    func update(_ id: String, _ body: (inout Entry) -> Bool) -> DownloadRecord? {
        state.withLock { state in
            guard var entry = state.entry(id), body(&entry) else { return nil }
            return keep(entry, in: &state)
        }
    }

    /// Takes a changed entry back and shows it, under the lock: in the order of the changes.
    func keep(_ changed: Entry, in state: inout State) -> DownloadRecord {
        var entry = changed
        state.revision += 1
        entry.record.revision = state.revision
        state.entries[entry.record.id] = entry
        board.show(entry.record.status)
        return entry.record
    }

    /// Keeps a record on disk, unless a newer one of the download was kept.
    func save(_ record: DownloadRecord) async throws(DownloadError) {
        guard let journal = state.withLock({ $0.journal }) else { return }
        try await journal.save(record)
    }

    /// Does on a thread that may block what has to do with files.
    static func onFiles<T: Sendable>(
        _ body: @escaping @Sendable () throws(FileError) -> T
    ) async throws(DownloadError) -> T {
        do throws(FileError) { return try await BlockingExecutor.shared.run(body) } catch { throw .file(error) }
    }
}
