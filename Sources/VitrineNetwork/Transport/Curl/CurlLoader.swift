#if os(Linux)
import CVitrineCurl
import FoundationEssentials
package import VitrineCore

/// Loads over HTTP with libcurl, on a thread of its own. It is the transport of ``NetworkLoader`` on Linux.
///
/// Create one to change how connections are made:
///
/// ```swift
/// var configuration = CurlLoader.Configuration()
/// configuration.proxy = .url("http://proxy.example:3128")
/// let loader = NetworkLoader(CurlLoader(configuration))
/// ```
///
/// Connections are reused, and requests share one connection if a server supports HTTP/2. Certificates are always
/// verified. Cookies, `.netrc` files and other protocols are not used. The transport receives a body only as fast as it
/// is read.
///
/// Share one loader: each has a thread and connections of its own. The thread ends with the last reference to the
/// loader and to the bodies of its responses.
public final class CurlLoader: FilteringTransport {
    private let configuration: Configuration
    private let proxies: ProxySettings
    /// Made for the first request, and again for the next one if there were no descriptors or no memory.
    private let loop = Locked<CurlLoop?>(nil)
    private let thread: BlockingExecutor

    /// The client certificate, the trusted certificates, the proxy and the user agent, if they are not the usual ones.
    public let identity: String?

    /// Whether the loader uses HTTP/2 with servers that support it.
    package var supportsHTTP2: Bool { configuration.allowsHTTP2 && ccurl_features() & 1 != 0 }

    /// Creates a loader.
    ///
    /// - Parameter configuration: How connections are made.
    public convenience init(_ configuration: Configuration = Configuration()) {
        self.init(configuration, environment: ProxySettings.environment)
    }

    /// Creates a loader with another environment.
    package init(_ configuration: Configuration, environment: (String) -> String?) {
        self.configuration = configuration
        proxies = ProxySettings(configuration.proxy, environment: environment)
        identity = configuration.identity
        thread = BlockingExecutor(threads: 1, name: "vitrine-net")
    }

    /// The loop with its thread; nil if it cannot be made now.
    private func runningLoop() -> CurlLoop? {
        loop.withLock { loop in
            if let loop { return loop }
            guard let made = CurlLoop(configuration) else { return nil }
            thread.submit { made.run() }
            loop = made
            return made
        }
    }

    /// The version of libcurl, or the reason why it cannot be loaded. Loads it.
    package static var library: (version: String?, problem: String?) {
        if let missing = ccurl_missing() { return (nil, String(cString: missing)) }
        let number = ccurl_version()
        return ("\(number >> 16).\(number >> 8 & 255).\(number & 255)", nil)
    }

    deinit { loop.withLock { $0 }?.submit(.stop) }

    /// Returns whether the loader connects to the host itself, without a proxy.
    package func showsAddresses(for url: URL) -> Bool {
        guard let url = try? SourceURL(url.absoluteString) else { return false }
        return proxies.proxy(for: url) == nil
    }

    /// The number of requests that wait for a connection.
    package var waitingCount: Int { loop.withLock { $0 }?.waitingCount.load(ordering: .relaxed) ?? 0 }

    public func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        try await load(request, allowing: nil)
    }

    package func load(
        _ request: HTTPRequest, allowing filter: ConnectFilter?
    ) async throws(NetworkError) -> HTTPResponse {
        let prepared = try CurlRequest(request, configuration: configuration, proxies: proxies)
        guard let loop = runningLoop() else {
            if let missing = ccurl_missing() {
                throw .unavailable(url: prepared.displayURL, reason: "libcurl is missing: \(String(cString: missing))")
            }
            throw .unavailable(url: prepared.displayURL, reason: "no file descriptors or memory are left")
        }
        guard !Task.isCancelled else { throw .cancelled(url: prepared.displayURL) }
        let transfer = CurlTransfer(
            prepared, filter: filter, highWater: configuration.receiveWindow.bytes, loop: loop)
        loop.submit(.start(transfer))
        // Ends the transfer if this function throws.
        let body = CurlBody(transfer, loader: self)
        let raw = try await transfer.head()
        let head = try HTTPResponseHead(raw, of: prepared, at: request.url)
        let response = HTTPResponse(head: head, body: ResponseBody(body, announced: head.contentLength))
        let url = prepared.displayURL
        if prepared.isDecoded, let decoded = try response.decoded(as: request, at: url) { return decoded }
        try head.checkLength(request.maximumBodySize, of: prepared.method, at: prepared.displayURL)
        transfer.limit(to: prepared.maximumBodySize)
        return response
    }
}

/// The body of a transfer. Its release ends the transfer.
private final class CurlBody: BodySource {
    private let transfer: CurlTransfer
    /// Keeps the thread running.
    private let loader: CurlLoader

    init(_ transfer: CurlTransfer, loader: CurlLoader) {
        self.transfer = transfer
        self.loader = loader
    }

    deinit { transfer.cancel() }

    func next() async throws(NetworkError) -> [UInt8]? { try await transfer.next() }

    func next(reusing spare: consuming [UInt8]) async throws(NetworkError) -> [UInt8]? {
        try await transfer.next(reusing: spare)
    }

    func collect(upTo limit: ByteCount, expecting expected: Int) async throws(NetworkError) -> [UInt8] {
        try await transfer.collect(upTo: limit.bytes, expecting: expected)
    }

    func cancel() { transfer.cancel() }
}

