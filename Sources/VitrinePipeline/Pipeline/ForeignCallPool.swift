#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCache
import VitrineCore

/// Threads for calls of foreign code that may never come back.
///
/// A call that is given up keeps its thread; the next one gets another. Threads that do not come back within the grace
/// are written off, and there is a bound on these: beyond it no call is made until one comes back.
final class ForeignCallPool: Sendable {
    private let idleLimit: Int
    private let idle = Locked<[RequestPriority: [BlockingExecutor]]>([:])
    private let calls: ForeignCalls
    private let limits: Deadlines
    /// For calls that bound their own processor time.
    private let longLimits: Deadlines
    private let graces: Deadlines
    /// The calls that run in tasks.
    private let tasks = Locked<[Int: Task<Void, Never>]>([:])

    /// - Parameters:
    ///   - idleLimit: How many threads of each priority are kept for later calls.
    ///   - stuckLimit: How many may be written off.
    ///   - timeLimit: How long a call may take.
    ///   - longTimeLimit: How long a call may take that bounds its own processor time.
    ///   - grace: How long a call that was given up may go on before it counts as stuck.
    init(idleLimit: Int, stuckLimit: Int, timeLimit: Duration, longTimeLimit: Duration, grace: Duration) {
        let calls = ForeignCalls(stuckLimit: max(1, stuckLimit))
        self.idleLimit = idleLimit
        self.calls = calls
        limits = Deadlines(timeLimit, isOpen: { calls.isRunning($0) }, expire: { calls.timeOut($0) })
        longLimits = Deadlines(
            longTimeLimit, isOpen: { calls.isRunning($0) }, expire: { calls.timeOut($0) })
        graces = Deadlines(grace, isOpen: { calls.isAbandoned($0) }, expire: { calls.writeOff($0) })
    }

    /// How many calls have been given up and have not come back.
    var stuckCount: Int { calls.stuckCount }

    /// Makes a call.
    ///
    /// - Parameters:
    ///   - id: A number that no other call has.
    ///   - priority: Of the thread.
    ///   - onMainActor: Whether to use the main actor in place of a thread.
    ///   - body: The call, which says by ``didBegin(_:)`` when its time begins.
    ///   - onTimeout: Called if it takes too long, on any thread. The call counts as stuck then.
    /// - Returns: false, and nothing is called, if too many never came back.
    func call(
        _ id: Int, priority: RequestPriority, onMainActor: Bool = false, body: @escaping @Sendable () -> Void,
        onTimeout: @escaping @Sendable () -> Void
    ) -> Bool {
        guard calls.begin(id, onTimeout) else { return false }
        if onMainActor {
            limits.add(id)
            Task { @MainActor in
                body()
                calls.end(id)
            }
            return true
        }
        let parked = idle.withLock { $0[priority]?.popLast() }
        let thread = parked ?? BlockingExecutor(threads: 1, name: "vitrine-make")
        thread.submit { [self] in
            if parked == nil { ThreadPriority.set(priority) }
            body()
            park(thread, priority)
            calls.end(id)
        }
        return true
    }

    /// Makes a call in a task, which is cancelled when the call is given up or takes too long.
    ///
    /// - Parameters:
    ///   - id: A number that no other call has.
    ///   - body: The call, which says by ``didBegin(_:)`` when its time begins.
    ///   - onTimeout: Called if it takes too long, on any thread. The call counts as stuck then.
    /// - Returns: false, and nothing is called, if too many never came back.
    func callInTask(
        _ id: Int, body: @escaping @Sendable () async -> Void, onTimeout: @escaping @Sendable () -> Void
    ) -> Bool {
        let isBegun = calls.begin(id) { [self] in
            onTimeout()
            cancelTask(id)
        }
        guard isBegun else { return false }
        // Under the lock, so that the task does not end before it is noted.
        tasks.withLock { running in
            running[id] = Task { [self] in
                await body()
                tasks.withLock { $0[id] = nil }
                calls.end(id)
            }
        }
        return true
    }

    private func cancelTask(_ id: Int) { tasks.withLock { $0[id] }?.cancel() }

