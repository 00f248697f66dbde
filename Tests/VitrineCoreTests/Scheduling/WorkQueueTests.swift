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
        let queue = WorkQueue(isSuspended: true)
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
        let queue = WorkQueue(isSuspended: true)
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
        let queue = WorkQueue(isSuspended: true)
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
        let queue = WorkQueue(isSuspended: true)
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
        let queue = WorkQueue(isSuspended: true)
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
