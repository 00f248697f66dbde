#if os(Linux)
import CVitrineCurl
import VitrineCore

/// One exchange: what the loop's thread and the reader share about it.
///
/// Unchecked: the part behind `state` is shared under its lock; `confined` belongs to the loop's thread, and nobody
/// else touches it.
final class CurlTransfer: AwaitedTransfer, @unchecked Sendable {
    /// A header as it came, read by who waits for it: the loop's thread has better things to do.
    struct RawHead {
        let status: Int
        let version: Int
        let lines: [UInt8]
        let remoteAddress: String
    }

    struct State: AwaitedState {
        var head: RawHead?
        var pending: [UInt8] = []
        /// Memory that a reader has given back.
        var spare: [UInt8] = []
        var received = 0
        var end: Result<Void, NetworkError>?
        var waiter: CheckedContinuation<Void, Never>?
        /// While somebody waits for the whole body: the most bytes of it. Nobody is woken and nothing paused below.
        var collectLimit: Int?
        /// Whether the server waits until somebody reads.
        var isPaused = false
    }

    /// What the loop's thread knows.
    struct Confined {
        var handle: OpaquePointer?
        var origin: CurlOrigin?
        var position = -1
        var isConnected = false
        /// The length the header claims.
        var expected: Int?
        var startedAt: Int64 = 0
        var lastActivity: Int64 = 0
        var isTouched = false
        /// Received since others had their turn.
        var turn = 0
        var isBreathing = false
        var violation: PolicyViolation?
        var failure: NetworkError?
    }

    let request: CurlRequest
    let guardian: ConnectFilter?
    /// Beyond this much unread the server has to wait.
    let highWater: Int
    let state = Locked(State())
    unowned let loop: CurlLoop
    var confined = Confined()

    init(_ request: CurlRequest, guardian: ConnectFilter?, highWater: Int, loop: CurlLoop) {
        self.request = request
        self.guardian = guardian
        self.highWater = highWater
        self.loop = loop
    }

    var missingHead: NetworkError {
        .truncated(url: request.displayURL, received: .zero, reason: "the connection ended before its header did")
    }

    func withState<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    // MARK: The reader's side

    /// All that has come since the last call; nil at the end.
    ///
    /// - Parameter spare: Memory of an earlier chunk, to be used again.
    func next(reusing spare: consuming [UInt8] = []) async throws(NetworkError) -> [UInt8]? {
        spare.removeAll(keepingCapacity: true)
        while true {
            let (chunk, end, wasPaused) = state.withLock { state in
                let chunk = state.pending
                state.pending = []
                swap(&state.pending, &state.spare)
                if spare.capacity > 0 { swap(&state.spare, &spare) }
                let wasPaused = state.isPaused
                if !chunk.isEmpty { state.isPaused = false }
                return (chunk, state.end, wasPaused && !chunk.isEmpty)
            }
            if wasPaused { loop.submit(.resume(self)) }
            if !chunk.isEmpty { return chunk }
            if let end {
                try end.get()
                return nil
            }
            await wait { !$0.pending.isEmpty }
        }
    }

    /// Takes a piece of body, on the loop's thread.
    func append(_ bytes: UnsafeBufferPointer<UInt8>, to state: inout State) {
        if state.pending.capacity == 0 {
            // Growing by and by would copy everything several times.
            let most = (ByteCount(highWater) + ByteCount(request.bufferSize)).bytes
            let rest = confined.expected.map { max(0, $0 - state.received) &+ bytes.count } ?? most
            if rest < most || state.received > most / 4 { state.pending.reserveCapacity(min(rest, most)) }
        }
        state.pending.append(contentsOf: bytes)
    }

    /// The rest in one piece.
    func collect(upTo limit: Int) async throws(NetworkError) -> [UInt8] {
        while true {
            let (result, isPaused) = state.withLock { state -> (Result<[UInt8], NetworkError>?, Bool) in
                if state.pending.count > limit {
                    return (.failure(.bodyTooLarge(url: request.displayURL, limit: ByteCount(limit))), false)
                }
                let wasPaused = state.isPaused
                state.isPaused = false
                guard let end = state.end else {
                    state.collectLimit = limit
                    return (nil, wasPaused)
                }
                let bytes = state.pending
                state.pending = []
                return (end.map { bytes }, wasPaused)
            }
            if let result {
                if case .failure = result { cancel() }
                return try result.get()
            }
            if isPaused { loop.submit(.resume(self)) }
            await wait { $0.pending.count > limit }
        }
    }

    /// Ends the transfer, if it has not ended.
    func cancel() {
        let (isRunning, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
            guard state.end == nil else { return (false, nil) }
            state.end = .failure(.cancelled(url: request.displayURL))
            state.pending = []
            return (true, state.waiter.take())
        }
        guard isRunning else { return }
        loop.submit(.cancel(self))
        waiter?.resume()
    }
}
#endif
