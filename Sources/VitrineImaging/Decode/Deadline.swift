import Dispatch
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
        let token = CancellationToken()
        let registration = cancellation.onCancel { token.cancel() }
        let expiry = Expiry(token)
        DispatchQueue.global().asyncAfter(deadline: .now() + max(0, seconds), execute: expiry.item)
        defer {
            expiry.item.cancel()
            cancellation.remove(registration)
        }
        do {
            return try body(token)
        } catch .cancelled where expiry.hasPassed {
            throw .timedOut(input: input)
        }
    }

    private final class Expiry: Sendable {
        private let passed: Flag
        // Unchecked for lack of an annotation: a work item may be cancelled from any thread.
        nonisolated(unsafe) let item: DispatchWorkItem

        /// Shared by the owner and the work item, so that the item does not keep its owner alive.
        private final class Flag: Sendable {
            let value = Atomic<Bool>(false)
        }

        var hasPassed: Bool { passed.value.load(ordering: .acquiring) }

        init(_ token: CancellationToken) {
            let flag = Flag()
            passed = flag
            item = DispatchWorkItem {
                flag.value.store(true, ordering: .releasing)
                token.cancel()
            }
        }
    }
}
