#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// Sends one request to one server and returns its response.
///
/// A transport does not follow redirects: ``NetworkLoader`` does, so that a ``URLAccessPolicy`` checks every URL.
/// Conform to this protocol to use another HTTP client, to load another URL scheme, or to test without a server:
///
/// ```swift
/// struct FixedTransport: HTTPTransport {
///     let bytes: [UInt8]
///
///     func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
///         HTTPResponse(head: HTTPResponseHead(url: request.url), body: ResponseBody(bytes))
///     }
/// }
/// ```
///
/// A loader with ``URLAccessPolicy/publicOnly`` refuses HTTP transports other than `CurlLoader`, because they do not
/// report IP addresses before they connect.
public protocol HTTPTransport: Sendable {
    /// Sends the request and returns as soon as the head of the response has been received.
    ///
    /// Cancellation of the task ends the transfer, and so does the release of the response's body.
    ///
    /// - Throws: The reason why there is no response.
    func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse

    /// Distinguishes the answers of this transport from those of others, as a part of cache keys, for example if it
    /// authenticates itself. nil, the default, if the answers depend on the request alone. It must not change.
    var identity: String? { get }
}

extension HTTPTransport {
    /// nil.
    public var identity: String? { nil }
}

/// Decides whether an IP address may be connected to. It runs on the thread of the transport and must not block.
///
/// - Returns: nil to permit the connection, or the reason to refuse it.
package typealias ConnectFilter = @Sendable (IPAddress) -> PolicyViolation?

/// A transport that reports each IP address before it connects to it.
package protocol FilteringTransport: HTTPTransport {
    /// Returns whether the transport reports the address of a URL's host: false if a proxy connects in its place.
    func showsAddresses(for url: URL) -> Bool

    /// Sends the request as ``HTTPTransport/load(_:)`` does.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - filter: Decides about each address before a connection is made or reused. nil permits all.
    func load(_ request: HTTPRequest, allowing filter: ConnectFilter?) async throws(NetworkError) -> HTTPResponse
}

extension FilteringTransport {
    package func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        try await load(request, allowing: nil)
    }
}

// MARK: Waiting for another thread

/// The shared state of a transfer, as far as the wait of its reader is concerned.
protocol AwaitedState {
    associatedtype Head: Sendable

    /// The head, once it has been received.
    var head: Head? { get }
    /// The outcome, once the transfer has ended.
    var end: Result<Void, NetworkError>? { get }
    /// The reader while it waits.
    var waiter: CheckedContinuation<Void, Never>? { get set }
}

/// A transfer whose only reader waits for data from another thread.
protocol AwaitedTransfer: AnyObject, Sendable {
    associatedtype State: AwaitedState

    /// The error of a transfer that ends without a head and without another error.
    var missingHead: NetworkError { get }

    /// Runs a closure under the lock.
    func withState<R: Sendable>(_ body: (inout State) -> R) -> R

    /// Ends the transfer, if it has not ended.
    func cancel()
}

extension AwaitedTransfer {
    /// Returns the head as soon as it has been received.
    func head() async throws(NetworkError) -> State.Head {
        while true {
            let known = withState { state -> Result<State.Head, NetworkError>? in
                if let head = state.head { return .success(head) }
                // An end without a head is a failure.
                return state.end.map { end in end.flatMap { .failure(missingHead) } }
            }
            if let known { return try known.get() }
            await wait { $0.head != nil }
        }
    }

    /// Waits until another thread resumes the waiter. Returns at once if the transfer has ended or is ready.
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
