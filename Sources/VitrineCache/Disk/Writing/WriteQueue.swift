import Dispatch
import Synchronization
import VitrineCore

/// The queued writes in order, at most one operation per key: the last one replaces earlier ones.
///
/// Reads look here first, so that a process sees its own writes at once. One thread takes batches, which stay visible
/// while they are written.
///
/// Unchecked: a lock type. Every property but `load` is accessed under `monitor` only.
final class WriteQueue: @unchecked Sendable {
    /// The next task of the writing thread.
    enum Work {
        case batch([(key: EntryKey, operation: Operation)])
        case job(@Sendable () -> Void)
    }

    /// The result of an addition.
    enum Added {
        /// Nothing was added.
        case full
        /// It waits.
        case queued
        /// The operation is queued and no thread is working. The caller makes sure that ``take()`` is called until it
        /// returns nil.
        case queuedFirst
    }

    private enum Item {
        case key(EntryKey)
        case job(@Sendable () -> Void)
    }

    /// The most operations in one transaction.
    static let batchLimit = 64

    private let monitor = Monitor()
    private let limits: (entries: Int, bytes: Int)
    private var order: [Item] = []
    private var head = 0
    private var waiting: [EntryKey: Operation] = [:]
    private var writing: [EntryKey: Operation] = [:]
    private var waitingBytes = 0
    private var writingBytes = 0
    private var isRunning = false
    private var blockedThreads = 0
    private var blockedTasks: [CheckedContinuation<Void, Never>] = []
    /// The clearings that were added and have not ended. Meanwhile every key without a later operation is removed.
    private var clearings = 0
    /// How many clearings were added so far.
    private var clearingCount = 0
    /// Operations waiting or being written, and clearings; read without the lock by every get.
    private let load = Atomic<Int>(0)

    init(entries: Int, bytes: Int) {
        limits = (max(1, entries), max(0, bytes))
    }

    // MARK: Adding

    /// Adds an operation if there is room.
    ///
    /// - Parameter replaced: Gets the operation it takes the place of, to be released outside of all locks: it may hold
    ///   a user's value.
    func add(_ operation: Operation, forKey key: EntryKey, replacing replaced: inout Operation?) -> Added {
        monitor.lock()
        guard hasSpace(for: operation.heldBytes) else {
            monitor.unlock()
            return .full
        }
        replaced = insert(operation, key)
        return startAndUnlock()
    }

    /// Adds an operation, waiting for room.
    ///
    /// - Parameter epoch: ``epoch`` when the operation was requested. A clearing since then has removed its entry, and
    ///   nothing is added.
    /// - Returns: nil if nothing was added.
    func addBlocking(_ operation: Operation, forKey key: EntryKey, since epoch: Int? = nil) -> Added? {
        monitor.lock()
        while epoch ?? clearingCount == clearingCount, !hasSpace(for: operation.heldBytes) {
            blockedThreads += 1
            monitor.wait()
            blockedThreads -= 1
        }
        guard epoch ?? clearingCount == clearingCount else {
            monitor.unlock()
            return nil
        }
        let replaced = insert(operation, key)
        // Released outside the lock.
        defer { withExtendedLifetime(replaced) {} }
        return startAndUnlock()
    }

    /// Returns when there may be room.
    func waitForSpace(for operation: Operation) async {
        await withCheckedContinuation { continuation in
            monitor.lock()
            let hasSpace = hasSpace(for: operation.heldBytes)
            if !hasSpace { blockedTasks.append(continuation) }
            monitor.unlock()
            if hasSpace { continuation.resume() }
        }
    }

    /// Adds something to do after all that was added before.
    func add(job: @escaping @Sendable () -> Void) -> Added {
        monitor.lock()
        order.append(.job(job))
        return startAndUnlock()
    }

    /// The number of clearings so far.
    var epoch: Int {
        monitor.lock()
        defer { monitor.unlock() }
        return clearingCount
    }

