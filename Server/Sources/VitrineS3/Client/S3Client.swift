import Foundation
import Synchronization
public import VitrineCore
public import VitrineNetwork

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A client of a store that speaks the protocol of Amazon S3.
///
/// ```swift
/// var configuration = S3Client.Configuration()
/// configuration.endpoint = "https://objects.example.org"
/// let pictures = try S3Client(configuration).bucket("pictures")
/// try await pictures.put(bytes, as: "cats/1.jpeg", type: "image/jpeg")
/// let cat = try await pictures.get("cats/1.jpeg")
/// ```
///
/// Requests are signed by Signature Version 4. Failures that may pass are retried, as long as the budget of the client
/// lasts: an outage of the server therefore does not multiply the requests. If the clocks of server and client differ,
/// the client adopts the time of the server for its signatures.
///
/// The operator chooses the endpoint, which is therefore trusted: no access policy applies to it. Redirects are not
/// followed, so no other host receives credentials.
///
/// Share one client: it has connections, credentials and a retry budget of its own.
public final class S3Client: Sendable {
    /// How addresses name the bucket.
    public enum Addressing: String, Sendable, Hashable, CaseIterable {
        /// The host for Amazon's endpoints and buckets whose names have no dots; otherwise the path.
        case automatic
        /// The path: `https://host/bucket/key`.
        case path
        /// The host: `https://bucket.host/key`.
        case virtualHost
    }

    /// The settings of a client.
    public struct Configuration: Sendable {
        /// Scheme, host and port of the server, such as `https://objects.example.org`; nil for Amazon's server of the
        /// region.
        public var endpoint: String?
        /// The region that signatures name. Default: `us-east-1`, which most other servers accept.
        public var region = "us-east-1"
        /// How addresses name the bucket. Default: automatic.
        public var addressing = Addressing.automatic
        /// Where the credentials come from. Default: the environment, then the shared credentials file.
        public var credentials = S3CredentialSource.automatic
        /// Whether signatures cover the bodies of requests, so that the server detects damaged ones. Default: true.
        public var signsPayloads = true
        /// The most bytes of an object that is loaded into memory. Default: 100 MB.
        public var maximumBytes: ByteCount = .megabytes(100)
        /// The bytes of each part of an upload in parts; at least 5 MiB for most servers. An upload has at most 10,000
        /// parts. Default: 8 MiB.
        public var partSize: ByteCount = .mebibytes(8)
        /// How many parts of one upload are sent at once. One more is in memory. Default: 2.
        public var concurrentParts = 2
        /// The most connections to the server. Default: 32.
        public var connections = 32
        /// The limit for a connection. Default: 5 seconds.
        public var connectTimeout: Duration = .seconds(5)
        /// The longest silence of the server. Requests with a body have a second more for each 64 KiB. Default: 10
        /// seconds.
        public var idleTimeout: Duration = .seconds(10)
        /// The limit for one request without its retries; longer for bodies, as for ``idleTimeout``. Default: 60
        /// seconds.
        public var totalTimeout: Duration = .seconds(60)
        /// The most retries of a request. Default: 3.
        public var retries = 3
        /// The longest `Retry-After` to wait for. If the server demands more, the call fails at once. Default: 5
        /// seconds.
        public var maximumRetryAfter: Duration = .seconds(5)
        /// The path of a PEM file with certificates to trust instead of the system's. Linux only.
        public var certificateAuthorities: String?

        /// Creates the defaults.
        public init() {}

        /// Creates settings with the endpoint of `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, and the region of
        /// `AWS_REGION` or `AWS_DEFAULT_REGION`, where these are set.
        public static func fromEnvironment() -> Configuration {
            fromEnvironment { getenv($0).map { String(cString: $0) } }
        }

        package static func fromEnvironment(_ variable: (String) -> String?) -> Configuration {
            func value(_ names: String...) -> String? { names.lazy.compactMap(variable).first { !$0.isEmpty } }
            var configuration = Configuration()
            configuration.endpoint = value("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
            if let region = value("AWS_REGION", "AWS_DEFAULT_REGION") { configuration.region = region }
            return configuration
        }
    }

