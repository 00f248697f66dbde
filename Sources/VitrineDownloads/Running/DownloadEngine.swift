#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineNetwork

/// Keeps the list of downloads and lets them run in turn.
///
/// What a download is to be next is decided under the lock, at once; the journal hears of it in the order of the
/// decisions. A run looks at what is wanted of it when it ends.
final class DownloadEngine: Sendable {
    /// What is wanted of a download that runs.
    enum Stop: Sendable {
        case pause, cancel, remove
        /// The program ends: it is gone on with by the next one.
        case quit
    }

    struct Entry: Sendable {
        var record: DownloadRecord
        /// The task that runs it.
        var task: Task<Void, Never>?
        var stop: Stop?
        /// Waits for the time of the next try.
        var alarm: Task<Void, Never>?
        let limit: RateLimit
        /// Tries without any progress, in a row.
        var failures = 0
        /// Why it failed last, in this run of the program.
        var error: DownloadError?
        /// Whether it waits for a network.
        var isOffline = false

        init(_ record: DownloadRecord) {
            self.record = record
            limit = RateLimit(record.request.maximumRate?.bytes)
        }

        var host: String { record.request.url.host()?.lowercased() ?? "" }
    }

    struct State: Sendable {
        var entries: [String: Entry] = [:]
        var journal: Journal?
        var limit: Int
        var limitPerHost: Int
        var isShutDown = false
        var settledWaiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var cancelledWaiters: Set<Int> = []
        var nextWaiter = 0
        /// The order in which records were changed.
        var revision = 0
    }

    let configuration: DownloadManager.Configuration
    let board = StatusBoard()
    let loader: NetworkLoader
    let rateLimit: RateLimit
    let state: Locked<State>
    let log = Log.logger("downloads")
    private let opening = SingleFlight<String, Bool>()
    private let watch = Locked<NetworkWatch?>(nil)
    let lease = Locked<WeakLease?>(nil)