    /// Drops the operations that are not being written, and adds a job that removes all entries and then calls
    /// ``endClearing()``. Until then, every key without a later operation counts as removed.
    ///
    /// - Parameter dropped: Gets the dropped operations, to be released outside of all locks: they may hold a user's
    ///   values.
    func addClearing(_ job: @escaping @Sendable () -> Void, dropping dropped: inout [EntryKey: Operation]) -> Added {
        monitor.lock()
        (dropped, waiting, waitingBytes) = (waiting, [:], 0)
        order = order[head...].filter { if case .job = $0 { true } else { false } } + [.job(job)]
        head = 0
        clearings += 1
        clearingCount += 1
        load.store(writing.count + clearings, ordering: .releasing)
        let added = isRunning ? Added.queued : .queuedFirst
        isRunning = true
        wakeAndUnlock()
        return added
    }

    /// Ends the clearing whose job runs.
    func endClearing() {
        monitor.lock()
        clearings -= 1
        load.store(writing.count + waiting.count + clearings, ordering: .releasing)
        monitor.unlock()
    }

    /// Drops the operations that are not being written, of all formats or of one. Jobs stay.
    func dropWaiting(format: Int64? = nil) {
        monitor.lock()
        order = order[head...].filter { item in
            guard case .key(let key) = item else { return true }
            return format != nil && key.format.id != format
        }
        head = 0
        let dropped = waiting
        waiting = waiting.filter { format != nil && $0.key.format.id != format }
        waitingBytes = waiting.values.reduce(0) { $0 + $1.heldBytes }
        load.store(writing.count + waiting.count + clearings, ordering: .releasing)
        wakeAndUnlock()
        // Bodies are released outside the lock.
        withExtendedLifetime(dropped) {}
    }

    private func hasSpace(for bytes: Int) -> Bool {
        let count = waiting.count + writing.count
        return count == 0 || (count < limits.entries && waitingBytes + writingBytes + bytes <= limits.bytes)
    }

    /// - Returns: The operation it takes the place of.
    private func insert(_ operation: Operation, _ key: EntryKey) -> Operation? {
        if let earlier = waiting[key] {
            let merged = earlier.followed(by: operation)
            waitingBytes += merged.heldBytes - earlier.heldBytes
            waiting[key] = merged
            return earlier
        }
        waiting[key] = operation
        waitingBytes += operation.heldBytes
        order.append(.key(key))
        load.wrappingAdd(1, ordering: .releasing)
        return nil
    }

    private func startAndUnlock() -> Added {
        let added = isRunning ? Added.queued : .queuedFirst
        isRunning = true
        monitor.unlock()
        return added
    }

    // MARK: Looking

    /// Returns the queued operation of a key, if there is one.
    func pending(_ key: EntryKey) -> Operation? {
        guard load.load(ordering: .acquiring) > 0 else { return nil }
        monitor.lock()
        defer { monitor.unlock() }
        let before = clearings > 0 ? .remove : writing[key]
        guard let next = waiting[key] else { return before }
        return before?.followed(by: next) ?? next
    }

    // MARK: Taking

    /// The next work; nil if there is none, and then the caller stops.
    func take() -> Work? {
        monitor.lock()
        defer { monitor.unlock() }
        guard head < order.count else {
            order.removeAll(keepingCapacity: true)
            head = 0
            isRunning = false
            return nil
        }
        if case .job(let job) = order[head] {
            advance()
            return .job(job)
        }
        var batch: [(key: EntryKey, operation: Operation)] = []
        while batch.count < Self.batchLimit, head < order.count, case .key(let key) = order[head] {
            advance()
            guard let operation = waiting.removeValue(forKey: key) else { continue }
            batch.append((key, operation))
            writing[key] = operation
        }
        let bytes = batch.reduce(0) { $0 + $1.operation.heldBytes }
        waitingBytes -= bytes
        writingBytes += bytes
        return .batch(batch)
    }

    private func advance() {
        order[head] = .job({})
        head += 1
        // Keeps the used part from growing for ever under a steady stream.
        if head >= 512 {
            order.removeFirst(head)
            head = 0
        }
    }

    /// Ends a batch: its operations are on disk, or given up.
    func finish() {
        monitor.lock()
        let finished = writing
        writing = [:]
        writingBytes = 0
        load.store(waiting.count + clearings, ordering: .releasing)
        wakeAndUnlock()
        // Bodies are released outside the lock.
        withExtendedLifetime(finished) {}
    }