    /// The parts of a client that tests replace.
    package struct Surroundings: Sendable {
        package var environment: @Sendable (String) -> String? = { getenv($0).map { String(cString: $0) } }
        package var clock = WallClock.system
        package var sleep: @Sendable (Duration) async throws -> Void = { try await ContinuousClock().sleep(for: $0) }
        package var jitter: @Sendable () -> Double = { Double.random(in: 0...1) }

        package init() {}
    }

    private struct State {
        /// The time of the server less that of this computer.
        var clockOffset = Duration.zero
        var budget = RetryBudget()
        /// The buckets whose server answered a conditional write with status 501.
        var withoutConditions: Set<String> = []
    }

    package let configuration: Configuration
    let endpoint: S3Endpoint
    private let transport: any HTTPTransport
    private let credentials: CredentialProvider
    private let surroundings: Surroundings
    private let state = Mutex(State())

    /// Creates a client. It does not connect before the first call.
    ///
    /// - Parameters:
    ///   - configuration: The settings.
    ///   - transport: Sends the requests. Default: libcurl on Linux, `URLSession` elsewhere.
    /// - Throws: ``S3Error/invalidConfiguration(reason:)``.
    public convenience init(
        _ configuration: Configuration = Configuration(), transport: (any HTTPTransport)? = nil
    ) throws(S3Error) {
        try self.init(configuration, transport: transport, Surroundings())
    }

    package init(
        _ configuration: Configuration, transport: (any HTTPTransport)? = nil, _ surroundings: Surroundings
    ) throws(S3Error) {
        self.configuration = configuration
        self.surroundings = surroundings
        endpoint = try S3Endpoint(configuration)
        let transport = transport ?? Self.transport(configuration, usesProxies: true)
        self.transport = transport
        let metadata = configuration.credentials.asksMetadata ? Self.directTransport(configuration) : nil
        credentials = CredentialProvider(
            configuration.credentials, environment: surroundings.environment, transport: metadata ?? transport,
            clock: surroundings.clock)
    }

    /// Returns a transport without proxies: one would be asked for the role of its own machine.
    package static func directTransport(_ configuration: Configuration) -> any HTTPTransport {
        transport(configuration, usesProxies: false)
    }

    private static func transport(_ configuration: Configuration, usesProxies: Bool) -> any HTTPTransport {
        #if os(Linux)
        var settings = CurlLoader.Configuration()
        settings.connectionsPerHost = max(1, configuration.connections)
        settings.userAgent = "vitrine-s3"
        settings.certificateAuthorities = configuration.certificateAuthorities
        if !usesProxies { settings.proxy = .none }
        return CurlLoader(settings)
        #else
        return URLSessionLoader()
        #endif
    }

    /// Returns a bucket of the server. Its name is checked by each call.
    public func bucket(_ name: String) -> S3Bucket { S3Bucket(client: self, name: name) }

    // MARK: Calls

    /// The time of the server, as far as it is known, since 1970.
    var serverTime: Duration { surroundings.clock.now + state.withLock { $0.clockOffset } }

    func supportsConditions(_ bucket: String) -> Bool { state.withLock { !$0.withoutConditions.contains(bucket) } }

    func rememberNoConditions(_ bucket: String) { _ = state.withLock { $0.withoutConditions.insert(bucket) } }

    func currentCredentials() async throws(S3Error) -> S3Credentials? { try await credentials.credentials() }

    /// Sends a call, with retries, and returns its answer with the whole body.
    func send(_ call: S3Call) async throws(S3Error) -> S3Answer { try await run(call).result.get() }

