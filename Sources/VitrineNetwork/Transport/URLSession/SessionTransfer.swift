#if canImport(Darwin)
import Foundation
import VitrineCore

/// The state of a transfer that the session's delegate and the reader share.
final class SessionTransfer: AwaitedTransfer {
    struct State: AwaitedState {
        var head: HTTPResponseHead?
        var pending: [UInt8] = []
        var received = 0
        var end: Result<Void, NetworkError>?
        var waiter: CheckedContinuation<Void, Never>?
        var isSuspended = false
    }

    let task: URLSessionDataTask
    /// The URL without user names and passwords.
    let url: String
    private let limit: ByteCount
    private let highWater: Int
    private let state = Locked(State())

    init(_ task: URLSessionDataTask, url: String, limit: ByteCount, highWater: Int) {
        self.task = task
        self.url = url
        self.limit = limit
        self.highWater = highWater
    }

    var missingHead: NetworkError {
        .truncated(url: url, received: .zero, reason: "the connection ended before the header")
    }

    func withState<R: Sendable>(_ body: (inout State) -> R) -> R { state.withLock { body(&$0) } }

    // MARK: The reader

    /// Returns the bytes received since the last call; nil at the end.
    func next() async throws(NetworkError) -> [UInt8]? {
        while true {
            let (chunk, end, wasSuspended) = state.withLock { state in
                let chunk = state.pending
                state.pending = []
                let wasSuspended = state.isSuspended
                state.isSuspended = false
                return (chunk, state.end, wasSuspended)
            }
            if wasSuspended { task.resume() }
            if !chunk.isEmpty { return chunk }
            if let end {
                try end.get()
                return nil
            }
            await wait { !$0.pending.isEmpty }
        }
    }

    /// Ends the transfer, if it has not ended.
    func cancel() { end(with: .cancelled(url: url)) }

    // MARK: The session

    /// Receives the header.
    ///
    /// - Returns: Whether the transfer continues.
    func receive(_ response: URLResponse) -> Bool {
        guard let response = response as? HTTPURLResponse, let address = response.url else {
            end(with: .invalidResponse(url: url, reason: "the response is not HTTP"))
            return false
        }
        let head = HTTPResponseHead(response, at: address)
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.head = head
            return state.waiter.take()
        }
        waiter?.resume()
        return true
    }

    /// Receives a part of the body.
    func receive(_ data: Data) {
        let (waiter, isTooLarge, mustSuspend) = state.withLock { state in
            guard state.end == nil else { return (CheckedContinuation<Void, Never>?.none, false, false) }
            state.received += data.count
            guard state.received <= limit.bytes else { return (nil, true, false) }
            state.pending.append(contentsOf: data)
            let mustSuspend = state.pending.count > highWater && !state.isSuspended
            if mustSuspend { state.isSuspended = true }
            return (state.waiter.take(), false, mustSuspend)
        }
        if mustSuspend { task.suspend() }
        if isTooLarge { end(with: .bodyTooLarge(url: url, limit: limit)) }
        waiter?.resume()
    }

    /// Called when the session has ended the task.
    func complete(_ error: (any Error)?) {
        let (head, received) = state.withLock { ($0.head, $0.received) }
        if let error {
            finish(.failure(NetworkError(error, url: url, received: head == nil ? nil : received)))
        } else if let length = head?.contentLength, task.originalRequest?.httpMethod != "HEAD", received < length {
            finish(.failure(.truncated(url: url, received: ByteCount(received), reason: "the server ended early")))
        } else {
            finish(.success(()))
        }
    }

    /// Ends the transfer with an error.
    func end(with error: NetworkError) {
        if finish(.failure(error)) { task.cancel() }
    }

    /// - Returns: Whether the transfer had not ended before.
    @discardableResult
    private func finish(_ end: Result<Void, NetworkError>) -> Bool {
        let (isFirst, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
            guard state.end == nil else { return (false, nil) }
            state.end = end
            if case .failure(.cancelled) = end { state.pending = [] }
            return (true, state.waiter.take())
        }
        waiter?.resume()
        return isFirst
    }
}

extension HTTPResponseHead {
    /// Creates the head of a response of the session.
    package init(_ response: HTTPURLResponse, at url: URL) {
        var headers = HTTPHeaders()
        for (name, value) in response.allHeaderFields {
            if let name = name as? String, let value = value as? String { headers.append(name, value) }
        }
        // The session has decoded the body.
        let coding = headers.takeCoding()
        self.init(status: response.statusCode, headers: headers, url: url, version: .http1_1, decodedFrom: coding)
    }
}

extension NetworkError {
    /// Converts an error of the session.
    ///
    /// - Parameters:
    ///   - error: The error.
    ///   - url: The URL of the request.
    ///   - received: The received bytes of the body; nil before the header.
    package init(_ error: any Error, url: String, received: Int?) {
        guard let error = error as? URLError else {
            self = .unavailable(url: url, reason: "\(error)")
            return
        }
        switch error.code {
        case .cancelled: self = .cancelled(url: url)
        case .timedOut: self = .timedOut(url: url, .idle)
        case .cannotFindHost, .dnsLookupFailed:
            self = .nameNotResolved(url: url, host: error.failingURL?.host() ?? "its host")
        case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
            .clientCertificateRequired, .appTransportSecurityRequiresSecureConnection:
            self = .insecure(url: url, reason: error.localizedDescription)
        case .badServerResponse, .cannotParseResponse, .cannotDecodeRawData, .cannotDecodeContentData:
            self = .invalidResponse(url: url, reason: error.localizedDescription)
        default:
            guard let received else {
                self = .notConnected(url: url, reason: error.localizedDescription)
                return
            }
            self = .truncated(url: url, received: ByteCount(received), reason: error.localizedDescription)
        }
    }
}
#endif
