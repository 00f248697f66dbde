#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Carries one request to one server and brings its response: the head, then the body as fast as it is read.
///
/// One hop: a redirect is a response like any other. ``NetworkLoader`` follows them, so that a ``URLAccessPolicy`` sees
/// every address. Any client fits behind this.
public protocol HTTPTransport: Sendable {
    /// What the loader can do, so that callers can refuse what it cannot.
    var capabilities: LoadingCapabilities { get }

    /// Whether the loader itself connects to an address's host, so that it can show the IP address before it does:
    /// false where it cannot, and where a proxy connects in its place. Default: whether it has
    /// ``LoadingCapabilities/addressPolicy``.
    func showsAddresses(for url: URL) -> Bool

    /// Sends the request and returns when the head of the response is there.
    ///
    /// Cancelling the task ends the transfer, and so does letting go of the response's body.
    ///
    /// - Parameters:
    ///   - request: What to load.
    ///   - guardian: Asked for every address before it is connected to, and for the address of a connection before it
    ///     is used again. Ignored by loaders without ``LoadingCapabilities/addressPolicy``.
    /// - Throws: Why there is no response.
    func load(_ request: HTTPRequest, allowing guardian: ConnectFilter?) async throws(NetworkError) -> HTTPResponse
}

extension HTTPTransport {
    public func showsAddresses(for url: URL) -> Bool { capabilities.contains(.addressPolicy) }

    /// Sends the request, to whatever address its host has.
    ///
    /// - Throws: Why there is no response.
    public func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        try await load(request, allowing: nil)
    }
}

/// Decides whether an address may be connected to: called on the loader's thread, must be quick and not block.
///
/// - Returns: nil to allow it, or why not.
public typealias ConnectFilter = @Sendable (IPAddress) -> PolicyViolation?

/// A response: the head, and the body to be read.
public struct HTTPResponse: Sendable {
    /// Status and fields.
    public var head: HTTPResponseHead
    /// The body, which can be read once.
    public let body: ResponseBody

    public init(head: HTTPResponseHead, body: ResponseBody) {
        self.head = head
        self.body = body
    }
}
