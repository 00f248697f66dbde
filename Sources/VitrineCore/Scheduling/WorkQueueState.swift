/// The bookkeeping of a ``WorkQueue``: records in one array, linked into a list per priority by their indexes.
///
/// Pure data, which the queue holds under its lock. Records are reused, so a queue in a steady state does not allocate.
/// An item knows the index of its record, so leaving the middle of a list takes one step.
struct WorkQueueState {
    struct Record {
        var item: WorkItem?
        var start: (@Sendable (WorkItem) -> Void)?
        var onCancel: (@Sendable () -> Void)?
        /// The cost that counts while the item runs or keeps a part of it.
        var cost = 0
        var previous = -1
        var next = -1
    }

    struct Line {
        var first = -1
        var last = -1
        var count = 0
    }

    var limit: Int
    var isSuspended = false
    var lines: [Line]
    var idleWaiters: [CheckedContinuation<Void, Never>] = []
    private(set) var queuedCount = 0
    private(set) var runningCount = 0
    private(set) var usedCost = 0

    private let bounds: WorkQueue.Bounds
    /// The running items of each group; empty without a bound of groups.
    private var groups: [String: Int] = [:]
    /// Slots that priorities below the index may not use.
    private let reservedFrom: [Int]
    private let hasReservations: Bool
    private var running: [Int]
    private var records: [Record] = []
    private var freeRecords: [Int] = []
    private var isDraining = false
    private var mustLookAgain = false

    init(limit: Int, bounds: WorkQueue.Bounds, reserved: [RequestPriority: Int]) {
        self.limit = max(1, limit)
        self.bounds = bounds
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
    /// Whether a waiting item may have a slot, if its cost and its group allow it.
    var hasRoomForQueued: Bool { queuedCount > 0 && runningCount < limit && !isSuspended }

    // MARK: Joining

    enum Insertion {
        /// The item has a slot already. The caller starts it and calls `endDraining`.
        case started
        case queued
        /// As many items wait as may. The item has ended.
        case refused
    }

    /// Adds a new item.
    mutating func insert(
        _ item: WorkItem, start: @escaping @Sendable (WorkItem) -> Void, onCancel: (@Sendable () -> Void)?
    ) -> Insertion {
        let priority = item.priority
        let beginsNow = mayBegin(item, at: priority)
        guard beginsNow || queuedCount < bounds.queued else {
            item.rawState.store(WorkItem.State.cancelled.rawValue, ordering: .releasing)
            return .refused
        }
        let index = add(item)
        records[index].onCancel = onCancel
        if beginsNow {
            isDraining = true
            mustLookAgain = false
            begin(item, index, at: priority.rawValue)
            return .started
        }
        records[index].start = start
        append(index, to: priority.rawValue)
        mustLookAgain = true
        return .queued
    }

    /// Gives a new item a slot if one is free for it. There is nothing to start: the caller runs the work.
    mutating func admit(_ item: WorkItem) -> Bool {
        let priority = item.priority
        guard mayBegin(item, at: priority) else { return false }
        begin(item, add(item), at: priority.rawValue)
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
    private func mayBegin(_ item: WorkItem, at priority: RequestPriority) -> Bool {
        guard !isDraining, !isSuspended else { return false }
        // Items that wait at this priority or above came first or are more urgent. Those below do not matter.
        guard queuedCount == 0 || lines[priority.rawValue...].allSatisfy({ firstOfFreeGroup(in: $0) == nil })
        else { return false }
        return hasSlot(for: priority) && hasCapacity(for: item) && !isFull(item.group)
    }

    private mutating func begin(_ item: WorkItem, _ index: Int, at level: Int) {
        running[level] += 1
        runningCount += 1
        usedCost += item.cost
        records[index].cost = item.cost
        if bounds.perGroup < .max, let group = item.group { groups[group, default: 0] += 1 }
        item.rawState.store(WorkItem.State.running.rawValue, ordering: .releasing)
    }

    private func hasCapacity(for item: WorkItem) -> Bool {
        // An item that costs more than all may together runs alone.
        runningCount == 0 || usedCost <= bounds.capacity - min(item.cost, bounds.capacity)
    }

    private func isFull(_ group: String?) -> Bool {
        guard bounds.perGroup < .max, let group, let count = groups[group] else { return false }
        return count >= bounds.perGroup
    }

    /// Returns the first item that does not wait for its group; nil if there is none.
    private func firstOfFreeGroup(in line: Line) -> Int? {
        var index = line.first
        if bounds.perGroup < .max {
            while index >= 0, isFull(records[index].item?.group) { index = records[index].next }
        }
        return index >= 0 ? index : nil
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
                if let index = firstOfFreeGroup(in: lines[level]), let item = records[index].item {
                    // No less urgent or later item passes one that does not fit.
                    guard let priority = RequestPriority(rawValue: level), hasSlot(for: priority),
                        hasCapacity(for: item), let start = records[index].start.take()
                    else { break }
                    remove(index, from: level)
                    begin(item, index, at: level)
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
        } else if item.state == .running {
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
        guard index >= 0, item.state != .queued else { return nil }
        if item.state == .running { giveBackSlot(of: item) }
        usedCost -= records[index].cost
        let end: WorkItem.State = item.isCancelled ? .cancelled : .finished
        item.rawState.store(end.rawValue, ordering: .releasing)
        return release(index)
    }

    /// Gives the slot of a running item back, and keeps a part of its cost until the item ends.
    mutating func keep(_ cost: Int, of item: WorkItem) {
        let index = item.slot.load(ordering: .relaxed)
        guard index >= 0, item.state == .running else { return }
        giveBackSlot(of: item)
        let kept = min(max(0, cost), records[index].cost)
        usedCost -= records[index].cost - kept
        records[index].cost = kept
        item.rawState.store(WorkItem.State.keepingCost.rawValue, ordering: .releasing)
    }

    private mutating func giveBackSlot(of item: WorkItem) {
        running[item.rawPriority.load(ordering: .relaxed)] -= 1
        runningCount -= 1
        guard bounds.perGroup < .max, let group = item.group, let count = groups[group] else { return }
        groups[group] = count > 1 ? count - 1 : nil
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
