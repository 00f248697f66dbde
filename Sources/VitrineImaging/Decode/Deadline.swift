import Synchronization
import VitrineCore

/// Bounds the wall-clock time of work that polls a token.
enum Deadline {
    /// Runs `body` with a token that is cancelled with `cancellation` or after `seconds`, whichever comes first.
    ///
    /// - Throws: What `body` throws; a cancellation that the clock caused becomes ``ImageError/timedOut(input:)``.
    static func run<R>(
        seconds: Double, input: String, cancellation: CancellationToken,
        _ body: (CancellationToken) throws(ImageError) -> R
    ) throws(ImageError) -> R {
        if cancellation.isCancelled { throw .cancelled(input: input) }
        guard seconds.isFinite && seconds < Double(Int32.max) else { return try body(cancellation) }
        let expiry = Expiry()
        let registration = cancellation.onCancel { expiry.token.cancel() }
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

/// The token of one piece of work, and whether the clock was what cancelled it.
final class Expiry: Sendable {
    let token = CancellationToken()
    private let passed = Atomic<Bool>(false)

    var hasPassed: Bool { passed.load(ordering: .acquiring) }

    func pass() {
        passed.store(true, ordering: .releasing)
        token.cancel()
    }
}
