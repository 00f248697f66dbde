#if os(Linux)
import CVitrineCurl
public import FoundationEssentials
import VitrineCore

/// Loads over HTTP by libcurl, on one thread of its own.
///
/// ```swift
/// let loader = CurlLoader()
/// let response = try await loader.load(HTTPRequest(url: url))
/// let bytes = try await response.body.collect(upTo: .megabytes(20))
/// ```
///
/// Connections are kept and used again, and several requests share one where a server speaks HTTP/2. Certificates are
/// always checked. Redirects are not followed; no cookies, no `.netrc`, no other protocols. A body that is not read is
/// not received: about ``Configuration/receiveWindow`` of it is kept.
///
/// With a proxy, the addresses that are connected to are the proxy's, and what the proxy connects to is its own
/// business: see ``showsAddresses(for:)``. A loader with any proxy does not have ``LoadingCapabilities/addressPolicy``.
///
/// Make one and share it; each has a thread and connections of its own. When the last reference to it and to the
/// bodies of its responses goes, the thread ends.
public final class CurlLoader: HTTPTransport {
    private let configuration: Configuration
    private let proxies: ProxySettings
    private let loop: CurlLoop?
    private let thread: BlockingExecutor

    public let capabilities: LoadingCapabilities

    public convenience init(_ configuration: Configuration = Configuration()) {
        self.init(configuration, environment: ProxySettings.environment)
    }

    /// The same with another environment.
    package init(_ configuration: Configuration, environment: (String) -> String?) {
        self.configuration = configuration
        proxies = ProxySettings(configuration.proxy, environment: environment)
        loop = CurlLoop(configuration)
        thread = BlockingExecutor(threads: 1, name: "vitrine-net")
        var capabilities: LoadingCapabilities = [.backPressure, .customTrust, .decompression]
        if proxies.isEmpty { capabilities.insert(.addressPolicy) }
        if configuration.allowsHTTP2, ccurl_features() & 1 != 0 { capabilities.insert(.http2) }
        self.capabilities = capabilities
        if let loop { thread.submit { loop.run() } }
    }

    deinit { loop?.submit(.stop) }

    /// Whether no proxy connects to the host in the loader's place: with `https_proxy` alone, and for what `no_proxy`
    /// names, the loader connects itself.
    public func showsAddresses(for url: URL) -> Bool {
        guard let url = try? SourceURL(url.absoluteString) else { return false }
        return proxies.proxy(for: url) == nil
    }

    /// How many requests stand in line for a connection.
    package var waitingCount: Int { loop?.waitingCount.load(ordering: .relaxed) ?? 0 }

    public func load(
        _ request: HTTPRequest, allowing guardian: ConnectFilter?
    ) async throws(NetworkError) -> HTTPResponse {
        let prepared = try CurlRequest(request, configuration: configuration, proxies: proxies)
        guard let loop else {
            throw .unavailable(url: prepared.displayURL, reason: "the system has no more files or memory")
        }
        guard !Task.isCancelled else { throw .cancelled(url: prepared.displayURL) }
        let transfer = CurlTransfer(
            prepared, guardian: guardian, highWater: configuration.receiveWindow.bytes, loop: loop)
        loop.submit(.start(transfer))
        // Ends the transfer whichever way this function is left without handing it on.
        let body = CurlBody(transfer, loader: self)
        let raw = try await transfer.head()
        let head = try HTTPResponseHead(raw, of: prepared, at: request.url)
        try head.checkLength(request.maximumBodySize, of: prepared.method, at: prepared.displayURL)
        return HTTPResponse(head: head, body: ResponseBody(body))
    }
}

/// The body of a transfer. Letting go of it ends the transfer.
private final class CurlBody: BodySource {
    private let transfer: CurlTransfer
    /// Keeps the thread going.
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

    func collect(upTo limit: ByteCount) async throws(NetworkError) -> [UInt8] {
        try await transfer.collect(upTo: limit.bytes)
    }

    func cancel() { transfer.cancel() }
}

extension HTTPResponseHead {
    fileprivate init(
        _ raw: CurlTransfer.RawHead, of request: CurlRequest, at url: URL
    ) throws(NetworkError) {
        var headers: HTTPHeaders
        do throws(HTTPHeadersProblem) {
            headers = try HTTPHeaders(lines: raw.lines)
        } catch {
            throw .invalidResponse(url: request.displayURL, reason: error.reason)
        }
        // A response that claims two lengths may be two responses to others (RFC 9112, section 6.3).
        let length = headers["Content-Length"]
        if headers.contains(where: { $0.isNamed("Content-Length") && $0.value != length }) {
            throw .invalidResponse(url: request.displayURL, reason: "it claims more than one length")
        }
        if length != nil, Self.contentLength(in: headers) == nil {
            throw .invalidResponse(url: request.displayURL, reason: "the length it claims is no number")
        }
        let coding = request.isDecoded ? headers.takeCoding() : nil
        let version: Version =
            switch raw.version {
            case 10: .http1_0
            case 20..<30: .http2
            case 30...: .http3
            default: .http1_1
            }
        self.init(
            status: raw.status, headers: headers, url: url, version: version,
            remoteAddress: raw.remoteAddress.isEmpty ? nil : raw.remoteAddress, decodedFrom: coding)
        isProxied = !request.proxy.isEmpty
    }
}
#endif