    private func wakeAndUnlock() {
        let tasks = blockedTasks
        let wakes = blockedThreads > 0
        blockedTasks = []
        monitor.unlock()
        if wakes { monitor.broadcast() }
        for task in tasks { task.resume() }
    }
}

/// A body that is to be written: there already, or made when it is needed.
enum Body: Sendable {
    case ready([UInt8])
    case lazy(LazyBytes)

    /// The length, 0 while it is not known.
    var knownCount: Int {
        if case .ready(let bytes) = self { bytes.count } else { 0 }
    }

    func bytes() throws -> [UInt8] {
        switch self {
        case .ready(let bytes): bytes
        case .lazy(let lazy): try lazy.bytes()
        }
    }
}

/// Bytes that are made once, by the first thread that needs them; others wait for them. The closure is a user's, so no
/// lock is held while it runs.
final class LazyBytes: Sendable {
    private enum State {
        case pending(@Sendable () throws -> [UInt8])
        case running([DispatchSemaphore])
        case made(Result<[UInt8], any Error>)
    }

    private enum Step {
        case make(@Sendable () throws -> [UInt8])
        case wait(DispatchSemaphore)
        case take(Result<[UInt8], any Error>)
    }

    private let state: Locked<State>

    init(_ make: @escaping @Sendable () throws -> [UInt8]) { state = Locked(.pending(make)) }

    func bytes() throws -> [UInt8] {
        while true {
            switch nextStep() {
            case .take(let result): return try result.get()
            case .wait(let semaphore): semaphore.wait()
            case .make(let make):
                let result = Result { try make() }
                let waiting: [DispatchSemaphore] = state.withLock { state in
                    defer { state = .made(result) }
                    if case .running(let waiting) = state { return waiting }
                    return []
                }
                for semaphore in waiting { semaphore.signal() }
            }
        }
    }

    private func nextStep() -> Step {
        state.withLock { state in
            switch state {
            case .made(let result): return .take(result)
            case .pending(let make):
                state = .running([])
                return .make(make)
            case .running(let waiting):
                let semaphore = DispatchSemaphore(value: 0)
                state = .running(waiting + [semaphore])
                return .wait(semaphore)
            }
        }
    }
}

/// An entry to be written. Times are nanoseconds since 1970.
struct Put: Sendable {
    var body: Body
    var created: Int64
    var expires: Int64?
    var validator: [UInt8]
    var tags = EntryTags.none
}

/// A change of an entry that leaves its body alone.
struct Patch: Sendable {
    /// When the entry begins to count anew; nil leaves it.
    var created: Int64?
    /// The new end of freshness, which may be none; the outer nil leaves it.
    var expires: Int64??
    /// The new validator; nil leaves it.
    var validator: [UInt8]?

    init(created: Int64? = nil, expires: Int64?? = nil, validator: [UInt8]? = nil) {
        self.created = created
        self.expires = expires
        self.validator = validator
    }

    func applied(to put: Put) -> Put {
        Put(
            body: put.body, created: created ?? put.created, expires: expires ?? put.expires,
            validator: validator ?? put.validator, tags: put.tags)
    }

    /// This one and then a later one.
    func followed(by later: Patch) -> Patch {
        Patch(
            created: later.created ?? created, expires: later.expires ?? expires,
            validator: later.validator ?? validator)
    }
}

/// An operation on the entry of one key.
enum Operation: Sendable {
    case put(Put)
    case remove
    case patch(Patch)

    /// This one and then a later one, as one.
    func followed(by later: Operation) -> Operation {
        guard case .patch(let patch) = later else { return later }
        switch self {
        case .put(let put): return .put(patch.applied(to: put))
        case .remove: return .remove
        case .patch(let first): return .patch(first.followed(by: patch))
        }
    }

    /// Bytes it keeps in memory.
    var heldBytes: Int {
        guard case .put(let put) = self else { return 0 }
        return put.body.knownCount + put.validator.count + put.tags.hashes.count * 8
    }
}