    init(_ configuration: DownloadManager.Configuration) {
        self.configuration = configuration
        rateLimit = RateLimit(configuration.maximumRate?.bytes)
        let client: any DataLoading = configuration.client ?? Self.makeClient()
        loader = NetworkLoader(LimitedLoader(base: client), configuration.network)
        state = Locked(State(limit: max(1, configuration.limit), limitPerHost: max(1, configuration.limitPerHost)))
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

    // MARK: Opening

    /// Reads the journal, once.
    func open() async throws(DownloadError) {
        guard state.withLock({ $0.journal == nil }) else { return }
        do {
            _ = try await opening.value(for: "journal") { _ in
                guard self.state.withLock({ $0.journal == nil }) else { return true }
                let journal = try await Journal.open(
                    directory: self.configuration.journalDirectory, identifier: self.configuration.identifier)
                self.adopt(try await journal.records(), journal)
                return true
            }
        } catch let error as DownloadError {
            throw error
        } catch {
            throw .cancelled
        }
    }

    private func adopt(_ records: [DownloadRecord], _ journal: Journal) {
        let statuses = state.withLock { state -> [DownloadStatus] in
            guard !state.isShutDown else { return [] }
            state.journal = journal
            for record in records {
                var record = record
                // Whoever ran it has gone.
                if !record.status.state.isSettled { record.status.state = .waiting }
                record.status.speed = nil
                record.status.retryDate = nil
                state.entries[record.id] = Entry(record)
                state.revision = max(state.revision, record.revision)
            }
            return records.compactMap { state.entries[$0.id]?.record.status }
        }
        for status in statuses { board.show(status) }
        watch.withLock { watch in
            watch = NetworkWatch { [weak self] in self?.networkChanged() }
        }
        pump()
    }

    /// All downloads, in the order of their turns.
    var all: [DownloadRecord] { state.withLock { $0.entries.values.map(\.record) }.sorted(by: Self.precedes) }

    static func precedes(_ one: DownloadRecord, _ other: DownloadRecord) -> Bool {
        if one.request.priority != other.request.priority { return one.request.priority > other.request.priority }
        return (one.position, one.id) < (other.position, other.id)
    }

    /// Stops everything; what was running goes on when somebody restores it.
    func shutDown() {
        let entries = state.withLock { state in
            state.isShutDown = true
            for id in state.entries.keys where state.entries[id]?.task != nil { state.entries[id]?.stop = .quit }
            return Array(state.entries.values)
        }
        for entry in entries {
            entry.task?.cancel()
            entry.alarm?.cancel()
        }
        watch.withLock { $0 = nil }
    }

    // MARK: Starting

    /// - Returns: The identifier.
    func start(_ request: DownloadRequest) async throws(DownloadError) -> String {
        try Self.check(request)
        try await open()
        if let known = state.withLock({ state in
            state.entries.values.first { $0.record.request.url == request.url && !$0.record.status.state.isOver }
        }) {
            if known.record.status.state == .paused { try await resume(known.record.id) }
            return known.record.id
        }
        let directory = request.directory ?? configuration.directory
        try await Self.onFiles { () throws(FileError) in
            try Directory.create(directory, mode: 0o777)
            if request.existing == .keep, let name = request.name {
                let path = FilePath.join(directory, name)
                guard !Self.exists(path) else { throw .alreadyExists(path: path) }
            }
        }
        let record = state.withLock { state in
            let record = Self.record(request, in: directory, &state)
            state.entries[record.id] = Entry(record)
            return record
        }
        board.show(record.status)
        do {
            try await save(record)
        } catch {
            state.withLock { $0.entries[record.id] = nil }
            board.remove(record.id)
            throw error
        }
        pump()
        return record.id
    }

    private static func record(
        _ request: DownloadRequest, in directory: String, _ state: inout State
    ) -> DownloadRecord {
        var request = request
        // Absolute, so that it means the same in the next run, wherever that is started.
        request.directory = directory
        let proposed = request.name ?? DownloadName.name(for: request.url)
        let taken = Set(
            state.entries.values.filter { !$0.record.status.state.isOver }.map(\.record.status.path))
        // Two that end alike are not to take each other's place.
        var number = 1
        while taken.contains(FilePath.join(directory, DownloadName.numbered(proposed, number))) { number += 1 }
        if number > 1 { request.name = DownloadName.numbered(proposed, number) }
        let id = UUID().uuidString.lowercased()
        let position = (state.entries.values.map(\.record.position).max() ?? 0) + 1
        state.revision += 1
        let status = DownloadStatus(
            id: id, url: request.url, path: FilePath.join(directory, request.name ?? proposed),
            priority: request.priority, added: Date())
        return DownloadRecord(
            id: id, request: request, status: status, position: position, revision: state.revision)
    }

    private static func check(_ request: DownloadRequest) throws(DownloadError) {
        for url in [request.url] + request.mirrors {
            let text = SourceURL.withoutCredentials(url.absoluteString)
            guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
                throw .invalidURL(text, reason: "it is neither http nor https")
            }
            guard let host = url.host(), !host.isEmpty else { throw .invalidURL(text, reason: "it names no host") }
        }
        if let name = request.name, DownloadName.safe(name) != name {
            throw .invalidDestination(name, reason: "it is no name of a file that shows what it is")
        }
        if let directory = request.directory, !directory.hasPrefix("/") || directory.utf8.contains(0) {
            throw .invalidDestination(directory, reason: "the directory is not named from the root")
        }
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    static func onFiles<T: Sendable>(
        _ body: @escaping @Sendable () throws(FileError) -> T
    ) async throws(DownloadError) -> T {
        do throws(FileError) { return try await BlockingExecutor.shared.run(body) } catch { throw .file(error) }
    }

    // MARK: The journal

    /// Keeps a record, unless a newer one of the download was kept.
    func save(_ record: DownloadRecord) async throws(DownloadError) {
        guard let journal = state.withLock({ $0.journal }) else { return }
        try await journal.save(record)
    }

    /// Keeps a record behind what happens; a failure is logged, as nobody waits.
    func saveLater(_ record: DownloadRecord) {
        Task { [self] in
            do { try await save(record) } catch {
                log.error("A download was not noted", metadata: ["id": "\(record.id)", "error": "\(error)"])
            }
        }
    }

    /// Changes a download, shows it, and gives its record for the journal.
    ///
    /// - Parameter body: Changes it; false for no change after all.
    /// - Returns: nil if there is no such download, or nothing changed.
    @discardableResult
    func update(_ id: String, _ body: (inout Entry) -> Bool) -> DownloadRecord? {
        let record = state.withLock { state -> DownloadRecord? in
            guard var entry = state.entries[id], body(&entry) else { return nil }
            state.revision += 1
            entry.record.revision = state.revision
            state.entries[id] = entry
            // In the order of the changes.
            board.show(entry.record.status)
            return entry.record
        }
        if record?.status.state.isSettled == true { wakeIfSettled() }
        return record
    }
}