extension HTTPResponseHead {
    fileprivate init(
        _ raw: CurlTransfer.RawHead, of request: CurlRequest, at url: URL
    ) throws(NetworkError) {
        let headers: HTTPHeaders
        do throws(HTTPHeadersProblem) {
            headers = try HTTPHeaders(lines: raw.lines)
        } catch {
            throw .invalidResponse(url: request.displayURL, reason: error.reason)
        }
        // Other readers may see two responses in one with two lengths (RFC 9112, section 6.3).
        let length = headers["Content-Length"]
        if headers.fields.contains(where: { $0.isNamed("Content-Length") && $0.value != length }) {
            throw .invalidResponse(url: request.displayURL, reason: "it declares more than one length")
        }
        if length != nil, Self.contentLength(in: headers) == nil {
            throw .invalidResponse(url: request.displayURL, reason: "its length is not a number")
        }
        let version: Version =
            switch raw.version {
            case 10: .http1_0
            case 20..<30: .http2
            case 30...: .http3
            default: .http1_1
            }
        self.init(
            status: raw.status, headers: headers, url: url, version: version,
            remoteAddress: raw.remoteAddress.isEmpty ? nil : raw.remoteAddress)
        isProxied = !request.proxy.isEmpty
    }
}

extension CurlLoader {
    /// The settings of a ``CurlLoader``.
    public struct Configuration: Sendable {
        /// The most connections to one host. Further requests wait, in the order of their priority. One HTTP/2
        /// connection carries up to a hundred requests. The default is 10.
        public var connectionsPerHost = 10
        /// The most connections in total. The default is 256.
        package var connections = 256
        /// Whether to use HTTP/2 with servers that support it. The default is true.
        public var allowsHTTP2 = true
        /// The proxy. The default reads `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` from the environment.
        public var proxy = Proxy.environment
        /// The path of a PEM file with certificates to trust instead of the system's.
        public var certificateAuthorities: String?
        /// The certificate that authenticates the client to servers that request one.
        public var clientCertificate: ClientCertificate?
        /// The `User-Agent` of requests, or nil for none. The default is `Vitrine`.
        public var userAgent: String? = "Vitrine"
        /// How much of a body is buffered before it is read. The default is 512 KiB.
        package var receiveWindow = ByteCount.kibibytes(512)
        /// The most bytes in the header of a response.
        package var headerSize = ByteCount.kibibytes(64)
        /// The most fields in the header of a response.
        package var headerCount = 200

        /// The bytes to read at a time.
        var bufferSize = 32 << 10
        /// The bytes to read at a time of a large body.
        var largeBufferSize = 256 << 10

        /// Creates the default settings.
        public init() {}
    }

    /// A choice of proxies.
    public enum Proxy: Sendable, Hashable {
        /// The proxies that `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` name when the loader is created.
        case environment
        /// No proxy.
        case none
        /// A proxy for all hosts, such as `http://host:port`, `https://host:port` or `socks5h://host:port`.
        case url(String)
    }

    /// A client certificate and its key, as PEM files.
    public struct ClientCertificate: Sendable {
        /// The path of the certificate.
        public var certificate: String
        /// The path of the key, or nil if the certificate's file contains it.
        public var key: String?
        /// The password of an encrypted key.
        public var password: String?

        /// Creates a client certificate.
        ///
        /// - Parameters:
        ///   - certificate: The path of the certificate.
        ///   - key: The path of the key, or nil if the certificate's file contains it.
        ///   - password: The password of an encrypted key.
        public init(certificate: String, key: String? = nil, password: String? = nil) {
            self.certificate = certificate
            self.key = key
            self.password = password
        }
    }
}

extension CurlLoader.Configuration {
    /// The settings that can change an answer, as text; nil for the default.
    fileprivate var identity: String? {
        var parts: [String] = []
        if let clientCertificate {
            parts += ["certificate:" + clientCertificate.certificate, "key:" + (clientCertificate.key ?? "")]
        }
        if let certificateAuthorities { parts.append("authorities:" + certificateAuthorities) }
        if case .url(let url) = proxy { parts.append("proxy:" + url) }
        if userAgent != Self().userAgent { parts.append("agent:" + (userAgent ?? "none")) }
        return parts.isEmpty ? nil : CacheKey(parts: parts).identity
    }

    func makeLoop(callbacks: ccurl_callbacks) -> OpaquePointer? {
        var options = ccurl_options()
        options.connections_per_host = max(1, connectionsPerHost)
        options.connections = max(1, connections)
        options.header_size = headerSize.bytes
        options.header_count = Int32(clamping: headerCount)
        var callbacks = callbacks
        return withPath(certificateAuthorities) { authorities in
            withPath(clientCertificate?.certificate) { certificate in
                withPath(clientCertificate?.key) { key in
                    withText(clientCertificate?.password) { password in
                        options.ca_file = authorities
                        options.client_certificate = certificate
                        options.client_key = key
                        options.client_key_password = password
                        return ccurl_loop_create(&options, &callbacks)
                    }
                }
            }
        }
    }

    /// Paths may contain bytes that are not UTF-8.
    private func withPath<Result>(_ path: String?, _ body: (UnsafePointer<CChar>?) -> Result?) -> Result? {
        guard let path else { return body(nil) }
        return PathText.withSystemPath(path, failure: nil) { body($0) }
    }

    private func withText<Result>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        guard let text else { return body(nil) }
        return text.withCString { body($0) }
    }
}
#endif
