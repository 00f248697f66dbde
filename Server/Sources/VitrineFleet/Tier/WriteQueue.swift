package import NIOCore
import Synchronization

/// Writes to a server in the background, bounded in number and bytes.
package final class WriteQueue: Sendable {
    private struct State {
        var jobs = CircularBuffer<(cost: Int, job: @Sendable () async -> Void)>()
        var bytes = 0
        var running = 0
        var idle: [Signal] = []
    }

    private let state = Mutex(State())
    private let limit: Int
    private static let countLimit = 4_096
    private let writers: Int

    /// Creates a queue.
    ///
    /// - Parameters:
    ///   - limit: The most bytes that wait.
    ///   - writers: How many writes are under way at once.
    package init(limit: Int, writers: Int) { (self.limit, self.writers) = (limit, writers) }

    /// The bytes of all writes that are not complete.
    package var bytes: Int { state.withLock { $0.bytes } }

    /// Adds a write.
    ///
    /// - Parameter cost: Its bytes.
    /// - Returns: false if the queue is full; the write is then dropped.
    package func append(cost: Int, _ job: @escaping @Sendable () async -> Void) -> Bool {
        let (isAdded, isStarting) = state.withLock { state in
            guard state.bytes + cost <= limit, state.jobs.count < Self.countLimit else { return (false, false) }
            state.bytes += cost
            state.jobs.append((cost, job))
            guard state.running < writers else { return (true, false) }
            state.running += 1
            return (true, true)
        }
        if isStarting { Task { await self.run() } }
        return isAdded
    }

    private func run() async {
        var done = 0
        while let (cost, job) = next(done) {
            await job()
            done = cost
        }
    }

    private func next(_ done: Int) -> (Int, @Sendable () async -> Void)? {
        let (next, idle) = state.withLock { state -> ((Int, @Sendable () async -> Void)?, [Signal]) in
            state.bytes -= done
            guard state.jobs.isEmpty else { return (state.jobs.removeFirst(), []) }
            state.running -= 1
            guard state.running == 0 else { return (nil, []) }
            defer { state.idle = [] }
            return (nil, state.idle)
        }
        for signal in idle { signal.fire() }
        return next
    }

    /// Waits until no write is left, for at most a time.
    ///
    /// - Parameter loop: Measures the time.
    package func flush(atMost time: Duration, on loop: any EventLoop) async {
        let signal = Signal()
        let isIdle = state.withLock { state in
            if state.running > 0 { state.idle.append(signal) }
            return state.running == 0
        }
        if !isIdle { await signal.wait(atMost: time, on: loop) }
    }
}
