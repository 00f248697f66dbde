#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// Loads URLs: follows redirects, enforces an access policy, retries and authenticates.
///
/// ```swift
/// let loader = NetworkLoader()
/// var request = HTTPRequest(url: url)
/// request.maximumBodySize = .megabytes(20)
/// let response = try await loader.load(request)
/// let bytes = try await response.body.collect()
/// ```
///
/// `http`, `https`, `file` and `data` URLs are supported; ``register(_:for:)`` adds other schemes. A response that is
/// an error throws before its body is read.
public final class NetworkLoader: Sendable {
    let configuration: Configuration
    /// The identity of the credentials, as a part of keys; see ``Configuration/identity``.
    let credentialsIdentity: String?
    /// The restrictions of the policy, as a part of keys.
    let restrictions: String?
    private let http: any HTTPTransport
    private let handlers: Locked<[String: any HTTPTransport]>
    let wallClock: WallClock
    private let waitForHost: @Sendable (String) async throws -> Void
    private let closeHost: @Sendable (String, Duration) -> Void
    private let sleep: @Sendable (Duration) async throws -> Void

    /// Creates a loader over a transport.
    ///
    /// - Parameters:
    ///   - http: The transport for HTTP requests.
    ///   - configuration: The configuration.
    public convenience init(_ http: any HTTPTransport, _ configuration: Configuration = Configuration()) {
        self.init(http, configuration, clock: ContinuousClock())
    }

    /// Creates a loader with clocks of its own.
    ///
    /// - Parameters:
    ///   - http: The transport for HTTP requests.
    ///   - configuration: The configuration.
    ///   - clock: The clock of the waits before retries.
    ///   - wallClock: The time of day, for dates in responses.
    package init(
        _ http: any HTTPTransport, _ configuration: Configuration = Configuration(),
        clock: some Clock<Duration> = ContinuousClock(), wallClock: WallClock = .system
    ) {
        self.http = http
        self.configuration = configuration
        credentialsIdentity = Self.credentialsIdentity(of: configuration)
        restrictions = configuration.policy.restrictions
        self.wallClock = wallClock
        handlers = Locked(["file": FileLoader(), "data": InlineDataLoader()])
        let gate = HostGate(clock)
        waitForHost = { try await gate.wait(for: $0) }
        closeHost = { gate.close($0, for: $1) }
        sleep = { try await clock.sleep(for: $0) }
    }

    #if os(Linux)
    /// Creates a loader over a new ``CurlLoader``.
    ///
    /// - Parameter configuration: The configuration.
    public convenience init(_ configuration: Configuration = Configuration()) {
        self.init(CurlLoader(), configuration)
    }
    #elseif canImport(Darwin)
    /// Creates a loader over a new `URLSessionLoader`.
    ///
    /// - Parameter configuration: The configuration.
    public convenience init(_ configuration: Configuration = Configuration()) {
        self.init(URLSessionLoader(), configuration)
    }
    #endif

    /// Registers a transport for a URL scheme and replaces the previous one.
    ///
    /// - Parameters:
    ///   - loader: The transport.
    ///   - scheme: The scheme without the colon, in any case. It must not be `http` or `https`.
    public func register(_ loader: any HTTPTransport, for scheme: String) {
        let scheme = scheme.lowercased()
        precondition(scheme != "http" && scheme != "https", "The transport for HTTP is an argument of the initializer.")
        handlers.withLock { $0[scheme] = loader }
    }

    /// Returns the transport of a scheme, in any case; nil if there is none.
    func transport(forScheme scheme: String?) -> (any HTTPTransport)? {
        let scheme = (scheme ?? "").lowercased()
        return scheme == "http" || scheme == "https" ? http : handlers.withLock { $0[scheme] }
    }

    /// Loads a request and returns as soon as the head of the response has been received.
    ///
    /// Cancellation of the task ends the load.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - progress: Receives the progress as the body is read.
    /// - Throws: The error of the load or of the response. A response is an error unless its status is 200…299 (or 304
    ///   after a conditional request), its range is the requested one, and the policy accepts its media type.
    public func load(
        _ request: HTTPRequest, progress: TransferProgress? = nil
    ) async throws(NetworkError) -> HTTPResponse {
        do throws(NetworkError) {
            let response = try await start(request, checks: .everything, progress: progress)
            guard let progress else { return response }
            progress.update { $0.total = response.head.contentLength }
            return HTTPResponse(head: response.head, body: response.body.counted(by: progress))
        } catch {
            progress?.update { $0.isFinished = true }
            throw error
        }
    }

