import Dispatch
import Synchronization
import VitrineCore

/// Bounds the processor time of work that polls a token.
///
/// Processor time, so that a good file does not fail because the machine is busy. Work that waits, for another process
/// or a slow disk, has no processor time: a multiple of the deadline bounds its wall time.
package enum Deadline {
    /// The wall time that work may take, as a multiple of its processor time.
    package static let wallFactor = 10.0

    /// Runs `body` with a token that is cancelled with `cancellation`, after `seconds` of processor time of this
    /// thread, or after ``wallFactor`` times as many seconds.
    ///
    /// Processor time that others spend for the work counts if they ``charge(_:to:)`` it.
    ///
    /// - Throws: The error of `body`. If the token was cancelled meanwhile, no result or error of `body` counts, since
    ///   readers may have passed over the failed reads: ``ImageError/timedOut(input:)`` for a cancellation by the
    ///   clock, otherwise ``ImageError/cancelled(input:)``.
    package static func run<R>(
        seconds: Double, input: String, cancellation: CancellationToken,
        _ body: (CancellationToken) throws(ImageError) -> R
    ) throws(ImageError) -> R {
        if cancellation.isCancelled { throw .cancelled(input: input) }
        guard seconds.isFinite && seconds < Double(Int32.max) else { return try body(cancellation) }
        let expiry = Expiry(seconds: max(0, seconds))
        let registration = cancellation.register { expiry.token.cancel() }
        DeadlineWatch.shared.add(expiry)
        defer {
            DeadlineWatch.shared.remove(expiry)
            cancellation.remove(registration)
        }
        do throws(ImageError) {
            let result = try body(expiry.token)
            if let error = expiry.error(input) { throw error }
            return result
        } catch {
            throw expiry.error(input) ?? error
        }
    }

    /// Seconds of processor time that are left to the work of a token from ``run(seconds:input:cancellation:_:)``; nil
    /// for any other token.
    package static func remaining(of token: CancellationToken) -> Double? { DeadlineWatch.shared.expiry(of: token)?.remaining }

    /// Counts processor time of another process or thread for the work of a token.
    package static func charge(_ seconds: Double, to token: CancellationToken) {
        DeadlineWatch.shared.expiry(of: token)?.charge(seconds)
    }
}

/// The token of one piece of work, its processor time, and whether the clock cancelled it.
private final class Expiry: Sendable {
    let token = CancellationToken()
    /// The moment at which the work ends in any case.
    let end: DispatchTime
    private let seconds: Double
    private let clock = ThreadClock.current
    private let begin: Double
    private let charged = Locked(0.0)
    private let passed = Atomic<Bool>(false)

    init(seconds: Double) {
        self.seconds = seconds
        begin = clock.seconds ?? 0
        end = .now() + min(seconds * Deadline.wallFactor, Double(Int32.max))
    }

    /// Seconds of processor time that are left.
    var remaining: Double { seconds - max(0, (clock.seconds ?? 0) - begin) - charged.withLock { $0 } }

    /// When to look at the clocks next: a thread cannot use processor time faster than time passes.
    var nextCheck: DispatchTime { min(end, .now() + max(0, remaining)) }

    func charge(_ seconds: Double) { charged.withLock { $0 += max(0, seconds) } }

    func pass() {
        passed.store(true, ordering: .releasing)
        token.cancel()
    }

    /// The error of work that was cancelled; nil for any other.
    func error(_ input: String) -> ImageError? {
        guard token.isCancelled else { return nil }
        return passed.load(ordering: .acquiring) ? .timedOut(input: input) : .cancelled(input: input)
    }
}

/// One timer for all deadlines of the process.
///
/// Most work ends long before its deadline, so adding one costs a lock and no timer, unless it comes before all others:
/// with deadlines of one length that is once in that length.
private final class DeadlineWatch: Sendable {
    static let shared = DeadlineWatch()

    private struct State {
        var deadlines: [ObjectIdentifier: (time: DispatchTime, expiry: Expiry)] = [:]
        /// When the timer will fire next; nil when it is not set.
        var wakeUp: DispatchTime?
    }

    private let state = Locked(State())

    /// Calls ``Expiry/pass()`` when the time of the work is over, unless it is removed before.
    func add(_ expiry: Expiry) {
        let time = expiry.nextCheck
        let isFirst = state.withLock { state in
            state.deadlines[ObjectIdentifier(expiry.token)] = (time, expiry)
            let isFirst = state.wakeUp.map { time < $0 } ?? true
            if isFirst { state.wakeUp = time }
            return isFirst
        }
        if isFirst { wake(at: time) }
    }

    func remove(_ expiry: Expiry) {
        state.withLock { _ = $0.deadlines.removeValue(forKey: ObjectIdentifier(expiry.token)) }
    }

    func expiry(of token: CancellationToken) -> Expiry? {
        state.withLock { $0.deadlines[ObjectIdentifier(token)]?.expiry }
    }

    private func wake(at time: DispatchTime) {
        DispatchQueue.global().asyncAfter(deadline: time) { self.fire(at: time) }
    }

    private func fire(at time: DispatchTime) {
        let (over, next) = state.withLock { state -> ([Expiry], DispatchTime?) in
            let now = DispatchTime.now()
            var over: [Expiry] = []
            for (id, deadline) in state.deadlines where deadline.time <= now {
                if deadline.expiry.remaining <= 0 || deadline.expiry.end <= now {
                    over.append(deadline.expiry)
                    state.deadlines[id] = nil
                } else {
                    // Others had the processor. At least a millisecond, so that the timer does not spin.
                    let check = max(deadline.expiry.nextCheck, now + .milliseconds(1))
                    state.deadlines[id]?.time = check
                }
            }
            // An earlier timer that was overtaken leaves the next wake-up to the one that overtook it.
            guard state.wakeUp.map({ $0 <= time }) ?? false else { return (over, nil) }
            state.wakeUp = state.deadlines.values.map(\.time).min()
            return (over, state.wakeUp)
        }
        for expiry in over { expiry.pass() }
        if let next { wake(at: next) }
    }
}
