import Synchronization
import TestSupport
import Testing
import VitrineCore

struct WorkQueueTests {
    /// Enqueues work that records its name when it starts and ends at once.
    @discardableResult
    private func add(
        _ name: String, _ priority: RequestPriority = .normal, to queue: WorkQueue, _ log: Recorder<String>
    ) -> WorkItem {
        queue.enqueue(priority: priority) { item in
            log.add(name)
            item.finish()
        }
    }

    @Test func startsTheMostUrgentFirstAndInOrderWithinAPriority() {
        let queue = WorkQueue()
        queue.suspend()
        let log = Recorder<String>()
        add("normal 1", to: queue, log)
        add("low", .low, to: queue, log)
        add("high 1", .high, to: queue, log)
        add("normal 2", to: queue, log)
        add("very high", .veryHigh, to: queue, log)
        add("very low", .veryLow, to: queue, log)
        add("high 2", .high, to: queue, log)
        #expect(queue.counts == .init(queued: 7, running: 0))
        #expect(queue.queuedCount(at: .high) == 2)
        queue.resume()
        #expect(log.all == ["very high", "high 1", "high 2", "normal 1", "normal 2", "low", "very low"])
        #expect(queue.counts == .init(queued: 0, running: 0))
    }

    @Test func neverRunsMoreThanItsLimit() {
        let queue = WorkQueue(limit: 3)
        let items = (0..<10).map { _ in queue.enqueue { _ in } }
        #expect(queue.counts == .init(queued: 7, running: 3))
        items[1].finish()
        items[1].finish()
        #expect(queue.counts == .init(queued: 6, running: 3))
        #expect(items[3].state == .running && items[4].state == .queued && items[1].state == .finished)
        queue.limit = 5
        #expect(queue.counts.running == 5)
        queue.limit = 1
        #expect(queue.counts.running == 5)
        items[0].finish()
        #expect(queue.counts.running == 4)
        for item in items { item.finish() }
        for item in items { item.finish() }
    }

    @Test func defaultLimitIsOne() {
        #expect(WorkQueue().limit == 1)
        #expect(WorkQueue(limit: -3).limit == 1)
    }

    @Test func changedPriorityMovesAQueuedItem() {
        let queue = WorkQueue()
        queue.suspend()
        let log = Recorder<String>()
        add("a", to: queue, log)
        let b = add("b", to: queue, log)
        let c = add("c", to: queue, log)
        add("d", .high, to: queue, log)
        c.priority = .high
        b.priority = .low
        #expect(c.priority == .high)
        queue.resume()
        #expect(log.all == ["d", "c", "a", "b"])
    }

    @Test func cancelledQueuedItemNeverStarts() {
        let queue = WorkQueue()
        queue.suspend()
        let log = Recorder<String>()
        let first = add("first", to: queue, log)
        let middle = queue.enqueue(onCancel: { log.add("cancelled") }) { _ in log.add("wrong") }
        let last = add("last", to: queue, log)
        middle.cancel()
        middle.cancel()
        #expect(middle.state == .cancelled && middle.isCancelled)
        #expect(queue.counts.queued == 2)
        queue.resume()
        #expect(log.all == ["cancelled", "first", "last"])
        first.cancel()
        #expect(first.state == .finished && last.state == .finished)
        middle.finish()
        #expect(queue.counts == .init(queued: 0, running: 0))
    }

    @Test func cancelledRunningItemKeepsItsSlotUntilItEnds() {
        let queue = WorkQueue()
        let log = Recorder<String>()
        let running = queue.enqueue(onCancel: { log.add("told") }) { _ in }
        add("next", to: queue, log)
        running.cancel()
        #expect(log.all == ["told"])
        #expect(running.state == .running)
        running.finish()
        #expect(running.state == .cancelled)
        #expect(log.all == ["told", "next"])
    }

    @Test func reservedSlotsStayFreeForTheUrgent() {
        let queue = WorkQueue(limit: 3, reserved: [.high: 1, .veryHigh: 1])
        let low = (0..<5).map { _ in queue.enqueue(priority: .low) { _ in } }
        #expect(queue.counts.running == 1)
        let high = (0..<3).map { _ in queue.enqueue(priority: .high) { _ in } }
        #expect(high.map(\.state) == [.running, .queued, .queued])
        let top = queue.enqueue(priority: .veryHigh) { _ in }
        #expect(top.state == .running)
        #expect(queue.counts.running == 3)
        // An urgent item that is not urgent any more counts against the others.
        high[0].priority = .low
        low[0].finish()
        #expect(low[1].state == .queued && high[1].state == .running)
        for item in low + high + [top] { item.cancel() }
    }