    /// A call comes to its foreign part: its time begins, however long its thread took to start. On the main actor it
    /// has begun before, as that may hang itself.
    ///
    /// - Parameter boundsItself: Whether it bounds its own processor time.
    func didBegin(_ id: Int, boundsItself: Bool = false) { (boundsItself ? longLimits : limits).add(id) }

    /// The foreign part of a call has returned: its time limit no longer applies.
    func didReturn(_ id: Int) { calls.end(id) }

    /// Gives a call up: its source has been told to stop.
    ///
    /// - Parameter release: Gives its slot back: called at once as long as there are threads to spare, else when the
    ///   call comes back or counts as stuck.
    func abandon(_ id: Int, release: @escaping @Sendable () -> Void) {
        cancelTask(id)
        if calls.abandon(id, release) { release() }
        if calls.isAbandoned(id) { graces.add(id) }
    }

    /// Keeps a thread for later, unless there are enough: it ends with its executor then.
    private func park(_ thread: BlockingExecutor, _ priority: RequestPriority) {
        idle.withLock { idle in
            guard idle[priority, default: []].count < idleLimit else { return }
            idle[priority, default: []].append(thread)
        }
    }
}

/// The calls that a ``ForeignCallPool`` has out.
private final class ForeignCalls: Sendable {
    private enum Stage {
        case running
        /// Given up, and told so a moment ago. The closure gives the slot back, if that had to wait.
        case abandoned((@Sendable () -> Void)?)
        case writtenOff
    }

    private struct Call {
        var stage = Stage.running
        let onTimeout: @Sendable () -> Void
    }

    private struct State {
        var calls: [Int: Call] = [:]
        var abandonedCount = 0
        var writtenOffCount = 0
    }

    private let stuckLimit: Int
    private let state = Locked(State())

    init(stuckLimit: Int) { self.stuckLimit = stuckLimit }

    var stuckCount: Int { state.withLock { $0.abandonedCount + $0.writtenOffCount } }

    func isRunning(_ id: Int) -> Bool {
        state.withLock { if case .running? = $0.calls[id]?.stage { true } else { false } }
    }

    func isAbandoned(_ id: Int) -> Bool {
        state.withLock { if case .abandoned? = $0.calls[id]?.stage { true } else { false } }
    }

    /// - Returns: Whether there is a thread to spare.
    func begin(_ id: Int, _ onTimeout: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard state.writtenOffCount < stuckLimit else { return false }
            state.calls[id] = Call(onTimeout: onTimeout)
            return true
        }
    }

    /// - Returns: Whether the slot is free now, also because the call has ended before.
    func abandon(_ id: Int, _ release: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard case .running? = state.calls[id]?.stage else { return true }
            let isNow = state.abandonedCount + state.writtenOffCount < stuckLimit
            state.calls[id]?.stage = .abandoned(isNow ? nil : release)
            state.abandonedCount += 1
            return isNow
        }
    }

    func timeOut(_ id: Int) {
        let onTimeout: (@Sendable () -> Void)? = state.withLock { state in
            guard let call = state.calls[id], case .running = call.stage else { return nil }
            state.calls[id]?.stage = .writtenOff
            state.writtenOffCount += 1
            return call.onTimeout
        }
        onTimeout?()
    }

    func writeOff(_ id: Int) {
        let release: (@Sendable () -> Void)? = state.withLock { state in
            guard case .abandoned(let release)? = state.calls[id]?.stage else { return nil }
            state.calls[id]?.stage = .writtenOff
            state.abandonedCount -= 1
            state.writtenOffCount += 1
            return release
        }
        release?()
    }

    func end(_ id: Int) {
        let (call, release) = state.withLock { state -> (Call?, (@Sendable () -> Void)?) in
            guard let call = state.calls.removeValue(forKey: id) else { return (nil, nil) }
            switch call.stage {
            case .running: return (call, nil)
            case .writtenOff:
                state.writtenOffCount -= 1
                return (call, nil)
            case .abandoned(let release):
                state.abandonedCount -= 1
                return (call, release)
            }
        }
        // What it captured is released here, outside the lock.
        _ = call
        release?()
    }
}

