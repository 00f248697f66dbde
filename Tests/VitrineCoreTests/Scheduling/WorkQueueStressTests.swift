import Synchronization
import TestSupport
import Testing
import VitrineCore

struct WorkQueueStressTests {
    @Test func everyItemEndsOnceUnderCancellationAndPriorityChanges() async {
        let queue = WorkQueue(limit: 3, reserved: [.high: 1])
        let executor = BlockingExecutor(threads: 3)
        let ended = Counter(), running = Counter(), worst = Counter()
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<4 {
                group.addTask {
                    var items: [WorkItem] = []
                    for index in 0..<500 {
                        let priority = RequestPriority.allCases[(index + lane) % 5]
                        let item = queue.enqueue(
                            priority: priority, onCancel: { ended.add(1) }
                        ) { item in
                            let now = running.add(1)
                            worst.raise(to: now)
                            executor.submit {
                                running.add(-1)
                                if !item.isCancelled { ended.add(1) }
                                item.finish()
                            }
                        }
                        items.append(item)
                        if index % 3 == 0 { items[index / 2].priority = RequestPriority.allCases[index % 5] }
                        if index % 7 == 0 { items[index / 2].cancel() }
                    }
                }
            }
        }
        await queue.waitUntilIdle()
        #expect(queue.counts == .init(queued: 0, running: 0))
        #expect(worst.value <= 3)
        // Every item ended or was told; one that was told while it ended may count twice.
        #expect(ended.value >= 2000)
    }

    @Test func awaitedWorkSurvivesRacingCancellations() async {
        let queue = WorkQueue(limit: 2)
        let inside = Counter(), done = Counter(), cancelled = Counter()
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<400 {
                group.addTask {
                    let task = Task {
                        try await queue.run(priority: RequestPriority.allCases[index % 5]) {
                            let now = inside.add(1)
                            #expect(now <= 2)
                            await Task.yield()
                            inside.add(-1)
                        }
                    }
                    if index % 2 == 0 { task.cancel() }
                    switch await task.result {
                    case .success: done.add(1)
                    case .failure: cancelled.add(1)
                    }
                }
            }
        }
        #expect(done.value + cancelled.value == 400)
        #expect(done.value >= 200)
        #expect(queue.counts == .init(queued: 0, running: 0))
    }
}
