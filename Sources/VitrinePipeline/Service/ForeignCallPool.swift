import VitrineCore

/// Threads for calls of foreign code that may never come back.
///
/// A call that is given up keeps its thread; the next one gets another. Threads that do not come back within the grace
/// are written off, and there is a bound on these: beyond it no call is made until one comes back.
final class ForeignCallPool: Sendable {
    private let idleLimit: Int
    private let idle = Locked<[ExecutionPriority: [BlockingExecutor]]>([:])
    private let calls: ForeignCalls
    private let limits: Deadlines
    private let graces: Deadlines

    /// - Parameters:
    ///   - idleLimit: How many threads of each priority are kept for later calls.
    ///   - stuckLimit: How many may be written off.
    ///   - timeLimit: How long a call may take.
    ///   - grace: How long a call that was given up may go on before it counts as stuck.
    init(idleLimit: Int, stuckLimit: Int, timeLimit: Duration, grace: Duration) {
        let calls = ForeignCalls(stuckLimit: max(1, stuckLimit))
        self.idleLimit = idleLimit
        self.calls = calls
        limits = Deadlines(timeLimit, isOpen: { calls.isRunning($0) }, expire: { calls.timeOut($0) })
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
        _ id: Int, priority: ExecutionPriority, onMainActor: Bool = false, body: @escaping @Sendable () -> Void,
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

    /// A call comes to its foreign part: its time begins, however long its thread took to start. On the main actor it
    /// has begun before, as that may hang itself.
    func didBegin(_ id: Int) { limits.add(id) }

    /// The foreign part of a call has returned: its time limit no longer applies.
    func didReturn(_ id: Int) { calls.end(id) }

    /// Gives a call up: its source has been told to stop.
    ///
    /// - Parameter release: Gives its slot back: called at once as long as there are threads to spare, else when the
    ///   call comes back or counts as stuck.
    func abandon(_ id: Int, release: @escaping @Sendable () -> Void) {
        if calls.abandon(id, release) { release() }
        if calls.isAbandoned(id) { graces.add(id) }
    }

    /// Keeps a thread for later, unless there are enough: it ends with its executor then.
    private func park(_ thread: BlockingExecutor, _ priority: ExecutionPriority) {
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
