#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

/// What to load: one exchange with one server. Redirects are followed by ``NetworkLoader``, not by a ``HTTPTransport``.
///
/// ```swift
/// var request = HTTPRequest(url: url)
/// request.headers["Accept"] = "image/avif, image/webp, image/*"
/// request.maximumBodySize = .megabytes(20)
/// ```
public struct HTTPRequest: Sendable {
    /// From where.
    public var url: URL
    /// The method, in capitals. Default: `GET`.
    public var method = "GET"
    /// Fields to send besides those a loader sends itself.
    ///
    /// Fields that describe the connection or the body as it is sent are the loader's alone: `Host`, `Content-Length`,
    /// `Transfer-Encoding`, `Connection`, `Keep-Alive`, `Proxy-Connection`, `Upgrade`, `HTTP2-Settings`, `TE`, `Trailer`
    /// and `Expect`. Loading throws ``NetworkError/invalidRequest(url:reason:)`` for each of them, and for `Range` and
    /// `If-Range` beside ``range``. With ``acceptsCompression``, `Accept-Encoding` gives way to what the loader decodes.
    public var headers = HTTPHeaders()
    /// What to send after the header; nil for nothing.
    public var body: [UInt8]?
    /// The part that is wanted; nil for all. A server may answer with all of it nevertheless: status 200, not 206.
    public var range: ByteRange?
    /// With ``range``: the validator (a strong entity tag, or a date) under which the part is wanted. If it does not
    /// hold any more the server sends everything (RFC 9110, section 13.1.5).
    public var ifRange: String?
    /// How long each phase may take.
    public var timeouts = Timeouts()
    /// The most bytes of body to accept, decoded. More is ``NetworkError/bodyTooLarge(url:limit:)``.
    public var maximumBodySize = ByteCount.gibibytes(4)
    /// Which of the requests waiting for a connection to the same host goes first.
    public var priority = Priority.normal
    /// Whether the body may come compressed, to be decoded by the loader. False for downloads, whose offsets count
    /// bytes as they are sent. Default: true.
    public var acceptsCompression = true
    /// Whether HTTP/2 is to be avoided, whose flow control costs large bodies more than it saves. Default: false.
    public var prefersHTTP1 = false

    public init(url: URL, method: String = "GET", headers: HTTPHeaders = HTTPHeaders()) {
        self.url = url
        self.method = method
        self.headers = headers
    }

    /// How long the phases of a transfer may take; nil for as long as they like.
    public struct Timeouts: Sendable, Hashable {
        /// Finding the address, connecting, and the TLS handshake. Default: 15 seconds.
        public var connect: Duration?
        /// Without a byte from the server, while somebody wants some. Default: 30 seconds.
        public var idle: Duration?
        /// One transfer as a whole, from when it has a connection or begins to make one: not while it waits for others
        /// to the same host, but also while the reader is slow. Each hop of a redirect and each repetition is a
        /// transfer; one that took too long is not repeated. ``NetworkError/timedOut(url:_:)`` with
        /// ``NetworkError/TimeoutPhase/total``. Default: none, as a large file may take as long as it likes;
        /// ``FetchOptions/totalTimeout`` is the default for what is loaded into memory.
        public var total: Duration?

        public init(connect: Duration? = .seconds(15), idle: Duration? = .seconds(30), total: Duration? = nil) {
            self.connect = connect
            self.idle = idle
            self.total = total
        }
    }
}