    /// Sends a call, and says whether an attempt that seemed to fail may have had an effect.
    func run(_ call: S3Call) async throws(S3Error) -> (result: Result<S3Answer, S3Error>, isUncertain: Bool) {
        try call.check()
        var attempts = 0
        var isUncertain = false
        var hasSetClock = false
        var hasRenewed = false
        while true {
            guard !Task.isCancelled else { throw .cancelled(call.address) }
            let keys = try await credentials.credentials()
            let failure: S3Failure
            switch await attempt(call, keys) {
            case .answer(let answer):
                state.withLock { $0.budget.refund() }
                return (.success(answer), isUncertain)
            case .failure(let found): failure = found
            }
            isUncertain = isUncertain || failure.isUncertain
            switch failure.remedy {
            case .setClock(let offset) where !hasSetClock:
                hasSetClock = true
                state.withLock { $0.clockOffset = offset }
            case .renewCredentials where !hasRenewed && keys.map(credentials.renew) ?? false:
                hasRenewed = true
            case .wait(let demanded):
                attempts += 1
                guard attempts <= configuration.retries, demanded ?? .zero <= configuration.maximumRetryAfter,
                    state.withLock({ $0.budget.take() })
                else { return (.failure(failure.error), isUncertain) }
                try await pause(attempts, demanded: demanded, call: call)
            default: return (.failure(failure.error), isUncertain)
            }
        }
    }

    /// Exponential backoff with full jitter, after the time that the server demands.
    private func pause(_ attempt: Int, demanded: Duration?, call: S3Call) async throws(S3Error) {
        let limit = min(Duration.milliseconds(100) * (1 << min(attempt - 1, 8)), .seconds(5))
        let delay = (demanded ?? .zero) + limit * min(1, max(0, surroundings.jitter()))
        do { try await surroundings.sleep(delay) } catch { throw .cancelled(call.address) }
    }

    private enum Attempt {
        case answer(S3Answer)
        case failure(S3Failure)
    }

    private func attempt(_ call: S3Call, _ keys: S3Credentials?) async -> Attempt {
        let signedAt = serverTime
        let target = endpoint.target(call.bucket, call.key)
        var headers = call.headers
        let hash =
            call.body == nil || configuration.signsPayloads
            ? RequestSigner.digest(call.body ?? []) : RequestSigner.unsignedPayload
        if let keys {
            headers += [("x-amz-content-sha256", hash), ("x-amz-date", S3Time.stamp(signedAt))]
            if let token = keys.sessionToken { headers.append(("x-amz-security-token", token)) }
            let signed = RequestSigner.Request(
                method: call.method, host: target.host, path: target.path, query: call.query, headers: headers)
            let authorization = RequestSigner(keys, region: configuration.region)
                .authorization(for: signed, payloadHash: hash, at: signedAt)
            headers.append(("Authorization", authorization))
        }
        let query = call.query.isEmpty ? "" : "?" + RequestSigner.encoded(call.query)
        guard let url = URL(string: target.origin + target.path + query) else {
            return .failure(S3Failure(.invalidName(call.address, reason: "it has no address at the server")))
        }
        var request = HTTPRequest(url: url, method: call.method, headers: HTTPHeaders(headers))
        request.body = call.body
        request.range = call.range
        request.acceptsCompression = call.isDecoded
        // Time to send the body, at 64 KiB a second.
        let sending = Duration.seconds((call.body?.count ?? 0) >> 16)
        request.connectTimeout = configuration.connectTimeout
        request.idleTimeout = configuration.idleTimeout + sending
        request.totalTimeout = configuration.totalTimeout + sending
        request.maximumBodySize = max(call.limit, Self.longestError)
        switch await exchange(request, call.limit) {
        case .success(let answer):
            guard let failure = S3Failure(answer, to: call, signedAt: signedAt, now: surroundings.clock.now) else {
                return .answer(answer)
            }
            return .failure(failure)
        case .failure(let error): return .failure(S3Failure(error, of: call))
        }
    }

    /// The most bytes of an error's body.
    private static let longestError = ByteCount.kibibytes(64)

