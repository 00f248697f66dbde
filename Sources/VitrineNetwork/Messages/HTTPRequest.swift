#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

/// A request for one resource.
///
/// ```swift
/// var request = HTTPRequest(url: url)
/// request.headers["Accept"] = "image/avif, image/webp, image/*"
/// request.maximumBodySize = .megabytes(20)
/// let response = try await NetworkLoader.shared.load(request)
/// ```
public struct HTTPRequest: Sendable {
    /// The URL to load.
    public var url: URL
    /// The method, in uppercase. The default is `GET`.
    public var method = "GET"
    /// Header fields to send in addition to those that the transport sends.
    ///
    /// The transport alone sends fields that describe the connection or the encoded body: `Host`, `Content-Length`,
    /// `Transfer-Encoding`, `Connection`, `Keep-Alive`, `Proxy-Connection`, `Upgrade`, `HTTP2-Settings`, `TE`,
    /// `Trailer` and `Expect`. If one of them is set, loading throws ``NetworkError/invalidRequest(url:reason:)``. The
    /// same applies to `Range` and `If-Range` together with ``range``. If ``acceptsCompression`` is true, the transport
    /// replaces `Accept-Encoding`.
    public var headers = HTTPHeaders()
    /// The body to send, or nil for none.
    public var body: [UInt8]?
    /// The requested part of the resource as byte offsets, or nil for all of it. An upper bound of `Int.max` means the
    /// end. A server may ignore the range and answer with status 200 and the whole body.
    public var range: Range<Int>?
    /// A strong entity tag or a date for a request with a ``range``. If the resource no longer matches it, the server
    /// sends the whole body (RFC 9110, section 13.1.5).
    public var ifRange: String?
    /// The limit for name resolution, connection and TLS handshake together, or nil for none. The default is 15
    /// seconds.
    public var connectTimeout: Duration? = .seconds(15)
    /// The longest time without a byte from the server while the body is being read, or nil for no limit. The default
    /// is 30 seconds.
    public var idleTimeout: Duration? = .seconds(30)
    /// The limit for one transfer. The default is none; ``FetchOptions/totalTimeout`` limits loads into memory.
    ///
    /// The time counts from the start of the connection attempt. It includes a slow reader, but not the wait for a free
    /// connection. Each redirect and each retry is a transfer of its own. A transfer that exceeds the limit is not
    /// retried; it throws ``NetworkError/tookTooLong(url:)``.
    public var totalTimeout: Duration?
    /// The largest accepted body, after decoding. A larger one is ``NetworkError/bodyTooLarge(url:limit:)``. The
    /// default is 4 GiB.
    public var maximumBodySize = ByteCount.gibibytes(4)
    /// The priority among requests that wait for a connection to the same host.
    public var priority = RequestPriority.normal
    /// Whether the server may compress the body; the transport then decodes it. The default is true.
    public var acceptsCompression = true
    /// Whether to prefer HTTP/1.1, which transfers large bodies faster than HTTP/2. The default is false.
    package var prefersHTTP1 = false

    /// The digest of the URL whose stored response the conditions in ``headers`` are about. They are sent to this URL
    /// alone, because two URLs may have the same entity tag. nil, the default, sends them to all.
    package var conditionalTarget: String?

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - url: The URL to load.
    ///   - method: The method, in uppercase.
    ///   - headers: Header fields to send.
    public init(url: URL, method: String = "GET", headers: HTTPHeaders = HTTPHeaders()) {
        self.url = url
        self.method = method
        self.headers = headers
    }
}

extension Range<Int> {
    /// Returns the range of a body from an offset to its end. A negative offset counts as 0.
    package static func toEnd(from offset: Int) -> Range<Int> { Swift.max(0, offset)..<Int.max }

    /// The value of the `Range` field, such as `bytes=0-499` (RFC 9110, section 14.1.2).
    package var fieldValue: String { "bytes=\(lowerBound)-" + (upperBound == .max ? "" : String(upperBound - 1)) }
}
