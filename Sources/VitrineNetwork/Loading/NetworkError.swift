public import VitrineCore

/// Why something could not be loaded. Every case has the address concerned, without names and passwords, and a stable
/// ``code``.
public enum NetworkError: Error, Sendable {
    /// The text is no URL that can be loaded. Code -410.
    case invalidURL(url: String, reason: String)
    /// The method or a header field of the request cannot be sent. Code -411.
    case invalidRequest(url: String, reason: String)
    /// The policy does not allow it. Code -412.
    case refused(url: String, PolicyViolation)
    /// Nobody is registered for the scheme. Code -413.
    case unsupportedScheme(url: String, scheme: String)
    /// A modifier, an authentication or the handler of a scheme failed. Code -414.
    case handler(url: String, underlying: any Error)
    /// The host has no address, or the question was not answered. Code -420.
    case nameNotResolved(url: String, host: String)
    /// Nobody answered at the address. Code -421.
    case notConnected(url: String, reason: String)
    /// The server's certificate or the encryption is not acceptable. Code -422.
    case insecure(url: String, reason: String)
    /// A phase took longer than the request allows. Code -423.
    case timedOut(url: String, TimeoutPhase)
    /// The connection ended before the response did. Code -401.
    case truncated(url: String, received: ByteCount, reason: String)
    /// The answer breaks the rules of HTTP. Code -430.
    case invalidResponse(url: String, reason: String)
    /// The header has more fields or bytes than are accepted. Code -431.
    case headerTooLarge(url: String)
    /// The body has more bytes than the request accepts. Code -432.
    case bodyTooLarge(url: String, limit: ByteCount)
    /// The status is not one that brings what was asked for. Code -402.
    case status(url: String, HTTPResponseHead)
    /// The content type is not among those accepted. Code -400.
    case contentType(url: String, type: String?)
    /// More redirects than are followed. Code -440.
    case tooManyRedirects(url: String, limit: Int)
    /// A redirect that leads back to where it came from. Code -441.
    case redirectLoop(url: String)
    /// A file could not be read or written. Code -450.
    case file(FileError)
    /// Somebody else, in this process or another, is loading to the same file. Code -451.
    case busy(url: String, path: String)
    /// The task was cancelled, or nobody reads the body any more. Code -460.
    case cancelled(url: String)
    /// The loader has been shut down, or could not be set up. Code -461.
    case unavailable(url: String, reason: String)

    /// What can take too long.
    public enum TimeoutPhase: Sendable, Hashable {
        /// Finding the address, connecting and the TLS handshake.
        case connect
        /// Waiting for the next byte.
        case idle
        /// The whole transfer.
        case total
    }
}
