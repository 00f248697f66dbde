package import NIOCore

/// How images are sent.
package struct ImageHTTPConfiguration: Sendable {
    /// The lifetime of answers in the caches of clients and proxies.
    package struct CacheControl: Sendable, Hashable {
        /// Seconds for which an image may be cached. Default: a year.
        package var maximumAge = 31_536_000
        /// Whether the rest of the source's freshness and its `no-store`, `no-cache`, and `private` are passed on. A
        /// source that says nothing counts as ``maximumAge``. Default: false.
        package var followsSource = false
        /// Seconds for which an answer may be cached that was no longer fresh, or that a better one will replace.
        /// Default: 10.
        package var staleAge = 10
        /// Whether `immutable` is added to answers that live for ``maximumAge``. Default: false.
        package var isImmutable = false

        package init() {}
    }

    /// An image that is sent instead of an error.
    package struct Fallback: Sendable {
        package var bytes: ByteBuffer
        package var mediaType: String
        /// The errors that it replaces. Default: 404, 410, 422, 500, 502, 503 and 504.
        package var statuses: Set<Int> = [404, 410, 422, 500, 502, 503, 504]
        /// The status that it is sent with; nil for that of the error. Default: nil.
        package var status: Int?
        /// Seconds for which it may be cached. Default: 60.
        package var lifetime = 60

        package init(bytes: ByteBuffer, mediaType: String) { (self.bytes, self.mediaType) = (bytes, mediaType) }
    }

    /// Whether URLs without a prefix are in the native grammar. Default: true.
    package var hasNative = true
    /// Whether `/info` describes sources. Default: true.
    package var hasInformation = true
    /// The prefix of URLs in thumbor's grammar, below the mount; nil for none. Default: `/thumbor`.
    package var thumborPrefix: String? = "/thumbor"
    /// Whether URLs below `/iiif` are in the grammar of IIIF. Default: false.
    package var hasIIIF = false
    /// The address of the mount as clients see it, without a slash at the end; nil to use that of the request.
    /// Default: nil.
    package var publicURL: String?
    /// The formats that `Accept` chooses from, if the URL names none. Default: AVIF, JPEG XL, WebP, JPEG, PNG.
    package var negotiation = FormatNegotiation()
    /// Whether a client that accepts none of the formats gets 406 instead of the format of the source. Default: false.
    package var refusesUnacceptable = false
    /// Nil to ignore hints. Default: nil.
    package var clientHints: ClientHints?
    package var cacheControl = CacheControl()
    /// Seconds for which an error may be cached, by status; others are `no-store`. Default: 10 for 404, 410, and 422,
    /// 2 for 502 and 504.
    package var errorLifetimes = [404: 10, 410: 10, 422: 10, 502: 2, 504: 2]
    /// Seconds of `Retry-After` of 429 and 503, if the error says nothing. Default: 1.
    package var retryAfter = 1
    package var fallback: Fallback?
    /// The origins whose scripts may read answers; `*` for all. Default: none.
    package var allowedOrigins: [String] = []
    /// The name of this cache in `Cache-Status`, a token; nil to leave the field out. Default: `vitrine`.
    package var cacheStatusName: String? = "vitrine"
    /// Whether `Server-Timing` tells how long the stages took. Default: false.
    package var sendsServerTiming = false
    /// Whether answers have `X-Request-ID`. Default: true.
    package var sendsRequestID = true
    /// Longer targets get 414. Default: 16 KiB.
    package var maximumTargetLength = 16_384
    /// How many parsed URLs are kept. Default: 4,096.
    package var keptTargets = 4096
    /// Receives a record of every answer, on the request's task, before the answer is sent. `vitrine-server` counts
    /// answers from memory without it.
    package var observe: (@Sendable (AnswerRecord) -> Void)?

    package init() {}
}

/// An answer, for metrics and logs. It does not contain the address of the source.
package struct AnswerRecord: Sendable {
    /// The kind of request.
    package enum Route: String, Sendable, CaseIterable { case native, thumbor, iiif, information, health, other }

    package var route: Route
    package var requestID: String
    package var status: Int
    /// The code of the error; nil if there was none.
    package var errorCode: String?
    /// How the image was found; nil if it was not.
    package var origin: ImageAnswer.Origin?
    package var mediaType: String?
    /// Bytes of the body.
    package var bytes: Int
    package var stages: [ImageAnswer.Stage]
    /// From the start of the request to the start of the answer.
    package var duration: Duration
}
