import VitrineCore

/// Threads for calls of foreign code that may never come back.
///
/// A call that is given up keeps its thread; the next one gets another. Threads that do not come back within the grace
/// are written off, and there is a bound on these: beyond it no call is made until one comes back.
final class Crew: Sendable {
    private enum Stage {
        case running
        /// Given up, and told so a moment ago. The closure gives the slot back, if that had to wait.
        case abandoned((@Sendable () -> Void)?)
        case writtenOff
    }

    private struct State {
        var idle: [ExecutionPriority: [BlockingExecutor]] = [:]
        var calls: [Int: (stage: Stage, timer: Task<Void, Never>?)] = [:]
        var abandonedCount = 0
        var writtenOffCount = 0
    }

    private let idleLimit: Int
    private let stuckLimit: Int
    private let grace: Duration
    private let state = Locked(State())

    /// - Parameters:
    ///   - idleLimit: How many threads of each priority are kept for later calls.
    ///   - stuckLimit: How many may be written off.
    ///   - grace: How long a call that was given up may go on before it counts as stuck.
    init(idleLimit: Int, stuckLimit: Int, grace: Duration) {
        self.idleLimit = idleLimit
        self.stuckLimit = max(1, stuckLimit)
        self.grace = grace
    }

    /// How many calls have been given up and have not come back.
    var stuckCount: Int { state.withLock { $0.abandonedCount + $0.writtenOffCount } }

    /// How many calls are out.
    var callCount: Int { state.withLock { $0.calls.count } }

    /// Makes a call.
    ///
    /// - Parameters:
    ///   - id: A number that no other call has.
    ///   - priority: Of the thread.
    ///   - onMainActor: Whether to use the main actor in place of a thread.
    ///   - timeLimit: How long it may take.
    ///   - body: The call.
    ///   - onTimeout: Called if it takes longer, on any thread. The call counts as written off then.
    /// - Returns: false, and nothing is called, if too many never came back.
    func call(
        _ id: Int, priority: ExecutionPriority, onMainActor: Bool = false, timeLimit: Duration,
        body: @escaping @Sendable () -> Void, onTimeout: @escaping @Sendable () -> Void
    ) -> Bool {
        let (isAdmitted, idle) = state.withLock { state -> (Bool, BlockingExecutor?) in
            guard state.writtenOffCount < stuckLimit else { return (false, nil) }
            state.calls[id] = (.running, nil)
            return (true, onMainActor ? nil : state.idle[priority]?.popLast())
        }
        guard isAdmitted else { return false }
        let timer = after(timeLimit) {
            if self.writeOff(id) { onTimeout() }
        }
        state.withLock { $0.calls[id]?.timer = timer }
        if onMainActor {
            Task { @MainActor in
                body()
                self.callDidEnd(id)
            }
            return true
        }
        let thread = idle ?? BlockingExecutor(threads: 1, name: "vitrine-make")
        thread.submit {
            if idle == nil { ThreadPriority.set(priority) }
            body()
            self.park(thread, priority)
            self.callDidEnd(id)
        }
        return true
    }

    /// Gives a call up: its source has been told to stop.
    ///
    /// - Parameter release: Gives its slot back: called at once as long as there are threads to spare, else when the
    ///   call comes back or counts as stuck.
    func abandon(_ id: Int, release: @escaping @Sendable () -> Void) {
        let isNow = state.withLock { state in
            guard let call = state.calls[id], case .running = call.stage else { return true }
            let isNow = state.abandonedCount + state.writtenOffCount < stuckLimit
            call.timer?.cancel()
            state.calls[id] = (.abandoned(isNow ? nil : release), nil)
            state.abandonedCount += 1
            return isNow
        }
        if isNow { release() }
        let timer = after(grace) { _ = self.writeOff(id) }
        let isOver = state.withLock { state in
            guard state.calls[id] != nil else { return true }
            state.calls[id]?.timer = timer
            return false
        }
        if isOver { timer.cancel() }
    }

    // MARK: The end of calls

    /// - Returns: Whether the call was still out, and not given up before.
    private func writeOff(_ id: Int) -> Bool {
        let (wasRunning, release) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            guard let call = state.calls[id] else { return (false, nil) }
            switch call.stage {
            case .writtenOff: return (false, nil)
            case .running:
                state.calls[id]?.stage = .writtenOff
                state.writtenOffCount += 1
                return (true, nil)
            case .abandoned(let release):
                state.calls[id]?.stage = .writtenOff
                state.abandonedCount -= 1
                state.writtenOffCount += 1
                return (false, release)
            }
        }
        release?()
        return wasRunning
    }

    private func callDidEnd(_ id: Int) {
        let (timer, release) = state.withLock { state -> (Task<Void, Never>?, (@Sendable () -> Void)?) in
            guard let call = state.calls.removeValue(forKey: id) else { return (nil, nil) }
            switch call.stage {
            case .running: return (call.timer, nil)
            case .writtenOff:
                state.writtenOffCount -= 1
                return (call.timer, nil)
            case .abandoned(let release):
                state.abandonedCount -= 1
                return (call.timer, release)
            }
        }
        timer?.cancel()
        release?()
    }

    /// Keeps a thread for later, unless there are enough: it ends with its executor then.
    private func park(_ thread: BlockingExecutor, _ priority: ExecutionPriority) {
        state.withLock { state in
            guard state.idle[priority, default: []].count < idleLimit else { return }
            state.idle[priority, default: []].append(thread)
        }
    }

    private func after(_ duration: Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        Task {
            guard (try? await Task.sleep(for: duration)) != nil else { return }
            body()
        }
    }
}
