extension NetworkLoader {
    /// How a ``NetworkLoader`` loads.
    public struct Configuration: Sendable {
        /// What may be loaded from where. Default: ``URLAccessPolicy/userInitiated``.
        public var policy = URLAccessPolicy.userInitiated
        /// When requests are sent again.
        public var retries = RetryPolicy()
        /// Fields every request has that does not bring its own.
        public var headers = HTTPHeaders()
        /// Change a request before it is sent the first time and before each repetition, in order: not when it is
        /// redirected. What they throw is ``NetworkError/handler(url:underlying:)``.
        public var modifiers: [RequestModifier] = []
        /// Asked once for each site that answers 401 or 407: the request to send instead, or nil to leave it.
        public var authentication: Authentication?
        /// Fields that go along when a redirect leads to another site. Everything else stays behind: nobody can tell
        /// which fields are secrets.
        public var crossOriginHeaders: Set<String> = [
            "accept", "accept-language", "accept-encoding", "cache-control", "pragma", "user-agent", "range",
            "if-range", "if-none-match", "if-modified-since",
        ]

        public init() {}
    }

    /// Changes a request before it is sent.
    public typealias RequestModifier = @Sendable (HTTPRequest) async throws -> HTTPRequest

    /// Answers a server that wants to know who asks.
    public typealias Authentication = @Sendable (HTTPRequest, HTTPResponseHead) async throws -> HTTPRequest?

    /// Which responses are errors.
    public enum Checks: Sendable {
        /// All but those that bring what was asked for: a status of 200 to 299, 304 to a conditional request, the part
        /// that was asked for, a content type that the policy accepts (R72, R75).
        case everything
        /// Only those that break the rules of HTTP. For who looks at the status.
        case nothing
    }
}