    /// Loads a request. The progress receives retries and the response, but not the body.
    func start(
        _ request: HTTPRequest, checks: Checks, progress: TransferProgress?
    ) async throws(NetworkError) -> HTTPResponse {
        let response = try await respond(to: request, checks, progress)
        progress?.update { $0.isAnswered = true }
        return response
    }

    private func respond(
        to request: HTTPRequest, _ checks: Checks, _ progress: TransferProgress?
    ) async throws(NetworkError) -> HTTPResponse {
        let scheme = (request.url.scheme ?? "").lowercased()
        var url: String { SourceURL.withoutCredentials(request.url.absoluteString) }
        try HTTPSyntax.checkRange(of: request, at: url)
        if let violation = configuration.policy.check(scheme: scheme) { throw .refused(url: url, violation) }
        if scheme == "http" || scheme == "https" {
            return try await loadByHTTP(request, checks: checks, progress: progress)
        }
        guard let handler = handlers.withLock({ $0[scheme] }) else {
            throw .unsupportedScheme(url: String(url.prefix(64)), scheme: scheme)
        }
        let response = try Self.checked(try await handler.load(request), to: request)
        if checks == .everything,
            let failure = ResponseCheck.failure(response.head, to: request, policy: configuration.policy)
        {
            throw failure
        }
        return response
    }

    // MARK: Retries

    private func loadByHTTP(
        _ request: HTTPRequest, checks: Checks, progress: TransferProgress?
    ) async throws(NetworkError) -> HTTPResponse {
        let first = try SourceURL(request.url.absoluteString)
        var repetitions = 0
        while true {
            let mayRepeat = repetitions < configuration.retries.limit && HTTPSyntax.isIdempotent(request.method)
            try await pass(first.origin, first)
            do throws(NetworkError) {
                let (response, site) = try await walk(from: first, request)
                guard let failure = ResponseCheck.failure(response.head, to: request, policy: configuration.policy)
                else { return response }
                let delay = mayRepeat ? self.delay(after: response.head, at: site, repetitions + 1) : nil
                // Callers that check the status themselves receive the last response.
                if delay == nil, checks == .nothing { return response }
                response.body.cancel()
                guard let delay else { throw failure }
                try await wait(delay, first.text)
            } catch {
                guard mayRepeat, error.isWorthResuming, !error.isStatus else { throw error }
                try await wait(configuration.retries.delay(before: repetitions + 1), first.text)
            }
            repetitions += 1
            progress?.update { $0.retries += 1 }
        }
    }

    /// Returns the wait before a retry after a response; nil if the request is not retried.
    private func delay(after head: HTTPResponseHead, at site: SourceURL, _ repetition: Int) -> Duration? {
        let retries = configuration.retries
        guard retries.statuses.contains(head.status) else { return nil }
        guard let value = head.headers["Retry-After"],
            let delay = RetryAfter.delay(value, now: wallClock.now, upTo: .seconds(Int64.max))
        else { return retries.delay(before: repetition) }
        // All requests to the origin wait.
        closeHost(site.origin, min(delay, retries.maximumRetryAfter))
        return delay <= retries.maximumRetryAfter ? .zero : nil
    }

    func wait(_ delay: Duration, _ url: String) async throws(NetworkError) {
        guard delay > .zero else { return }
        do { try await sleep(delay) } catch { throw .cancelled(url: url) }
    }

    private func pass(_ origin: String, _ url: SourceURL) async throws(NetworkError) {
        do { try await waitForHost(origin) } catch { throw .cancelled(url: url.text) }
    }

    // MARK: One attempt

    private func walk(
        from first: SourceURL, _ request: HTTPRequest
    ) async throws(NetworkError) -> (HTTPResponse, SourceURL) {
        var walk = RedirectWalk(from: first, try await prepared(request, first), configuration)
        while true {
            let url = walk.url
            if let violation = violation(at: url, walk.request) { throw .refused(url: url.text, violation) }
            if url.origin != first.origin { try await pass(url.origin, url) }
            var response = try await send(walk.request, allowing: walk.filter)
            if let answer = try await authenticated(walk, response.head) {
                await response.body.discard()
                walk.answer(with: answer)
            } else if try walk.follow(response.head) {
                await response.body.discard()
            } else {
                response.redirects = walk.redirects
                response.answersConditions = walk.sendsConditions
                response.head.answersCredentials = walk.request.headers.contains("Authorization")
                return (response, url)
            }
        }
    }

    private func send(
        _ request: HTTPRequest, allowing filter: ConnectFilter?
    ) async throws(NetworkError) -> HTTPResponse {
        guard let http = http as? any FilteringTransport else {
            return try Self.checked(try await http.load(request), to: request)
        }
        return try Self.checked(try await http.load(request, allowing: filter), to: request)
    }

