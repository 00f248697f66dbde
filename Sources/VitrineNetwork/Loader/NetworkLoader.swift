#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
public import VitrineCore

/// Loads what an address stands for: follows redirects, asks the policy at every step, tries again, answers for who
/// asks (R72–R79).
///
/// ```swift
/// let loader = NetworkLoader()
/// var request = HTTPRequest(url: url)
/// request.maximumBodySize = .megabytes(20)
/// let response = try await loader.load(request)
/// let bytes = try await response.body.collect()
/// ```
///
/// `http` and `https` go to the ``HTTPTransport`` given, `file` to a ``FileLoader``, `data` to an ``InlineDataLoader``,
/// others to who is registered for them. Of a response that is an error not a byte of body is handed on.
public final class NetworkLoader: Sendable {
    let configuration: Configuration
    private let http: any HTTPTransport
    private let handlers: Locked<[String: any HTTPTransport]>
    let wallClock: WallClock
    private let waitForHost: @Sendable (String) async throws -> Void
    private let closeHost: @Sendable (String, Duration) -> Void
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameters:
    ///   - http: Carries requests over HTTP.
    ///   - configuration: How to load.
    ///   - clock: Waits before repetitions.
    ///   - wallClock: The time of day, for dates servers name.
    public init(
        _ http: any HTTPTransport, _ configuration: Configuration = Configuration(),
        clock: some Clock<Duration> = ContinuousClock(), wallClock: WallClock = .system
    ) {
        self.http = http
        self.configuration = configuration
        self.wallClock = wallClock
        handlers = Locked(["file": FileLoader(), "data": InlineDataLoader()])
        let gate = HostGate(clock)
        waitForHost = { try await gate.wait(for: $0) }
        closeHost = { gate.close($0, for: $1) }
        sleep = { try await clock.sleep(for: $0) }
    }

    #if os(Linux)
    /// A loader over a ``CurlLoader`` of its own.
    public convenience init(_ configuration: Configuration = Configuration()) {
        self.init(CurlLoader(), configuration)
    }
    #elseif canImport(Darwin)
    /// A loader over a ``URLSessionLoader`` of its own.
    public convenience init(_ configuration: Configuration = Configuration()) {
        self.init(URLSessionLoader(), configuration)
    }
    #endif

    /// Hands all addresses of a scheme to a loader (R79). It replaces the one registered before.
    ///
    /// - Parameters:
    ///   - loader: What loads them.
    ///   - scheme: In any case, without the colon. Not `http` or `https`.
    public func register(_ loader: any HTTPTransport, for scheme: String) {
        let scheme = scheme.lowercased()
        precondition(scheme != "http" && scheme != "https", "HTTP belongs to the loader's own client")
        handlers.withLock { $0[scheme] = loader }
    }

    /// Loads.
    ///
    /// Cancelling the task ends everything.
    ///
    /// - Parameters:
    ///   - request: What to load.
    ///   - checks: Which responses are errors.
    ///   - progress: Told how far the body has come, as it is read.
    /// - Throws: Why there is nothing.
    public func load(
        _ request: HTTPRequest, checking checks: Checks = .everything, progress: TransferProgress? = nil
    ) async throws(NetworkError) -> HTTPResponse {
        do throws(NetworkError) {
            let response = try await start(request, checks, progress)
            guard let progress else { return response }
            progress.update { $0.total = response.head.contentLength }
            return HTTPResponse(head: response.head, body: response.body.counted(by: progress))
        } catch {
            progress?.update { $0.isFinished = true }
            throw error
        }
    }

    /// The same, but progress hears of repetitions and of the response only.
    func start(
        _ request: HTTPRequest, _ checks: Checks, _ progress: TransferProgress?
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
        if let violation = configuration.policy.check(scheme: scheme) { throw .refused(url: url, violation) }
        if scheme == "http" || scheme == "https" { return try await loadByHTTP(request, checks, progress) }
        guard let handler = handlers.withLock({ $0[scheme] }) else {
            throw .unsupportedScheme(url: String(url.prefix(64)), scheme: scheme)
        }
        let response = try await handler.load(request)
        if checks == .everything,
            let failure = ResponseCheck.failure(response.head, to: request, policy: configuration.policy)
        {
            throw failure
        }
        return response
    }

    // MARK: Trying again

    private func loadByHTTP(
        _ request: HTTPRequest, _ checks: Checks, _ progress: TransferProgress?
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
                // Who looks at the status himself gets the last one.
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

    /// How long to wait before sending a request again that was answered so; nil for not at all.
    private func delay(after head: HTTPResponseHead, at site: SourceURL, _ repetition: Int) -> Duration? {
        let retries = configuration.retries
        guard retries.statuses.contains(head.status) else { return nil }
        guard let value = head.headers["Retry-After"],
            let delay = RetryAfter.delay(value, now: wallClock.now, upTo: .seconds(Int64.max))
        else { return retries.delay(before: repetition) }
        // The whole site waits, this request with it.
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
            let response = try await http.load(walk.request, allowing: walk.guardian)
            if let answer = try await authenticated(walk, response.head) {
                await response.body.discard()
                walk.answer(with: answer)
            } else if try walk.follow(response.head) {
                await response.body.discard()
            } else {
                return (response, url)
            }
        }
    }

    private func violation(at url: SourceURL, _ request: HTTPRequest) -> PolicyViolation? {
        let policy = configuration.policy
        if let violation = policy.check(url) { return violation }
        guard !policy.allowsPrivateAddresses, !policy.trustsProxy else { return nil }
        return http.showsAddresses(for: request.url) ? nil : .addressesUnknown
    }

    /// The request as it is sent first: with the fields all have, the credentials of its address, and what modifiers
    /// make of it.
    private func prepared(_ request: HTTPRequest, _ url: SourceURL) async throws(NetworkError) -> HTTPRequest {
        var request = request
        for field in configuration.headers.fields where !request.headers.contains(field.name) {
            request.headers.append(field.name, field.value)
        }
        if let credentials = url.credentials, !request.headers.contains("Authorization") {
            guard let bytes = PercentEncoding.decode(credentials.utf8) else {
                throw .invalidURL(url: url.text, reason: "its name or password is not written as it should be")
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
