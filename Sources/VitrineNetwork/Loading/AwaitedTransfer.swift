import VitrineCore

/// What the two sides of a transfer share, as far as who waits is concerned.
protocol AwaitedState {
    associatedtype Head: Sendable

    /// The header, once it is there.
    var head: Head? { get }
    /// How it ended, once it has.
    var end: Result<Void, NetworkError>? { get }
    /// The reader, while it waits.
    var waiter: CheckedContinuation<Void, Never>? { get set }
}

/// A transfer whose one reader waits for what another thread brings.
protocol AwaitedTransfer: AnyObject, Sendable {
    associatedtype State: AwaitedState

    /// What a transfer fails with that ends well but without a header.
    var missingHead: NetworkError { get }

    /// Runs a body under the lock.
    func withState<R: Sendable>(_ body: (inout State) -> R) -> R

    /// Ends the transfer, if it has not ended.
    func cancel()
}

extension AwaitedTransfer {
    /// The header, once it is there.
    func head() async throws(NetworkError) -> State.Head {
        while true {
            let known = withState { state -> Result<State.Head, NetworkError>? in
                if let head = state.head { return .success(head) }
                // Without a header no end is a good one, and there is nothing left to wait for.
                return state.end.map { end in end.flatMap { .failure(missingHead) } }
            }
            if let known { return try known.get() }
            await wait { $0.head != nil }
        }
    }

    /// Waits until somebody resumes the waiter: at once if the transfer has ended or there is what is waited for.
    func wait(unless isReady: @Sendable (State) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = withState { state in
                    guard state.end == nil, !isReady(state), state.waiter == nil else { return false }
                    state.waiter = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
    }
}
