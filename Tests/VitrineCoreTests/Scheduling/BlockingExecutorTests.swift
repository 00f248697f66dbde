import Foundation
import Synchronization
import TestSupport
import Testing
import VitrineCore

struct BlockingExecutorTests {
    private struct Failure: Error, Equatable {}

    @Test func returnsValuesAndTypedErrors() async {
        let executor = BlockingExecutor(threads: 1)
        let value = await executor.run { 3 }
        #expect(value == 3)
        do throws(Failure) {
            try await executor.run { () throws(Failure) in throw Failure() }
            Issue.record("no error")
        } catch {
            #expect(error == Failure())
        }
    }

    @Test func runsOnAsManyThreadsAsItHas() async {
        let executor = BlockingExecutor(threads: 3)
        let barrier = DispatchSemaphore(value: 0), arrived = DispatchSemaphore(value: 0)
        let threads = Recorder<UInt>()
        for _ in 0..<3 {
            executor.submit {
                threads.add(UInt(bitPattern: pthread_self().hashValue))
                arrived.signal()
                barrier.wait()
            }
        }
        // Returns only if all three bodies are inside at once.
        await BlockingExecutor(threads: 1).run { for _ in 0..<3 { arrived.wait() } }
        for _ in 0..<3 { barrier.signal() }
        #expect(Set(threads.all).count == 3)
    }

    @Test func workStartsInTheOrderOfSubmission() async {
        let executor = BlockingExecutor(threads: 1)
        let order = Recorder<Int>()
        for index in 0..<100 { executor.submit { order.add(index) } }
        await executor.run {}
        #expect(order.all == Array(0..<100))
    }

    #if os(Linux)
    @Test func tasksCanPreferIt() async throws {
        let executor = BlockingExecutor(threads: 1, name: "preferred, by a task")
        let name = try await Task(executorPreference: executor) {
            await Task.yield()
            return String(decoding: try FileContents.read("/proc/thread-self/comm"), as: UTF8.self)
        }.value
        #expect(name == "preferred, by a\n")
    }
    #endif

    @Test func threadsHaveTwoMebibytesOfStack() async {
        let executor = BlockingExecutor(threads: 1)
        let touched = await executor.run {
            withUnsafeTemporaryAllocation(byteCount: 1_500_000, alignment: 16) { buffer in
                for offset in stride(from: 0, to: buffer.count, by: 4096) { buffer[offset] = 1 }
                return buffer.count
            }
        }
        #expect(touched == 1_500_000)
    }

    @Test func lastReferenceEndsTheThreadsAfterTheirWork() async {
        let done = Counter()
        let ended = Gate()
        let endings = Counter()
        do {
            let executor = BlockingExecutor(threads: 1, onThreadEnd: {
                endings.add(1)
                ended.open()
            })
            for _ in 0..<100 { executor.submit { done.add(1) } }
        }
        await ended.wait()
        #expect(done.value == 100)
        #expect(endings.value == 1)
    }

    @Test func lastReferenceMayGoOnOneOfItsOwnThreads() async {
        for _ in 0..<50 {
            let ended = Gate()
            do {
                let executor = BlockingExecutor(threads: 1, onThreadEnd: { ended.open() })
                // The work keeps the executor; nobody else does when it runs.
                executor.submit { withExtendedLifetime(executor) {} }
            }
            await ended.wait()
        }
    }

    @Test func shutdownWaitsAndLaterWorkStillRuns() {
        let executor = BlockingExecutor(threads: 2)
        let done = Counter()
        for _ in 0..<50 { executor.submit { done.add(1) } }
        executor.shutdown()
        #expect(done.value == 50)
        executor.submit { done.add(1) }
        #expect(done.value == 51)
    }

    @Test func manyCallersAtOnceAllReturn() async {
        let executor = BlockingExecutor(threads: 4)
        let sum = await withTaskGroup(of: Int.self) { group in
            for index in 0..<1000 { group.addTask { await executor.run { index } } }
            return await group.reduce(0, +)
        }
        #expect(sum == 499_500)
    }
}
