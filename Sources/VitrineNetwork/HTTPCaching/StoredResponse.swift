/// The head of a stored response with all a cache needs to decide about it. The body lies elsewhere.
///
/// Kept beside the body as ``bytes()``: the tag of a cache's entry.
public struct StoredResponse: Sendable, Hashable {
    /// The status code.
    public internal(set) var status: Int
    /// The fields, without those that concern a single connection or may not be stored.
    public internal(set) var headers: HTTPHeaders
    /// When the request was sent, since 1970.
    public internal(set) var requestTime: Duration
    /// When the head of the response arrived, since 1970.
    public internal(set) var responseTime: Duration
    /// How many bytes the body has: to be set by who stores it, when it is whole. nil while that is not known; then no
    /// parts of it can be served.
    public var bodyLength: Int?
    /// Whether something has happened since that makes it doubtful: it counts as stale.
    public internal(set) var isInvalidated = false
    /// What requests it answers have in common.
    var selecting: [SelectingField]

    init(
        status: Int, headers: HTTPHeaders, requestTime: Duration, responseTime: Duration, selecting: [SelectingField]
    ) {
        self.status = status
        self.headers = headers
        self.requestTime = requestTime
        self.responseTime = max(requestTime, responseTime)
        self.selecting = selecting
    }

    /// The response as one that has to be revalidated before it is used again.
    public func invalidated() -> StoredResponse {
        var response = self
        response.isInvalidated = true
        return response
    }

    /// The response's entity tag as it was sent; nil if it cannot be sent back so.
    public var entityTag: String? { headers["ETag"].flatMap { EntityTag.isSendable($0) ? $0 : nil } }

    /// The response's time of change as it was sent, if it is a date.
    public var lastModified: String? {
        headers["Last-Modified"].flatMap { HTTPDate.seconds($0, now: responseTime) == nil ? nil : $0 }
    }

    /// When the response was made, in seconds since 1970: what `Date` says, or when it arrived.
    var date: Int64 { headers["Date"].flatMap { HTTPDate.seconds($0, now: responseTime) } ?? responseSeconds }

    private var responseSeconds: Int64 { responseTime.components.seconds }
}
