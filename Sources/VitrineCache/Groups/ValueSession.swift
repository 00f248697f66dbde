import Logging
import VitrineCore
import VitrineDatabase

/// A ``KeyValueStore`` in one directory: what is on disk, what is on its way there, and what memory holds of both.
///
/// The order of changes is that in which `state` is locked: each enters the state and the writer's queue in one step.
/// A value in memory is always the current one. On a miss there, a read asks the pending changes, then the disk.
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
        var failure: CacheError?
        var isDamaged = false
        var others: Int64 = 0
        var lastLook: ContinuousClock.Instant?
        /// When it was last looked whether the file is in its place.
        var lastCheck: ContinuousClock.Instant?

        mutating func next() -> Int {
            sequence += 1
            return sequence
        }
    }

    private enum Finding {
        case known(StoredValue?)
        /// Not in memory; the state's sequence at that moment.
        case unknown(Int)
    }

    /// Bytes of memory a value takes beside its own.
    private static let overhead = 64

    let directory: String
    private let configuration: KeyValueStore.Configuration
    private let memory: MemoryCache<CacheKey, StoredValue>
    private let reader: DatabaseReader
    private let writer: DatabaseWriter
    private let state = Locked(State())
    /// The file that is open, and where it was.
    private let identity: FileIdentity?
    private let path: String
    private let log = Log.logger("values")

    init(directory: String, configuration: KeyValueStore.Configuration, files: ValueFiles) throws(CacheError) {
        self.directory = directory
        self.configuration = configuration
        path = files.path
        // Before it is opened: another one in its place is found out, this one mistaken for it would not be.
        identity = FileIdentity(path: files.path)
        let (reader, writer) = try files.open(configuration)
        self.reader = reader
        self.writer = writer
        var memory = MemoryCache<CacheKey, StoredValue>.Configuration(capacity: configuration.memoryCapacity)
        memory.maximumEntryCost = configuration.memoryThreshold - 1
        self.memory = MemoryCache(memory) { $0.bytes.count + Self.overhead }
        // What was changed before is nothing to forget memory for.
        lookForOthers()
    }

    /// Whether the file was found damaged. The session is of no more use.
    var isDamaged: Bool { state.withLock { $0.isDamaged } }

    /// Whether its file was deleted or replaced, or its directory. The session is of no more use then.
    ///
    /// - Parameter lookingNow: Look in any case; else at most once per interval.
    func isLost(lookingNow: Bool) -> Bool {
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            if !lookingNow, let last = state.lastCheck, now - last < configuration.sharingInterval { return false }
            state.lastCheck = now
            return true
        }
        return isDue && (identity == nil || FileIdentity(path: path) != identity)
    }

    /// The names of the values that memory holds.
    var memoryKeys: [String] { memory.keys.compactMap { $0.parts.last } }

    /// The first failed change since the last call.
    func takeFailure() -> CacheError? {
        state.withLock { state in
            defer { state.failure = nil }
            return state.failure
        }
    }

    // MARK: Reading

    func value(_ group: GroupPath, _ key: String, keepInMemory: Bool?) throws(CacheError) -> StoredValue? {
        lookForOthers()
        let path = group.text
        let id = CacheKey(path, key)
        let sequence: Int
        switch state.withLock({ find(id, path, $0) }) {
        case .known(let value): return value
        case .unknown(let number): sequence = number
        }
        let value = try read { database throws(DatabaseError) in try ValueTable.value(path, key, database) }
        if let value, keepInMemory != false {
            // A change since then has put its own value into memory, or taken it out.
            state.withLock { state in
                guard state.sequence == sequence else { return }
                keep(value, id, keepInMemory)
            }
        }
        return value
    }

    private func find(_ id: CacheKey, _ path: String, _ state: State) -> Finding {
        if let value = memory.value(forKey: id) { return .known(value) }
        if let pending = state.values[id] { return .known(pending.value) }
        if state.removals.values.contains(where: { $0.contains(path) }) { return .known(nil) }
        return .unknown(state.sequence)
    }

    private func keep(_ value: StoredValue, _ id: CacheKey, _ keepInMemory: Bool?) {
        if keepInMemory == false {
            memory.remove(id)
        } else {
            memory.set(value, forKey: id, cost: value.bytes.count + Self.overhead, ignoringEntryLimit: keepInMemory == true)
        }
    }

    /// Reads from the file. Does not wait for pending changes.
    func read<Value>(_ body: (Database) throws(DatabaseError) -> sending Value) throws(CacheError) -> Value {
        do throws(DatabaseError) {
            return try reader.read(body)
        } catch {
            noteDamage(error)
            throw .database(error)
        }
    }

    private func noteDamage(_ error: any Error) {
        guard let error = error as? DatabaseError, error.reason == .corrupt else { return }
        state.withLock { $0.isDamaged = true }
    }

    /// Forgets what memory holds if another process has changed the file. Looks at most once per interval.
    private func lookForOthers() {
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            if let last = state.lastLook, now - last < configuration.sharingInterval { return false }
            state.lastLook = now
            return true
        }
        guard isDue else { return }
        // While the writer works, the next read looks again. Its connection is asked because its own changes do not
        // count there.
        let others = try? writer.betweenTransactions { database throws(DatabaseError) in
            try database.changesOfOthers()
        }
        state.withLock { state in
            guard let others else { return state.lastLook = nil }
            guard others != state.others else { return }
            state.others = others
            _ = state.next()
            memory.removeAll()
        }
    }

    // MARK: Writing

    func set(_ value: StoredValue?, _ group: GroupPath, _ key: String, keepInMemory: Bool?) -> WriteTask {
        let path = group.text
        let id = CacheKey(path, key)
        return enqueue(id, keepInMemory, size: value?.bytes.count ?? 0) { _ in value } job: { database in
            try ValueTable.set(value, path, key, database)
            return value
        }
    }

    /// Changes a value by what it is: at once as far as this process knows it, and again in the transaction, where
    /// other processes' changes are seen.
    func update(
        _ group: GroupPath, _ key: String, keepInMemory: Bool?,
        _ change: @escaping @Sendable (StoredValue?) throws -> StoredValue?
    ) -> WriteTask {
        let path = group.text
        let id = CacheKey(path, key)
        return enqueue(id, keepInMemory, size: 0) { state in
            switch self.find(id, path, state) {
            case .known(let value): try change(value)
            case .unknown:
                try change(
                    try self.read { database throws(DatabaseError) in try ValueTable.value(path, key, database) })
            }
        } job: { database in
            let value = try change(try ValueTable.value(path, key, database))
            try ValueTable.set(value, path, key, database)
            return value
        }
    }

    private func enqueue(
        _ id: CacheKey, _ keepInMemory: Bool?, size: Int, _ predict: (borrowing State) throws -> StoredValue?,
        job: @escaping @Sendable (Database) throws -> StoredValue?
    ) -> WriteTask {
        let write = WriteTask()
        do {
            let isCrowded = try state.withLock { state in
                let value = try predict(state)
                let sequence = state.next()
                state.values[id] = Pending(value: value, sequence: sequence)
                state.queuedBytes += size
                if let value { keep(value, id, keepInMemory) } else { memory.remove(id) }
                writer.submit(job) { [weak self] result in
                    self?.finish(id, sequence, keepInMemory, size, result)
                    write.finish(Self.outcome(result.map { _ in }, id))
                }
                return state.queuedBytes > configuration.queueCapacity.bytes
            }
            // Failures reach the caller through the handle, like all others.
            if isCrowded { try? write.waitUntilCommitted() }
        } catch {
            let error = Self.error(error, id)
            report(error)
            write.finish(.failure(error))
        }
        return write
    }

    private func finish(
        _ id: CacheKey, _ sequence: Int, _ keepInMemory: Bool?, _ size: Int,
        _ result: Result<StoredValue?, any Error>
    ) {
        state.withLock { state in
            state.queuedBytes -= size
            guard let pending = state.values[id], pending.sequence == sequence else { return }
            state.values[id] = nil
            switch result {
            case .success(let value) where value == pending.value: break
            case .success(let value?): keep(value, id, keepInMemory)
            case .success, .failure:
                // Reads that began before must not bring back what they found.
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

    /// Returns when all changes so far are stored or have failed. Blocks.
    func waitForWrites() {
        let isIdle = state.withLock { $0.values.isEmpty && $0.removals.isEmpty }
        if !isIdle { try? writer.writeBlocking { _ in } }
    }

    // MARK: Errors

    func report(_ error: CacheError) {
        log.error("A value was not stored: \(error)", metadata: ["directory": "\(directory)"])
        if let error = error.underlying { noteDamage(error) }
        state.withLock { state in
            if state.failure == nil { state.failure = error }
        }
    }

    private static func outcome(_ result: Result<Void, any Error>, _ id: CacheKey?) -> Result<Void, CacheError> {
        result.mapError { error($0, id) }
    }

    private static func error(_ error: any Error, _ id: CacheKey?) -> CacheError {
        switch error {
        case let error as CacheError: error
        case let error as DatabaseError: .database(error)
        case let error as FileError: .file(error)
        default: .invalidData(key: id ?? CacheKey(""), underlying: error)
        }
    }
}
