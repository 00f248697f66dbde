import TestSupport
import Testing
import VitrineCore

struct PromiseTests {
    @Test func firstValueIsKept() async {
        let promise = AsyncPromise<Int>()
        promise.fulfill(1)
        promise.fulfill(2)
        #expect(await promise.value() == 1)
        #expect(promise.wait() == 1)
    }

    @Test func tasksAndThreadsReceiveTheValue() async throws {
        let promise = AsyncPromise<Int>(), pool = BlockingExecutor(threads: 4)
        async let first = promise.value()
        async let second = promise.cancellableValue()
        async let third = pool.run { promise.wait() }
        async let fourth = pool.run { promise.wait() }
        await Task.yield()
        promise.fulfill(7)
        #expect(try await [first, second, third, fourth] == [7, 7, 7, 7])
    }

    @Test func cancellationEndsOneWaitOnly() async throws {
        let promise = AsyncPromise<Int>()
        let cancelled = Task { try await promise.cancellableValue() }
        let other = Task { try await promise.cancellableValue() }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        promise.fulfill(3)
        #expect(try await other.value == 3)
    }

    @Test func cancelledTaskStillReceivesAValueThatIsSet() async throws {
        let promise = AsyncPromise<Int>()
        promise.fulfill(4)
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await promise.cancellableValue()
        }
        task.cancel()
        #expect(try await task.value == 4)
    }

    @Test func uncancellableWaitOutlastsCancellation() async {
        let promise = AsyncPromise<Int>()
        let task = Task { await promise.value() }
        task.cancel()
        await Task.yield()
        promise.fulfill(5)
        #expect(await task.value == 5)
    }
}