    @Test func everyPriorityCanRunWhateverIsReserved() {
        let queue = WorkQueue(limit: 2, reserved: [.veryHigh: .max, .high: .max])
        #expect(queue.enqueue(priority: .veryLow) { _ in }.state == .running)
        #expect(queue.enqueue(priority: .veryLow) { _ in }.state == .queued)
        #expect(queue.enqueue(priority: .veryHigh) { _ in }.state == .running)
    }

    @Test func longLinesOfImmediateWorkDoNotRecurse() {
        let queue = WorkQueue()
        queue.suspend()
        let count = Counter()
        for _ in 0..<100_000 {
            queue.enqueue { item in
                count.add(1)
                item.finish()
            }
        }
        queue.resume()
        #expect(count.value == 100_000)
    }

    @Test func runReturnsValuesAndErrorsAndFreesTheSlot() async throws {
        struct Failure: Error {}
        let queue = WorkQueue()
        #expect(try await queue.run { 7 } == 7)
        await #expect(throws: Failure.self) { try await queue.run { throw Failure() } }
        #expect(queue.counts == .init(queued: 0, running: 0))
    }

    @Test func awaitedWorkWaitsForItsTurnAndForReservedSlots() async throws {
        let queue = WorkQueue(limit: 2, reserved: [.high: 1])
        let log = Recorder<String>()
        let blocker = queue.enqueue(priority: .low) { _ in }
        let low = Task { try await queue.run(priority: .low) { log.add("low") } }
        while queue.counts.queued == 0 { await Task.yield() }
        try await queue.run(priority: .high) {
            log.add("high")
            #expect(queue.counts == .init(queued: 1, running: 2))
        }
        queue.suspend()
        let normal = Task { try await queue.run { log.add("normal") } }
        while queue.counts.queued < 2 { await Task.yield() }
        blocker.finish()
        #expect(log.all == ["high"])
        queue.resume()
        try await low.value
        try await normal.value
        #expect(log.all == ["high", "normal", "low"])
        #expect(queue.counts == .init(queued: 0, running: 0))
    }

