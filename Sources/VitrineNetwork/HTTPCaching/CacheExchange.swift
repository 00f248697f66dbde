/// A request that went to the server, and the head of what came back.
public struct CacheExchange: Sendable {
    /// The request as the requester made it, without the conditions a cache added.
    public var request: CacheRequest
    /// The final status code of the response.
    public var status: Int
    /// The fields of the response.
    public var headers: HTTPHeaders
    /// When the request was sent, since 1970.
    public var requestTime: Duration
    /// When the head of the response arrived, since 1970.
    public var responseTime: Duration
    /// All that was stored under the URL, as it was given to ``HTTPCache/decide(_:stored:now:)``.
    public var stored: [StoredResponse]
    /// Which of them the server was asked about.
    public var revalidated: Int?

    public init(
        request: CacheRequest, status: Int, headers: HTTPHeaders, requestTime: Duration, responseTime: Duration,
        stored: [StoredResponse] = [], revalidated: Int? = nil
    ) {
        self.request = request
        self.status = status
        self.headers = headers
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.stored = stored
        self.revalidated = revalidated.flatMap { stored.indices.contains($0) ? $0 : nil }
    }
}