/// Tells of things that take longer than a certain time, one and the same for all. Costs next to nothing for those that
/// do not: a task sleeps for the first one alone.
final class Deadlines: Sendable {
    private struct State {
        var entries: ArraySlice<(id: Int, time: ContinuousClock.Instant)> = []
        var isWatched = false
    }

    private let duration: Duration
    private let isOpen: @Sendable (Int) -> Bool
    private let expire: @Sendable (Int) -> Void
    private let state = Locked(State())

    /// - Parameters:
    ///   - duration: How long each may take.
    ///   - isOpen: Whether a thing has not ended yet.
    ///   - expire: Called for each that has not ended in time, on any thread; also for a few that have just ended.
    init(
        _ duration: Duration, isOpen: @escaping @Sendable (Int) -> Bool, expire: @escaping @Sendable (Int) -> Void
    ) {
        self.duration = duration
        self.isOpen = isOpen
        self.expire = expire
    }

    /// The time of a thing begins now.
    func add(_ id: Int) {
        let (isFirst, isLong) = state.withLock { state in
            // Under the lock, so that they are in order.
            state.entries.append((id, .now + duration))
            defer { state.isWatched = true }
            return (!state.isWatched, state.entries.count.isMultiple(of: 1_024))
        }
        if isLong { forgetEnded() }
        if isFirst { watch() }
    }

    private func forgetEnded() {
        let ids = state.withLock { $0.entries.map(\.id) }
        let ended = Set(ids.filter { !isOpen($0) })
        state.withLock { $0.entries.removeAll { ended.contains($0.id) } }
    }

    private func watch() {
        Task { [weak self] in
            while let time = self?.next() { try? await Task.sleep(until: time, clock: .continuous) }
        }
    }

    /// Reports the entries that are due.
    ///
    /// - Returns: The time of the next one; nil, and the watching ends, if there is none.
    private func next() -> ContinuousClock.Instant? {
        while true {
            let (due, time) = state.withLock { state -> (Int?, ContinuousClock.Instant?) in
                guard let first = state.entries.first else {
                    state.isWatched = false
                    return (nil, nil)
                }
                guard first.time <= .now || !isOpen(first.id) else { return (nil, first.time) }
                state.entries.removeFirst()
                return (first.id, nil)
            }
            guard let due else { return time }
            if isOpen(due) { expire(due) }
        }
    }
}

/// Gives the calling thread its share of the processor.
enum ThreadPriority {
    /// Sets the share for the rest of the thread's life. Without privileges a thread cannot raise it again.
    static func set(_ priority: RequestPriority) {
        #if canImport(Darwin)
        let quality: qos_class_t =
            switch priority {
            case .veryLow: QOS_CLASS_BACKGROUND
            case .low: QOS_CLASS_UTILITY
            case .normal: QOS_CLASS_DEFAULT
            case .high, .veryHigh: QOS_CLASS_USER_INITIATED
            }
        pthread_set_qos_class_self_np(quality, 0)
        #else
        // Linux knows nice values of threads, and 0 for the calling one (setpriority(2), "C library/kernel
        // differences"; sched(7)). Threads inherit it, so that 0 has to be set as well. Refused where the program may
        // not: the thread then stays as it is.
        guard current != nice(priority) else { return }
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, nice(priority))
        #endif
    }

    #if !canImport(Darwin)
    private static func nice(_ priority: RequestPriority) -> Int32 {
        switch priority {
        case .veryLow: 10
        case .low: 5
        case .normal: 0
        case .high, .veryHigh: -5
        }
    }

    /// The calling thread's nice value.
    static var current: Int32 { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }
    #endif
}

/// Facts about the calling thread.
enum CallingThread {
    /// Whether it may block: it is neither the main thread nor, as far as can be told, one of Swift's cooperative pool.
    static var mayBlock: Bool { !CallbackQueue.isMainActor && withUnsafeCurrentTask { $0 == nil } }
}