    private func exchange(_ request: HTTPRequest, _ limit: ByteCount) async -> Result<S3Answer, NetworkError> {
        do throws(NetworkError) {
            let response = try await transport.load(request)
            let isSuccess = (200..<300).contains(response.head.status)
            let body: [UInt8]
            if isSuccess {
                body = try await response.body.collect(upTo: limit)
            } else {
                // The status says enough if the rest does not arrive.
                body = (try? await response.body.collect(upTo: Self.longestError)) ?? []
            }
            return .success(S3Answer(head: response.head, body: body))
        } catch {
            return .failure(error)
        }
    }
}

extension S3CredentialSource {
    fileprivate var asksMetadata: Bool {
        switch self {
        case .instanceMetadata: true
        case .first(let sources): sources.contains { $0.asksMetadata }
        default: false
        }
    }
}

/// Limits the retries of all calls of a client together: a retry costs five tokens, a success returns one.
package struct RetryBudget: Sendable {
    private static let capacity = 100
    private static let cost = 5
    private var tokens = capacity

    package init() {}

    /// Takes the tokens of a retry; false if there are too few.
    package mutating func take() -> Bool {
        guard tokens >= Self.cost else { return false }
        tokens -= Self.cost
        return true
    }

    package mutating func refund() { tokens = min(Self.capacity, tokens + 1) }
}

/// Scheme, host and port of a server, and the form of its addresses.
struct S3Endpoint: Sendable {
    private let scheme: String
    /// The host, and the port unless it is the default of the scheme.
    private let host: String
    private let addressing: S3Client.Addressing

    init(_ configuration: S3Client.Configuration) throws(S3Error) {
        let region = configuration.region
        guard !region.isEmpty, region.utf8.allSatisfy({ Self.isNameByte($0) && $0 != UInt8(ascii: ".") }) else {
            throw .invalidConfiguration(reason: "the region \"\(region)\" is not a name")
        }
        let text = configuration.endpoint ?? "https://s3.\(region).amazonaws.com"
        let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        scheme = parts[0].lowercased()
        guard parts.count == 2, scheme == "http" || scheme == "https" else {
            throw .invalidConfiguration(reason: "the endpoint does not begin with http:// or https://")
        }
        var authority = parts[1].lowercased()
        if authority.hasSuffix("/") { authority.removeLast() }
        let standard = scheme == "https" ? ":443" : ":80"
        if authority.hasSuffix(standard) { authority.removeLast(standard.count) }
        let isLiteral = authority.hasPrefix("[")
        let name = isLiteral ? authority.prefix { $0 != "]" }.dropFirst() : authority.prefix { $0 != ":" }
        let rest = authority.dropFirst(name.count + (isLiteral ? 2 : 0))
        let isName = name.utf8.allSatisfy { Self.isNameByte($0) || isLiteral && $0 == UInt8(ascii: ":") }
        let isPort = rest.hasPrefix(":") && UInt16(rest.dropFirst()) != nil
        guard !name.isEmpty, isName, rest.isEmpty || isPort, URL(string: scheme + "://" + authority + "/") != nil else {
            throw .invalidConfiguration(reason: "the endpoint is not a scheme, a host and a port")
        }
        host = authority
        let isAddress = isLiteral || name.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (0x30...0x39).contains($0) }
        guard !isAddress || configuration.addressing != .virtualHost else {
            throw .invalidConfiguration(reason: "addresses of an IP address cannot name the bucket in the host")
        }
        let isAmazon = name.hasSuffix(".amazonaws.com") || name.hasSuffix(".amazonaws.com.cn")
        addressing = configuration.addressing == .automatic && !isAmazon ? .path : configuration.addressing
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: false
        }
    }

    /// The address of an object or bucket.
    struct Target {
        let origin: String
        let host: String
        /// Encoded.
        let path: String
    }

    func target(_ bucket: String, _ key: String) -> Target {
        let key = RequestSigner.encoded(key, keepsSlashes: true)
        let usesHost: Bool =
            switch addressing {
            case .virtualHost: true
            case .path: false
            // The certificates of Amazon do not cover names with dots.
            case .automatic: Self.isHostLabel(bucket)
            }
        let host = usesHost ? bucket + "." + host : host
        let path = usesHost ? "/" + key : "/" + bucket + (key.isEmpty ? "" : "/" + key)
        return Target(origin: scheme + "://" + host, host: host, path: path)
    }

    private static func isHostLabel(_ name: String) -> Bool {
        name.utf8.count <= 63
            && name.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "-")
            }
    }
}
