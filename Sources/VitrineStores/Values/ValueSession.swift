import Logging
import VitrineCache
import VitrineCore
import VitrineDatabase

/// The state of a ``KeyValueStore`` in one directory: its file, the queued writes and the values in memory.
///
/// Writes are ordered by locking `state`: each enters the state and the queue of the writer in one step. A value in
/// memory is always current. A read looks in memory, then in the queued writes, then in the file.
final class ValueSession: Sendable {
    private struct Pending {
        var value: StoredValue?
        let sequence: Int
    }

    private struct State {
        var sequence = 0
        var values: [CacheKey: Pending] = [:]
        var removals: [Int: ValueExtent] = [:]
        var queuedBytes = 0
        /// The first failure since the last ``takeFailure()``.
        var failure: StoreError?
        var isSuspect = false
        var others: DatabaseWriter.ForeignState?
        var lastPoll: ContinuousClock.Instant?
        /// The time of the last check for a deleted file.
        var lastCheck: ContinuousClock.Instant?

        mutating func next() -> Int {
            sequence += 1
            return sequence
        }
    }

    private enum Finding {
        case known(StoredValue?)
        /// Not in memory, with the sequence number of the state at the time of the lookup.
        case unknown(Int)
    }

    /// The memory overhead of a value in bytes.
    private static let overhead = 64

    let directory: String
    private let configuration: KeyValueStore.Configuration
    private let memory: MemoryCache<CacheKey, StoredValue>
    private let reader: DatabaseReader
    private let writer: DatabaseWriter
    private let state = Locked(State())
    /// Shows other processes that this one uses the file.
    let presence: FilePresence?
    /// The identity and path of the open file.
    private let identity: InodeIdentity?
    private let path: String
    private let log = Log.logger("values")

    init(directory: String, configuration: KeyValueStore.Configuration, database: ValueDatabase) throws(StoreError) {
        self.directory = directory
        self.configuration = configuration
        path = database.path
        presence = database.takePresence()
        // Taken before opening: a file replaced in between is then detected.
        identity = InodeIdentity(path: database.path)
        let (reader, writer) = try database.open(configuration)
        self.reader = reader
        self.writer = writer
        var memory = MemoryCacheConfiguration(capacity: configuration.memoryCapacity)
        memory.maximumEntryCost = configuration.memoryThreshold - 1
        self.memory = MemoryCache(memory) { $0.bytes.count + Self.overhead }
        // Memory is empty, so earlier changes by others do not count.
        dropValuesChangedByOthers()
    }

    /// Whether damage was found in the file. The session must then be replaced, and the file looked at again.
    var isSuspect: Bool { state.withLock { $0.isSuspect } }

