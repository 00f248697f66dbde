#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

/// What to load: one exchange with one server. Redirects are followed by ``NetworkLoader``, not by a ``DataLoading``.
///
/// ```swift
/// var request = DataRequest(url: url)
/// request.headers.set("Accept", "image/avif, image/webp, image/*")
/// request.maximumBodySize = .megabytes(20)
/// ```
public struct DataRequest: Sendable {
    /// From where.
    public var url: URL
    /// The method, in capitals. Default: `GET`.
    public var method = "GET"
    /// Fields to send besides those a loader sends itself (`Host`, `Content-Length`, `Accept-Encoding`, `Range`).
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
        /// The whole transfer, from when it has a connection or begins to make one; counts also while the reader is
        /// slow. Default: none.
        public var total: Duration?

        public init(connect: Duration? = .seconds(15), idle: Duration? = .seconds(30), total: Duration? = nil) {
            self.connect = connect
            self.idle = idle
            self.total = total
        }
    }
}
