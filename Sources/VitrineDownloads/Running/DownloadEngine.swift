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
        /// Whether it waits for a network, and after how many tries in a row.
        var isOffline = false, offlineTries = 0
        /// Whether the process may have ended because of it.
        var isSuspect = false
        /// How far it had come when that was last noted beside its starts.
        var furthest = 0
        /// Whether its task does not end though it was told to, so that nobody waits for it any more.
        var isAbandoned = false

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
    let board = StatusBroadcaster()
    let loader: NetworkLoader
    /// Brings the bytes in place of the loader; nil on most systems.
    let carrier: (any DownloadCarrier)?
    let rateLimit: RateLimit
    /// The threads of transfers: one that blocks, or never comes to its end, holds up others but no answer.
    let transfers = BlockingExecutor(threads: 8, name: "vitrine-load")
    let state: Locked<State>
    let log = Log.logger("downloads")
    private let opening = SingleFlight<String, Bool>()

    /// - Parameter carrier: Gets all downloads at once, unless somebody limits their number.
    init(_ configuration: DownloadManager.Configuration, carrier: (any DownloadCarrier)? = nil) {
        self.configuration = configuration
        self.carrier = carrier
        rateLimit = RateLimit(configuration.maximumRate?.bytes)
        let client: any HTTPTransport = configuration.client ?? Self.makeClient()
        loader = NetworkLoader(
            LimitedLoader(base: client), configuration.network, wallClock: configuration.clock)
        let (limit, limitPerHost) = carrier == nil ? (configuration.limit, configuration.limitPerHost) : (.max, .max)
        state = Locked(State(limit: max(1, limit), limitPerHost: max(1, limitPerHost)))
    }

    private static func makeClient() -> any HTTPTransport {
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
                let content = try await journal.content()
                await self.carrier?.adopt(content.records)
                for record in self.adopt(content, journal) { try await self.save(record, endsRun: true) }
                self.pump()
                return true
            }
        } catch let error as DownloadError {
            throw error
        } catch {
            throw .cancelled
        }
    }

    /// - Returns: What changed by that.
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
                board.show(entry.record.status, isFresh: false)
            }
            state.watch = NetworkWatch { [weak self] in self?.networkChanged() }
            return changed
        }
        if changed == nil { journal.release() }
        return changed ?? []
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
        state.revision &+= 1
        entry.record.revision = state.revision
        state.entries[entry.record.id] = entry
        board.show(entry.record.status)
        return entry.record
    }

    /// Keeps a record on disk, unless a newer one of the download was kept.
    ///
    /// - Parameter endsRun: Whether a run has ended as it should.
    func save(_ record: DownloadRecord, endsRun: Bool = false) async throws(DownloadError) {
        guard let journal = state.withLock({ $0.journal }) else { return }
        try await journal.save(record, endsRun: endsRun)
    }

    /// Does on a thread that may block what has to do with files.
    static func onFiles<T: Sendable>(
        _ body: @escaping @Sendable () throws(FileError) -> T
    ) async throws(DownloadError) -> T {
        do throws(FileError) { return try await BlockingExecutor.shared.run(body) } catch { throw .file(error) }
    }
}

extension DownloadEngine.Entry {
    /// Makes what an earlier run of the program left something that can be gone on with, or says why not.
    ///
    /// - Returns: Whether it was given up.
    fileprivate mutating func settle(after starts: Journal.Starts?) -> Bool {
        record.status.speed = nil
        record.status.retryDate = nil
        guard !record.status.state.isSettled else { return false }
        // Whoever ran it has gone.
        record.status.state = .waiting
        var problem: DownloadError?
        do throws(DownloadError) {
            try record.request.check()
            if record.request.directory == nil {
                throw .invalidDestination(record.status.path, reason: "the journal names no directory")
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