    /// Returns whether the file or its directory was deleted or replaced. The session must then be replaced.
    ///
    /// - Parameter checkingNow: Whether to check now, instead of at most once per interval.
    func isLost(checkingNow: Bool) -> Bool {
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            if !checkingNow, let last = state.lastCheck, now - last < configuration.sharingInterval { return false }
            state.lastCheck = now
            return true
        }
        return isDue && FileState(path: path).isLoss(of: identity)
    }

    /// The keys of the values in memory.
    var memoryKeys: [String] { memory.keys.compactMap { $0.parts.last } }

    /// Returns the first failure since the previous call.
    func takeFailure() -> StoreError? {
        state.withLock { state in
            defer { state.failure = nil }
            return state.failure
        }
    }

    // MARK: Reading

    func value(_ group: GroupPath, _ key: String, keepInMemory: Bool?) throws(StoreError) -> StoredValue? {
        dropValuesChangedByOthers()
        let path = group.storedText
        let id = CacheKey(path, key)
        let sequence: Int
        switch state.withLock({ find(id: id, path: path, state: $0) }) {
        case .known(let value): return value
        case .unknown(let number): sequence = number
        }
        let value: StoredValue?
        do throws(StoreError) {
            value = try read { database throws(DatabaseError) in
                try ValueTable.value(path, key: key, database: database)
            }
        } catch .database(let error) where error.reason == .checksum {
            throw .invalidData(name: key, underlying: error)
        }
        if let value, keepInMemory != false {
            // Later writes have already updated memory.
            state.withLock { state in
                guard state.sequence == sequence else { return }
                keep(value, id: id, keepInMemory: keepInMemory)
            }
        }
        return value
    }

    private func find(id: CacheKey, path: String, state: State) -> Finding {
        if let value = memory.value(forKey: id) { return .known(value) }
        if let pending = state.values[id] { return .known(pending.value) }
        if state.removals.values.contains(where: { $0.contains(path) }) { return .known(nil) }
        return .unknown(state.sequence)
    }

    private func keep(_ value: StoredValue, id: CacheKey, keepInMemory: Bool?) {
        if keepInMemory == false {
            memory.remove(id)
        } else {
            memory.set(value, forKey: id, cost: value.bytes.count + Self.overhead, ignoringEntryLimit: keepInMemory == true)
        }
    }

    /// Reads from the file, without waiting for queued writes.
    func read<Value>(_ body: (Database) throws(DatabaseError) -> sending Value) throws(StoreError) -> Value {
        do throws(DatabaseError) {
            return try reader.read(body)
        } catch {
            noteDamage(error)
            throw .database(error)
        }
    }

    private func noteDamage(_ error: any Error) {
        guard let error = error as? DatabaseError, error.reason == .corrupt else { return }
        state.withLock { $0.isSuspect = true }
    }

    /// Empties the memory if another process has changed the file. Checks at most once per interval.
    private func dropValuesChangedByOthers() {
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            if let last = state.lastPoll, now - last < configuration.sharingInterval { return false }
            state.lastPoll = now
            return true
        }
        guard isDue else { return }
        // The writer's connection does not count its own changes.
        let found = Result { try writer.foreignState() }
        state.withLock { state in
            switch found {
            // While it is busy, the next read checks again.
            case .success(nil): return state.lastPoll = nil
            case .success(let others?):
                guard others != state.others else { return }
                state.others = others
            // Nothing is known of the file.
            case .failure: state.others = nil
            }
            _ = state.next()
            memory.removeAll()
        }
    }

    // MARK: Writing

    func set(_ value: StoredValue?, group: GroupPath, key: String, keepInMemory: Bool?) -> WriteTask {
        let path = group.storedText
        let id = CacheKey(path, key)
        return enqueue(id: id, keepInMemory: keepInMemory, size: value?.bytes.count ?? 0) { _ in
            value
        } job: { database in
            try ValueTable.set(value, path: path, key: key, database: database)
            return value
        }
    }

    /// Changes a value based on its current value: at once with the value known to this process, and again in the
    /// transaction, which sees changes by other processes.
    func update(
        _ group: GroupPath, key: String, keepInMemory: Bool?,
        change: @escaping @Sendable (StoredValue?) throws -> StoredValue?
    ) -> WriteTask {
        let path = group.storedText
        let id = CacheKey(path, key)
        return enqueue(id: id, keepInMemory: keepInMemory, size: 0) { state in
            switch self.find(id: id, path: path, state: state) {
            case .known(let value): try change(value)
            case .unknown:
                try change(
                    try self.read { database throws(DatabaseError) in
                        try ValueTable.value(path, key: key, database: database)
                    })
            }
        } job: { database in
            let value = try change(try ValueTable.value(path, key: key, database: database))
            try ValueTable.set(value, path: path, key: key, database: database)
            return value
        }
    }

    private func enqueue(
        id: CacheKey, keepInMemory: Bool?, size: Int, predict: (borrowing State) throws -> StoredValue?,
        job: @escaping @Sendable (Database) throws -> StoredValue?
    ) -> WriteTask {
        let write = WriteTask()
        do {
            let isCrowded = try state.withLock { state in
                let value = try predict(state)
                let sequence = state.next()
                state.values[id] = Pending(value: value, sequence: sequence)
                state.queuedBytes += size
                if let value { keep(value, id: id, keepInMemory: keepInMemory) } else { memory.remove(id) }
                writer.submit(job) { [weak self] result in
                    self?.finish(id: id, sequence: sequence, keepInMemory: keepInMemory, size: size, result: result)
                    write.finish(Self.outcome(result.map { _ in }, id))
                }
                return state.queuedBytes > configuration.queueCapacity.bytes
            }
            // Failures reach the caller through the task.
            if isCrowded { try? write.waitUntilCommitted() }
        } catch {
            let error = Self.error(error, id)
            report(error)
            write.finish(.failure(error))
        }
        return write
    }

    private func finish(
        id: CacheKey, sequence: Int, keepInMemory: Bool?, size: Int,
        result: Result<StoredValue?, any Error>
    ) {
        state.withLock { state in
            state.queuedBytes -= size
            guard let pending = state.values[id], pending.sequence == sequence else { return }
            state.values[id] = nil
            switch result {
            case .success(let value) where value == pending.value: break
            case .success(let value?): keep(value, id: id, keepInMemory: keepInMemory)
            case .success, .failure:
                // Reads that began before must not put their values back into memory.
                _ = state.next()
                memory.remove(id)
            }
        }
        if case .failure(let error) = result { report(Self.error(error, id)) }
    }

    func remove(_ extent: ValueExtent) -> WriteTask {
        let write = WriteTask()
        state.withLock { state in
            let sequence = state.next()
            state.values = state.values.filter { !extent.contains($0.key) }
            state.removals[sequence] = extent
            memory.removeAll { extent.contains($0) }
            writer.submit { database in
                try ValueTable.remove(extent, database)
            } completion: { [weak self] result in
                self?.state.withLock { $0.removals[sequence] = nil }
                let outcome = Self.outcome(result, nil)
                if case .failure(let error) = outcome { self?.report(error) }
                write.finish(outcome)
            }
        }
        return write
    }

    /// Blocks until all earlier writes are stored or have failed.
    func waitForWrites() {
        let isIdle = state.withLock { $0.values.isEmpty && $0.removals.isEmpty }
        if !isIdle { try? writer.writeBlocking { _ in } }
    }

    // MARK: Errors

    func report(_ error: StoreError) {
        log.error("Cannot store a value: \(error)", metadata: ["directory": "\(directory)"])
        if case .database(let error) = error { noteDamage(error) }
        state.withLock { state in
            if state.failure == nil { state.failure = error }
        }
    }

    private static func outcome(_ result: Result<Void, any Error>, _ id: CacheKey?) -> Result<Void, StoreError> {
        result.mapError { error($0, id) }
    }

    private static func error(_ error: any Error, _ id: CacheKey?) -> StoreError {
        switch error {
        case let error as StoreError: error
        case let error as DatabaseError where error.reason == .checksum:
            .invalidData(name: id?.parts.last ?? "", underlying: error)
        case let error as DatabaseError: .database(error)
        case let error as FileError: .file(error)
        default: .invalidData(name: id?.parts.last ?? "", underlying: error)
        }
    }
}
