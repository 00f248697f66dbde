import Dispatch
import Synchronization
import VitrineCore

/// Bounds the wall-clock time of work that polls a token.
enum Deadline {
    /// Runs `body` with a token that is cancelled with `cancellation` or after `seconds`, whichever comes first.
    ///
    /// - Throws: The error of `body`; a cancellation by the clock becomes ``ImageError/timedOut(input:)``.
    static func run<R>(
        seconds: Double, input: String, cancellation: CancellationToken,
        _ body: (CancellationToken) throws(ImageError) -> R
    ) throws(ImageError) -> R {
        if cancellation.isCancelled { throw .cancelled(input: input) }
        guard seconds.isFinite && seconds < Double(Int32.max) else { return try body(cancellation) }
        let expiry = Expiry()
        let registration = cancellation.register { expiry.token.cancel() }
        let watch = DeadlineWatch.shared.add(expiry, after: seconds)
        defer {
            DeadlineWatch.shared.remove(watch)
            cancellation.remove(registration)
        }
        do {
            return try body(expiry.token)
        } catch .cancelled where expiry.hasPassed {
            throw .timedOut(input: input)
        }
    }
}

/// The token of one piece of work, and whether the clock cancelled it.
private final class Expiry: Sendable {
    let token = CancellationToken()
    private let passed = Atomic<Bool>(false)

    var hasPassed: Bool { passed.load(ordering: .acquiring) }

    func pass() {
        passed.store(true, ordering: .releasing)
        token.cancel()
    }
}

/// One timer for all deadlines of the process.
///
/// Most work ends long before its deadline, so adding one costs a lock and no timer, unless it comes before all others:
/// with deadlines of one length that is once in that length.
private final class DeadlineWatch: Sendable {
    static let shared = DeadlineWatch()

    private struct State {
        var deadlines: [UInt64: (time: DispatchTime, expiry: Expiry)] = [:]
        var nextID: UInt64 = 0
        /// When the timer will fire next; nil when it is not set.
        var wakeUp: DispatchTime?
    }

    private let state = Locked(State())

    /// Calls ``Expiry/pass()`` after `seconds` (at once if not positive), unless removed before.
    func add(_ expiry: Expiry, after seconds: Double) -> UInt64 {
        let time = DispatchTime.now() + max(0, seconds)
        let (id, isFirst) = state.withLock { state in
            state.nextID += 1
            state.deadlines[state.nextID] = (time, expiry)
            let isFirst = state.wakeUp.map { time < $0 } ?? true
            if isFirst { state.wakeUp = time }
            return (state.nextID, isFirst)
        }
        if isFirst { wake(at: time) }
        return id
    }

    func remove(_ id: UInt64) {
        state.withLock { _ = $0.deadlines.removeValue(forKey: id) }
    }

    private func wake(at time: DispatchTime) {
        DispatchQueue.global().asyncAfter(deadline: time) { self.fire(at: time) }
    }

    private func fire(at time: DispatchTime) {
        let (due, next) = state.withLock { state -> ([Expiry], DispatchTime?) in
            let now = DispatchTime.now()
            let due = state.deadlines.filter { $0.value.time <= now }
            for id in due.keys { state.deadlines[id] = nil }
            // An earlier timer that was overtaken leaves the next wake-up to the one that overtook it.
            guard state.wakeUp.map({ $0 <= time }) ?? false else { return (due.values.map(\.expiry), nil) }
            state.wakeUp = state.deadlines.values.map(\.time).min()
            return (due.values.map(\.expiry), state.wakeUp)
        }
        for expiry in due { expiry.pass() }
        if let next { wake(at: next) }
    }
}
