/// The bookkeeping of a ``WorkQueue``: records in one array, linked into a list per priority by their indexes.
///
/// Pure data, which the queue holds under its lock. Records are reused, so a queue in a steady state does not allocate.
/// An item knows the index of its record, so leaving the middle of a list takes one step.
struct WorkQueueState {
    struct Record {
        var item: WorkItem?
        var start: (@Sendable (WorkItem) -> Void)?
        var onCancel: (@Sendable () -> Void)?
        var previous = -1
        var next = -1
    }

    struct Line {
        var first = -1
        var last = -1
        var count = 0
    }

    var limit: Int
    var isSuspended: Bool
    var lines: [Line]
    var idleWaiters: [CheckedContinuation<Void, Never>] = []
    private(set) var queuedCount = 0
    private(set) var runningCount = 0

    /// Slots that priorities below the index may not use.
    private let reservedFrom: [Int]
    private let hasReservations: Bool
    private var running: [Int]
    private var records: [Record] = []
    private var freeRecords: [Int] = []
    private var isDraining = false
    private var mustLookAgain = false

    init(limit: Int, reserved: [RequestPriority: Int], isSuspended: Bool) {
        self.limit = max(1, limit)
        self.isSuspended = isSuspended
        let levels = RequestPriority.allCases.count
        lines = Array(repeating: Line(), count: levels)
        running = Array(repeating: 0, count: levels)
        var sums = Array(repeating: 0, count: levels)
        var sum = 0
        for priority in RequestPriority.allCases.reversed() {
            sum = Self.clampedSum(sum, max(0, reserved[priority] ?? 0))
            sums[priority.rawValue] = sum
        }
        reservedFrom = sums
        hasReservations = sum > 0
    }

    private static func clampedSum(_ a: Int, _ b: Int) -> Int {
        let (sum, overflow) = a.addingReportingOverflow(b)
        return overflow ? .max : sum
    }

    var isIdle: Bool { queuedCount == 0 && runningCount == 0 }

    // MARK: Joining

    /// Adds a new item.
    ///
    /// - Returns: Whether the item has a slot already. The caller then starts it and calls `endDraining`.
    mutating func insert(
        _ item: WorkItem, priority: RequestPriority,
        start: @escaping @Sendable (WorkItem) -> Void, onCancel: (@Sendable () -> Void)?
    ) -> Bool {
        let index = add(item)
        records[index].onCancel = onCancel
        if mayBegin(at: priority) {
            isDraining = true
            mustLookAgain = false
            begin(item, at: priority.rawValue)
            return true
        }
        records[index].start = start
        append(index, to: priority.rawValue)
        mustLookAgain = true
        return false
    }

    /// Gives a new item a slot if one is free for it. There is nothing to start: the caller runs the work.
    mutating func admit(_ item: WorkItem, priority: RequestPriority) -> Bool {
        guard mayBegin(at: priority) else { return false }
        _ = add(item)
        begin(item, at: priority.rawValue)
        return true
    }

    /// - Returns: The index of the new record of an item.
    private mutating func add(_ item: WorkItem) -> Int {
        let index = freeRecords.popLast() ?? records.count
        if index == records.count { records.append(Record()) }
        records[index].item = item
        item.slot.store(index, ordering: .relaxed)
        return index
    }

    /// Whether a new item has a slot at once.
    private func mayBegin(at priority: RequestPriority) -> Bool {
        guard !isDraining, !isSuspended else { return false }
        // Items that wait at this priority or above came first or are more urgent. Those below do not matter.
        guard queuedCount == 0 || lines[priority.rawValue...].allSatisfy({ $0.count == 0 }) else { return false }
        return hasSlot(for: priority)
    }

    private mutating func begin(_ item: WorkItem, at level: Int) {
        running[level] += 1
        runningCount += 1
        item.rawState.store(WorkItem.State.running.rawValue, ordering: .releasing)
    }

    private func hasSlot(for priority: RequestPriority) -> Bool {
        guard runningCount < limit else { return false }
        guard hasReservations else { return true }
        var below = 0
        for level in 0..<running.count {
            if level > priority.rawValue, reservedFrom[level] > 0, below >= max(1, limit - reservedFrom[level]) {
                return false
            }
            below += running[level]
        }
        return true
    }