    @Test func cancelledTaskLeavesTheQueueAtOnce() async {
        let queue = WorkQueue()
        queue.suspend()
        let started = Recorder<Int>()
        let task = Task { try await queue.run { started.add(1) } }
        while queue.counts.queued == 0 { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(queue.counts == .init(queued: 0, running: 0))
        #expect(started.all.isEmpty)
    }

    @Test func awaitedWorkFollowsAChangingPriority() async throws {
        let queue = WorkQueue()
        let blocker = queue.enqueue { _ in }
        let source = PrioritySource(.low)
        let log = Recorder<String>()
        let follower = Task { try await queue.run(following: source) { log.add("follower") } }
        while queue.counts.queued < 1 { await Task.yield() }
        let other = Task { try await queue.run { log.add("other") } }
        while queue.counts.queued < 2 { await Task.yield() }
        source.value = .veryHigh
        while queue.queuedCount(at: .veryHigh) == 0 { await Task.yield() }
        blocker.finish()
        try await follower.value
        try await other.value
        #expect(log.all == ["follower", "other"])
    }

    // MARK: Costs, groups and bounds

    /// Waits for a slot in a task, and returns when it is in line.
    private func wait(
        in queue: WorkQueue, cost: Int = 0, group: String? = nil, priority: RequestPriority = .normal
    ) async -> Task<WorkItem, any Error> {
        let count = queue.counts.queued
        let task = Task { try await queue.slot(priority: priority, cost: cost, group: group) }
        while queue.counts.queued == count { await Task.yield() }
        return task
    }

    @Test func runningItemsFitTheCapacityTogetherAndNoneIsPassed() async throws {
        let queue = WorkQueue(limit: 10, bounds: .init(capacity: 100))
        let first = try await queue.slot(cost: 60)
        let large = await wait(in: queue, cost: 60)
        let small = await wait(in: queue, cost: 10)
        #expect(queue.counts == .init(queued: 2, running: 1, cost: 60))
        first.finish()
        first.finish()
        let items = [try await large.value, try await small.value]
        #expect(queue.counts == .init(queued: 0, running: 2, cost: 70))
        for item in items { item.finish() }
        #expect(queue.counts == .init(queued: 0, running: 0))
    }

    @Test func anItemOfMoreThanTheCapacityRunsAlone() async throws {
        let queue = WorkQueue(limit: 10, bounds: .init(capacity: 100))
        let large = try await queue.slot(cost: .max)
        let small = await wait(in: queue, cost: 1)
        large.finish()
        let item = try await small.value
        let next = await wait(in: queue, cost: 1_000)
        item.finish()
        try await next.value.finish()
        #expect(queue.counts == .init(queued: 0, running: 0))
    }

    @Test func theNextItemStartsWhenOneThatDidNotFitIsCancelled() async throws {
        let queue = WorkQueue(limit: 10, bounds: .init(capacity: 100))
        let first = try await queue.slot(cost: 60)
        let large = await wait(in: queue, cost: 60)
        let small = await wait(in: queue, cost: 10)
        large.cancel()
        await #expect(throws: CancellationError.self) { try await large.value }
        #expect(try await small.value.state == .running)
        #expect(queue.counts == .init(queued: 0, running: 2, cost: 70))
        first.finish()
    }

    @Test func anItemKeepsAPartOfItsCostWithoutItsSlot() async throws {
        let queue = WorkQueue(bounds: .init(capacity: 100))
        let first = try await queue.slot(cost: 80)
        let second = await wait(in: queue, cost: 30)
        first.keep(cost: 90)
        #expect(first.state == .keepingCost)
        // Nothing else has a slot, so the second one counts as alone.
        let item = try await second.value
        #expect(queue.counts == .init(queued: 0, running: 1, cost: 110))
        first.keep(cost: 1)
        first.priority = .high
        #expect(queue.counts.cost == 110)
        first.finish()
        first.finish()
        #expect(first.state == .finished)
        #expect(queue.counts == .init(queued: 0, running: 1, cost: 30))
        item.finish()
        #expect(queue.counts == .init(queued: 0, running: 0))
    }

    @Test func aFullGroupDelaysNoOthers() async throws {
        let queue = WorkQueue(limit: 3, bounds: .init(perGroup: 1))
        let first = try await queue.slot(group: "a")
        let second = await wait(in: queue, group: "a", priority: .high)
        // Neither those of another group nor those of none wait behind it.
        let other = try await queue.slot(group: "b")
        let last = try await queue.slot()
        #expect(queue.counts == .init(queued: 1, running: 3))
        last.finish()
        #expect(queue.counts == .init(queued: 1, running: 2))
        first.finish()
        #expect(try await second.value.state == .running)
        let third = await wait(in: queue, group: "b")
        other.keep(cost: 0)
        #expect(try await third.value.state == .running)
    }

    @Test func anItemPassesThoseOfAFullGroupInLine() async throws {
        let queue = WorkQueue(limit: 2, bounds: .init(perGroup: 1))
        let items = [try await queue.slot(group: "a"), try await queue.slot()]
        let log = Recorder<String>()
        let names = ["a", "b", nil]
        var tasks: [Task<Void, any Error>] = []
        for (index, name) in names.enumerated() {
            tasks.append(
                Task {
                    let slot = try await queue.slot(group: name)
                    log.add(name ?? "none")
                    slot.finish()
                })
            while queue.counts.queued == index { await Task.yield() }
        }
        items[1].finish()
        try await tasks[1].value
        try await tasks[2].value
        #expect(Set(log.all) == ["b", "none"])
        items[0].finish()
        try await tasks[0].value
        #expect(log.all.last == "a")
        #expect(queue.counts == .init(queued: 0, running: 0))
    }

    @Test func aFullQueueRefusesAtOnce() async throws {
        let queue = WorkQueue(bounds: .init(queued: 1))
        let first = try await queue.slot()
        let second = await wait(in: queue)
        await #expect(throws: WorkQueueError.full) { try await queue.slot(priority: .veryHigh) }
        let log = Recorder<String>()
        let refused = queue.enqueue(onCancel: { log.add("cancelled") }) { _ in log.add("wrong") }
        #expect(refused.state == .cancelled)
        #expect(log.all == ["cancelled"])
        first.finish()
        try await second.value.finish()
        #expect(queue.counts == .init(queued: 0, running: 0))
    }

    @Test func anItemLeavesTheQueueAtItsDeadline() async throws {
        let queue = WorkQueue()
        let first = try await queue.slot()
        await #expect(throws: WorkQueueError.timedOut) { try await queue.slot(deadline: .now) }
        #expect(queue.counts == .init(queued: 0, running: 1))
        first.finish()
        // No item that starts at once has a deadline.
        #expect(try await queue.slot(deadline: .now).state == .running)
    }

    @Test func finishedWorkIsReleased() {
        final class Captured: Sendable {}
        weak var captured: Captured?
        let queue = WorkQueue()
        do {
            let object = Captured()
            captured = object
            queue.enqueue(onCancel: { _ = object }) { item in
                _ = object
                item.finish()
            }
        }
        #expect(captured == nil)
    }
}
