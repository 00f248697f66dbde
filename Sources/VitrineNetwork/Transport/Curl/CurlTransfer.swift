#if os(Linux)
import CVitrineCurl
import VitrineCore

/// The state of a transfer that the loop's thread and the reader share.
///
/// Unchecked: `state` is shared under its lock. `confined` belongs to the loop's thread alone.
final class CurlTransfer: AwaitedTransfer, @unchecked Sendable {
    /// A header as it was received. The reader parses it, to relieve the loop's thread.
    struct RawHead {
        let status: Int
        let version: Int
        let lines: [UInt8]
        let remoteAddress: String
    }

    struct State: AwaitedState {
        var head: RawHead?
        var pending: [UInt8] = []
        /// Memory that the reader returned for reuse.
        var spare: [UInt8] = []
        var received = 0
        /// The most bytes to receive.
        var limit: Int
        var end: Result<Void, NetworkError>?
        var waiter: CheckedContinuation<Void, Never>?
        /// The limit while a reader waits for the whole body. Below it, the reader is not resumed and the transfer is
        /// not paused.
        var collectLimit: Int?
        /// Whether the transfer is paused until the reader continues.
        var isPaused = false
    }

    /// The state of the loop's thread.
    struct Confined {
        var handle: OpaquePointer?
        var origin: CurlOrigin?
        var position = -1
        var isConnected = false
        /// The length that the header declares.
        var expected: Int?
        var startedAt: Int64 = 0
        var lastActivity: Int64 = 0
        var isTouched = false
        /// The bytes received in this iteration of the loop.
        var receivedInIteration = 0
        var isBreathing = false
        var violation: PolicyViolation?
        var failure: NetworkError?
    }

    let request: CurlRequest
    let filter: ConnectFilter?
    /// The unread bytes beyond which the transfer is paused.
    let highWater: Int
    let state: Locked<State>
    unowned let loop: CurlLoop
    var confined = Confined()

    init(_ request: CurlRequest, filter: ConnectFilter?, highWater: Int, loop: CurlLoop) {
        self.request = request
        self.filter = filter
        self.highWater = highWater
        self.loop = loop
        state = Locked(State(limit: request.maximumSentSize))
    }

    var missingHead: NetworkError {
        .truncated(url: request.displayURL, received: .zero, reason: "the connection ended before the header")
    }

    func withState<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    // MARK: The reader

    /// Returns the bytes received since the last call; nil at the end.
    ///
    /// - Parameter spare: Memory of an earlier chunk, for reuse.
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

    /// Appends received bytes. Called on the loop's thread.
    func append(_ bytes: UnsafeBufferPointer<UInt8>, to state: inout State) {
        if state.pending.capacity == 0 {
            // Gradual growth would copy the bytes several times.
            let most = (ByteCount(highWater) + ByteCount(request.bufferSize)).bytes
            let rest = confined.expected.map { max(0, $0 - state.received) &+ bytes.count } ?? most
            if rest < most || state.received > most / 4 { state.pending.reserveCapacity(min(rest, most)) }
        }
        state.pending.append(contentsOf: bytes)
    }

    /// Returns the rest as one array, for which `expected` bytes are reserved.
    func collect(upTo limit: Int, expecting expected: Int) async throws(NetworkError) -> [UInt8] {
        while true {
            let (result, isPaused) = state.withLock { state -> (Result<[UInt8], NetworkError>?, Bool) in
                if state.pending.count > limit {
                    return (.failure(.bodyTooLarge(url: request.displayURL, limit: ByteCount(limit))), false)
                }
                let wasPaused = state.isPaused
                state.isPaused = false
                guard let end = state.end else {
                    if state.collectLimit == nil { state.pending.reserveCapacity(expected) }
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

    /// Sets the most bytes to receive, when the head has told that the body is sent as it is.
    func limit(to limit: Int) {
        let isOver = state.withLock { state in
            state.limit = limit
            guard state.received > limit else { return false }
            // Also if the whole body has come meanwhile.
            if case .success? = state.end { state.end = .failure(tooLarge) }
            return true
        }
        if isOver { end(with: tooLarge) }
    }

    private var tooLarge: NetworkError {
        .bodyTooLarge(url: request.displayURL, limit: ByteCount(request.maximumBodySize))
    }

    /// Ends the transfer, if it has not ended.
    func cancel() { end(with: .cancelled(url: request.displayURL)) }

    private func end(with error: NetworkError) {
        let (isRunning, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
            guard state.end == nil else { return (false, nil) }
            state.end = .failure(error)
            state.pending = []
            return (true, state.waiter.take())
        }
        guard isRunning else { return }
        loop.submit(.cancel(self))
        waiter?.resume()
    }
}

extension CurlTransfer {
    /// Asks the filter. Called on the loop's thread.
    func isAllowed(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let filter, request.proxy.isEmpty else { return true }
        guard let address = IPAddress(bytes: bytes) else {
            confined.violation = .addressesUnknown
            return false
        }
        confined.violation = filter(address)
        return confined.violation == nil
    }

    /// Converts a result of libcurl.
    func outcome(_ result: Int32, _ message: String, now: Int64) -> Result<Void, NetworkError> {
        let url = request.displayURL
        // A refused address may be followed by one that answers.
        if result == CCURL_OK { return .success(()) }
        if let failure = confined.failure { return .failure(failure) }
        if let violation = confined.violation { return .failure(.refused(url: url, violation)) }
        switch Int(result) {
        case CCURL_BAD_REQUEST: return .failure(.invalidURL(url: url, reason: message))
        case CCURL_NAME: return .failure(.nameNotResolved(url: url, host: request.url.host.text))
        case CCURL_CONNECT, CCURL_PROXY: return .failure(.notConnected(url: url, reason: message))
        case CCURL_TLS: return .failure(.insecure(url: url, reason: message))
        case CCURL_TIMEOUT: return .failure(.timedOut(url: url, timeoutPhase(now)))
        case CCURL_TRUNCATED:
            let received = state.withLock { $0.received }
            return .failure(.truncated(url: url, received: ByteCount(received), reason: message))
        case CCURL_HEAD_CUT: return .failure(missingHead)
        case CCURL_NO_HEAD:
            return .failure(.invalidResponse(url: url, reason: "there is no final header before the body"))
        case CCURL_HEADER_LIMIT: return .failure(.headerTooLarge(url: url))
        case CCURL_PROTOCOL: return .failure(.invalidResponse(url: url, reason: message))
        case CCURL_STOPPED, CCURL_MEMORY: return .failure(.invalidResponse(url: url, reason: message))
        default: return .failure(.unavailable(url: url, reason: message))
        }
    }

    private func timeoutPhase(_ now: Int64) -> NetworkError.TimeoutPhase {
        if confined.isConnected { return .total }
        // libcurl reports both by one code.
        let total = Int64(request.totalTimeout)
        return total > 0 && now - confined.startedAt >= total ? .total : .connect
    }
}
#endif
