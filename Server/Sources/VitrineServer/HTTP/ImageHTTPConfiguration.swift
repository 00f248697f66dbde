public import NIOCore

/// How images are sent.
public struct ImageHTTPConfiguration: Sendable {
    /// The lifetime of answers in the caches of clients and proxies.
    public struct CacheControl: Sendable, Hashable {
        /// Seconds for which an image may be cached. Default: a year.
        public var maximumAge = 31_536_000
        /// Whether the rest of the source's freshness and its `no-store`, `no-cache`, and `private` are passed on. A
        /// source that says nothing counts as ``maximumAge``. Default: false.
        public var followsSource = false
        /// Seconds for which an answer may be cached that was no longer fresh, or that a better one will replace.
        /// Default: 10.
        public var staleAge = 10
        /// Whether `immutable` is added to answers that live for ``maximumAge``. Default: false.
        public var isImmutable = false

        public init() {}
    }

    /// An image that is sent instead of an error.
    public struct Fallback: Sendable {
        public var bytes: ByteBuffer
        public var mediaType: String
        /// The errors that it replaces. Default: 404, 410, 422, 500, 502, 503 and 504.
        public var statuses: Set<Int> = [404, 410, 422, 500, 502, 503, 504]
        /// The status that it is sent with; nil for that of the error. Default: nil.
        public var status: Int?
        /// Seconds for which it may be cached. Default: 60.
        public var lifetime = 60

        public init(bytes: ByteBuffer, mediaType: String) { (self.bytes, self.mediaType) = (bytes, mediaType) }
    }

    /// The prefix of URLs in thumbor's grammar, below the mount; nil for none. Default: `/thumbor`.
    public var thumborPrefix: String? = "/thumbor"
    /// The formats that `Accept` chooses from, if the URL names none. Default: AVIF, JPEG XL, WebP, JPEG, PNG.
    public var negotiation = FormatNegotiation()
    /// Whether a client that accepts none of the formats gets 406 instead of the format of the source. Default: false.
    public var refusesUnacceptable = false
    /// Nil to ignore hints. Default: nil.
    public var clientHints: ClientHints?
    public var cacheControl = CacheControl()
    /// Seconds for which an error may be cached, by status; others are `no-store`. Default: 10 for 404, 410, and 422,
    /// 2 for 502 and 504.
    public var errorLifetimes = [404: 10, 410: 10, 422: 10, 502: 2, 504: 2]
    /// Seconds of `Retry-After` of 429 and 503, if the error says nothing. Default: 1.
    public var retryAfter = 1
    public var fallback: Fallback?
    /// The origins whose scripts may read answers; `*` for all. Default: none.
    public var allowedOrigins: [String] = []
    /// The name of this cache in `Cache-Status`, a token; nil to leave the field out. Default: `vitrine`.
    public var cacheStatusName: String? = "vitrine"
    /// Whether `Server-Timing` tells how long the stages took. Default: false.
    public var sendsServerTiming = false
    /// Whether answers have `X-Request-ID`. Default: true.
    public var sendsRequestID = true
    /// Longer targets get 414. Default: 16 KiB.
    public var maximumTargetLength = 16_384
    /// How many parsed URLs are kept. Default: 4,096.
    public var keptTargets = 4096
    /// Receives a record of every answer, on the request's task, before the answer is sent. `vitrine-server` counts
    /// answers from memory without it.
    public var observe: (@Sendable (AnswerRecord) -> Void)?

    public init() {}
}

/// An answer, for metrics and logs. It does not contain the address of the source.
public struct AnswerRecord: Sendable {
    /// The kind of request.
    public enum Route: String, Sendable, CaseIterable { case native, thumbor, information, health, other }

    public var route: Route
    public var requestID: String
    public var status: Int
    /// The code of the error; nil if there was none.
    public var errorCode: String?
    /// How the image was found; nil if it was not.
    public var origin: ImageAnswer.Origin?
    public var mediaType: String?
    /// Bytes of the body.
    public var bytes: Int
    public var stages: [ImageAnswer.Stage]
    /// From the start of the request to the start of the answer.
    public var duration: Duration
}