    // MARK: Starting

    mutating func beginDraining() -> Bool {
        guard !isDraining else {
            mustLookAgain = true
            return false
        }
        guard queuedCount > 0, !isSuspended else { return false }
        isDraining = true
        mustLookAgain = true
        return true
    }

    /// Returns the next item and gives it a slot. Returns nil when none may start, which ends the draining.
    mutating func nextToStart() -> (WorkItem, @Sendable (WorkItem) -> Void)? {
        if mustLookAgain, queuedCount > 0, !isSuspended, runningCount < limit {
            var level = lines.count - 1
            while level >= 0 {
                let index = lines[level].first
                if index >= 0, let priority = RequestPriority(rawValue: level), hasSlot(for: priority),
                    let item = records[index].item, let start = records[index].start.take() {
                    remove(index, from: level)
                    begin(item, at: level)
                    return (item, start)
                }
                level -= 1
            }
        }
        mustLookAgain = false
        isDraining = false
        return nil
    }

    // MARK: Changing

    /// - Returns: Whether an item may be able to start now.
    mutating func setPriority(_ priority: RequestPriority, of item: WorkItem) -> Bool {
        let index = item.slot.load(ordering: .relaxed)
        let old = item.rawPriority.load(ordering: .relaxed)
        guard old != priority.rawValue else { return false }
        item.rawPriority.store(priority.rawValue, ordering: .relaxed)
        guard index >= 0 else { return false }
        if item.state == .queued {
            remove(index, from: old)
            append(index, to: priority.rawValue)
        } else {
            running[old] -= 1
            running[priority.rawValue] += 1
        }
        return queuedCount > 0
    }

    /// - Returns: The handler to call, and the record to release outside the lock.
    mutating func cancel(_ item: WorkItem) -> ((@Sendable () -> Void)?, Record?) {
        let index = item.slot.load(ordering: .relaxed)
        guard index >= 0, !item.cancelFlag.exchange(true, ordering: .relaxed) else { return (nil, nil) }
        let handler = records[index].onCancel
        records[index].onCancel = nil
        guard item.state == .queued else { return (handler, nil) }
        remove(index, from: item.rawPriority.load(ordering: .relaxed))
        item.rawState.store(WorkItem.State.cancelled.rawValue, ordering: .releasing)
        return (handler, release(index))
    }

    /// - Returns: The record to release outside the lock; nil if the item was not running.
    mutating func finish(_ item: WorkItem) -> Record? {
        let index = item.slot.load(ordering: .relaxed)
        guard index >= 0, item.state == .running else { return nil }
        running[item.rawPriority.load(ordering: .relaxed)] -= 1
        runningCount -= 1
        let end: WorkItem.State = item.isCancelled ? .cancelled : .finished
        item.rawState.store(end.rawValue, ordering: .releasing)
        return release(index)
    }

    mutating func takeIdleWaiters() -> [CheckedContinuation<Void, Never>] {
        guard isIdle, !idleWaiters.isEmpty else { return [] }
        defer { idleWaiters = [] }
        return idleWaiters
    }

    // MARK: Lines

    private mutating func release(_ index: Int) -> Record {
        var record = Record()
        // A copy would count references twice.
        swap(&record, &records[index])
        record.item?.slot.store(-1, ordering: .relaxed)
        freeRecords.append(index)
        return record
    }

    private mutating func append(_ index: Int, to level: Int) {
        let last = lines[level].last
        records[index].previous = last
        records[index].next = -1
        if last >= 0 { records[last].next = index } else { lines[level].first = index }
        lines[level].last = index
        lines[level].count += 1
        queuedCount += 1
    }

    private mutating func remove(_ index: Int, from level: Int) {
        let (previous, next) = (records[index].previous, records[index].next)
        if previous >= 0 { records[previous].next = next } else { lines[level].first = next }
        if next >= 0 { records[next].previous = previous } else { lines[level].last = previous }
        lines[level].count -= 1
        queuedCount -= 1
    }
}