    /// Returns a response of any transport with a body that is checked: without content codings, of the declared
    /// length, and within the limit.
    private static func checked(
        _ response: HTTPResponse, to request: HTTPRequest
    ) throws(NetworkError) -> HTTPResponse {
        var response = response
        let url = SourceURL.withoutCredentials(request.url.absoluteString)
        response.head.nameStatusOfPart()
        #if os(Linux)
        let isDecoded = request.acceptsCompression && request.range == nil && !request.headers.contains("Range")
        if isDecoded, let decoded = try response.decoded(as: request, at: url) { response = decoded }
        #endif
        let head = response.head
        let hasBody = request.method != "HEAD" && head.status != 304 && !head.isWithoutContent
        // A transfer coding goes before the length (RFC 9112, section 6.3).
        let declared = hasBody && !head.headers.contains("Transfer-Encoding") ? head.contentLength : nil
        response.body = response.body.measured(by: declared, upTo: request.maximumBodySize, at: url)
        return response
    }

    private func violation(at url: SourceURL, _ request: HTTPRequest) -> PolicyViolation? {
        let policy = configuration.policy
        if let violation = policy.check(url) { return violation }
        guard !policy.allowsPrivateAddresses, !policy.trustsProxy else { return nil }
        let http = http as? any FilteringTransport
        return http?.showsAddresses(for: request.url) ?? false ? nil : .addressesUnknown
    }

    /// Returns the request with the configured fields and the credentials of its URL, changed by the modifiers.
    private func prepared(_ request: HTTPRequest, _ url: SourceURL) async throws(NetworkError) -> HTTPRequest {
        var request = request
        request.headers = fields(of: request)
        if let credentials = url.credentials, !request.headers.contains("Authorization") {
            guard let bytes = PercentEncoding.validated(credentials.utf8) else {
                throw .invalidURL(url: url.text, reason: "its user name or password is not percent-encoded correctly")
            }
            request.headers.append("Authorization", "Basic " + Data(bytes).base64EncodedString())
        }
        for modifier in configuration.modifiers {
            do { request = try await modifier(request) } catch { throw .handler(url: url.text, underlying: error) }
        }
        return request
    }

    private func authenticated(
        _ walk: RedirectWalk, _ head: HTTPResponseHead
    ) async throws(NetworkError) -> HTTPRequest? {
        guard head.status == 401 || head.status == 407, let authentication = configuration.authentication,
            !walk.hasAnswered
        else { return nil }
        do { return try await authentication(walk.request, head) } catch {
            throw .handler(url: walk.url.text, underlying: error)
        }
    }
}

extension NetworkError {
    fileprivate var isStatus: Bool {
        if case .status = self { true } else { false }
    }
}

extension NetworkLoader {
    /// The configuration of a ``NetworkLoader``.
    public struct Configuration: Sendable {
        /// The access policy. The default is ``URLAccessPolicy/userInitiated``.
        public var policy = URLAccessPolicy.userInitiated
        /// The retry policy.
        public var retries = RetryPolicy()
        /// Names the user or session that the loader acts for, as a part of cache keys and part files. Loaders with
        /// different identities never share a value or a transfer. It is stored as a digest only.
        ///
        /// Set it if the loader has ``modifiers`` or ``authentication``, for example to the user's number. The default
        /// is nil. A loader with modifiers or authentication then shares with no other loader, and the next process
        /// does not find its values. Without them, the loader's ``headers`` distinguish it.
        public var identity: String?
        /// Header fields of every request that does not set them itself.
        public var headers = HTTPHeaders()
        /// Closures that change a request before it is sent and before each retry, in order. They are not called for
        /// redirects. Their errors are thrown as ``NetworkError/handler(url:underlying:)``.
        public var modifiers: [@Sendable (HTTPRequest) async throws -> HTTPRequest] = []
        /// Returns the request to send after status 401 or 407, or nil to keep the response. It is called once per
        /// origin of a load.
        public var authentication: (@Sendable (HTTPRequest, HTTPResponseHead) async throws -> HTTPRequest?)?
        /// The header fields, in lowercase, that are sent to another origin after a redirect. Other fields may be
        /// secrets and are removed.
        package var crossOriginHeaders: Set<String> = [
            "accept", "accept-language", "accept-encoding", "cache-control", "pragma", "user-agent", "range",
            "if-range", "if-none-match", "if-modified-since",
        ]

        /// Creates the default configuration.
        public init() {}
    }

    /// The checks of a response.
    enum Checks: Sendable {
        /// A response is an error unless its status is 200…299 (or 304 after a conditional request), its range is the
        /// requested one, and the policy accepts its media type.
        case everything
        /// Only violations of HTTP are errors. The caller checks the status.
        case nothing
    }
}
