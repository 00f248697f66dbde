import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Calls of sources, without a pipeline.
@Suite struct SourceCallerTests {
    /// A call on a thread that has begun, and ends when it is told to.
    private final class HeldCall: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        let failed = Gate()
        let errors = Recorder<ImagePipelineError>()

        init(_ caller: SourceCaller, end: @escaping @Sendable () -> Void = {}) async {
            let (semaphore, failed, errors, begun) = (semaphore, failed, errors, Gate())
            caller.enqueue(caller.newCall(), on: caller.making, body: .blocking {
                begun.open()
                semaphore.wait()
                end()
            }, onFailure: { error in
                errors.add(error("held"))
                failed.open()
            })
            await begun.wait()
        }

        func end() { semaphore.signal() }
    }

    private func caller(timeLimit: Duration = .seconds(3_600)) -> SourceCaller {
        var configuration = ImagePipeline.Configuration(root: "/nonexistent", concurrency: 1)
        configuration.timeLimit = timeLimit
        return SourceCaller(configuration)
    }

    @Test func callsOnThreadsAndInTasksShareTheSlots() async {
        let (caller, order, ended) = (caller(), Recorder<String>(), Gate())
        let held = await HeldCall(caller) { order.add("thread") }
        caller.enqueue(caller.newCall(), on: caller.making, body: .task {
            order.add("task")
            ended.open()
        }, onFailure: { _ in order.add("failure") })
        #expect(caller.making.counts == .init(queued: 1, running: 1))
        held.end()
        await ended.wait()
        await caller.making.waitUntilIdle()
        #expect(order.all == ["thread", "task"])
    }

    @Test func aCallThatTakesTooLongFailsAndFreesItsSlot() async {
        let caller = caller(timeLimit: .milliseconds(20))
        let held = await HeldCall(caller)
        await held.failed.wait()
        #expect(caller.making.counts == .init(queued: 0, running: 0))
        guard case .timedOut(source: "held")? = held.errors.all.first else {
            return #expect(Bool(false), "\(held.errors.all)")
        }
        held.end()
    }

    @Test func theCallOfACancelledTaskLeavesTheQueue() async {
        let (caller, calls) = (caller(), Counter())
        let held = await HeldCall(caller)
        let task = Task {
            try await caller.value { call, deliver in
                caller.enqueue(call, on: caller.making, body: .blocking {
                    calls.add(1)
                    deliver(.success(1))
                }, onFailure: { deliver(.failure($0("waiting"))) })
            }
        }
        while caller.making.counts.queued == 0 { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(caller.making.counts == .init(queued: 0, running: 1))
        held.end()
        await caller.making.waitUntilIdle()
        #expect(calls.value == 0)
    }

    @Test func sourcesThatSuspendOrBlockAreAskedForTheirIdentity() async throws {
        struct Suspending: ImageSource {
            func identity() async throws(ImagePipelineError) -> CacheKey {
                await Task.yield()
                return "suspending"
            }

            func image(_ request: RenderRequest) async throws -> PixelImage { throw TestFailure() }
        }
        let caller = caller()
        #expect(try await caller.identity(of: Suspending()) == "suspending")
        #expect(try await caller.identity(of: FiringSource("blocking", knowsItself: false)) == "blocking")
        #expect(caller.making.counts == .init(queued: 0, running: 0))
    }
}
