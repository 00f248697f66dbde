#if os(Linux)
import CVitrineCurl
import FoundationEssentials
import Glibc
import VitrineCore

/// A request in the form of libcurl. It is prepared by the caller to relieve the loop's thread.
struct CurlRequest: Sendable {
    let url: SourceURL
    let method: String
    /// `Name: value` lines, each terminated by a NUL; an empty line is the end.
    let headers: [UInt8]
    let body: [UInt8]?
    let proxy: String
    let isDecoded: Bool
    let isHTTP1: Bool
    let bufferSize: Int
    let maximumBodySize: Int
    /// The limit of received bytes while the coding is unknown. A coding may add a few bytes.
    let maximumSentSize: Int
    let priority: RequestPriority
    let connectTimeout: Int
    let totalTimeout: Int
    /// Milliseconds; nil for none.
    let idleTimeout: Int64?

    /// The URL in errors.
    var displayURL: String { url.text }

    init(_ request: HTTPRequest, configuration: CurlLoader.Configuration, proxies: ProxySettings)
        throws(NetworkError)
    {
        url = try SourceURL(request.url.absoluteString)
        guard HTTPSyntax.isToken(request.method), request.method != "CONNECT" else {
            throw .invalidRequest(url: url.text, reason: "the method \(request.method) is not supported")
        }
        method = request.method
        body = request.body
        isDecoded = request.acceptsCompression && request.range == nil && !request.headers.contains("Range")
        // Servers do not use HTTP/2 without TLS, but libcurl would wait for the first response to find out.
        isHTTP1 = request.prefersHTTP1 || !configuration.allowsHTTP2 || !url.isSecure
        // Large bodies need fewer and longer reads.
        bufferSize = request.prefersHTTP1 && !isDecoded ? configuration.largeBufferSize : configuration.bufferSize
        maximumBodySize = request.maximumBodySize.bytes
        let allowance = isDecoded ? ByteCount(maximumBodySize / 64) + .kibibytes(64) : .zero
        maximumSentSize = (request.maximumBodySize + allowance).bytes
        priority = request.priority
        connectTimeout = Self.milliseconds(request.connectTimeout)
        totalTimeout = Self.milliseconds(request.totalTimeout)
        idleTimeout = request.idleTimeout.map { Int64(Self.milliseconds($0)) }
        proxy = proxies.proxy(for: url) ?? ""
        headers = try Self.lines(of: request, isDecoded: isDecoded, url: url, configuration: configuration)
    }

    /// Whether the request may be sent again if a reused connection has been closed (RFC 9110, section 9.2.2).
    var isIdempotent: Bool { HTTPSyntax.isIdempotent(method) }

    /// Converts a limit to milliseconds for libcurl: 0 for none, otherwise at least 1.
    private static func milliseconds(_ duration: Duration?) -> Int {
        guard let duration else { return 0 }
        let (seconds, attoseconds) = duration.components
        guard seconds < 2_000_000 else { return 2_000_000_000 }
        guard seconds >= 0 else { return 1 }
        return max(1, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
    }

    private static func lines(
        of request: HTTPRequest, isDecoded: Bool, url: SourceURL, configuration: CurlLoader.Configuration
    ) throws(NetworkError) -> [UInt8] {
        var lines: [UInt8] = []
        lines.reserveCapacity(256)
        try HTTPSyntax.checkFields(of: request, at: url.text)
        for field in request.headers.fields {
            guard HTTPSyntax.isToken(field.name), HTTPSyntax.isFieldValue(field.value) else {
                throw .invalidRequest(url: url.text, reason: "the field \(field.name.debugDescription) cannot be sent")
            }
            if isDecoded, field.isNamed("Accept-Encoding") { continue }
            append(field.name, field.value, to: &lines)
        }
        if let agent = configuration.userAgent, !request.headers.contains("User-Agent") {
            append("User-Agent", agent, to: &lines)
        }
        if let range = request.range {
            append("Range", range.fieldValue, to: &lines)
            if let validator = request.ifRange {
                guard HTTPSyntax.isFieldValue(validator) else {
                    throw .invalidRequest(url: url.text, reason: "the validator of the range cannot be sent")
                }
                append("If-Range", validator, to: &lines)
            }
        }
        if request.body != nil {
            // Otherwise libcurl would wait for an interim response and send a media type of its own.
            lines += Array("Expect:".utf8) + [0]
            if !request.headers.contains("Content-Type") { lines += Array("Content-Type:".utf8) + [0] }
        }
        lines.append(0)
        return lines
    }

    private static func append(_ name: String, _ value: String, to lines: inout [UInt8]) {
        lines.append(contentsOf: name.utf8)
        if value.isEmpty {
            // libcurl's notation of a field without a value.
            lines.append(UInt8(ascii: ";"))
        } else {
            lines.append(UInt8(ascii: ":"))
            lines.append(UInt8(ascii: " "))
            lines.append(contentsOf: value.utf8)
        }
        lines.append(0)
    }

    /// Starts the transfer.
    func start(on loop: OpaquePointer, context: UnsafeMutableRawPointer) -> OpaquePointer? {
        url.text.withCString { url in
            method.withCString { method in
                proxy.withCString { proxy in
                    headers.withUnsafeBufferPointer { headers in
                        var request = ccurl_request()
                        request.url = url
                        request.method = method
                        request.proxy = proxy
                        request.decodes = isDecoded ? 1 : 0
                        request.http1 = isHTTP1 ? 1 : 0
                        request.fresh = isIdempotent ? 0 : 1
                        request.buffer_size = bufferSize
                        request.connect_timeout = connectTimeout
                        request.total_timeout = totalTimeout
                        return headers.withMemoryRebound(to: CChar.self) { headers in
                            request.headers = headers.baseAddress
                            guard let body else { return ccurl_start(loop, &request, context) }
                            // An empty array may have no base address, which would mean no body.
                            return (body + [0]).withUnsafeBufferPointer { bytes in
                                request.body = bytes.baseAddress
                                request.body_count = body.count
                                return ccurl_start(loop, &request, context)
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The proxies of the environment.
///
/// The variables are those of curl(1). `http_proxy` is read in lowercase only, because web servers pass the client's
/// `Proxy:` header to CGI programs as `HTTP_PROXY`.
package struct ProxySettings: Sendable {
    private var http: String?
    private var https: String?
    private var exceptions: [Substring] = []

    init(_ proxy: CurlLoader.Proxy, environment: (String) -> String?) {
        switch proxy {
        case .none: self.init { _ in nil }
        case .url(let url): self.init { $0 == "all_proxy" ? url : nil }
        case .environment: self.init(environment: environment)
        }
    }

    /// Reads a variable of the process.
    static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// Creates the settings of an environment.
    package init(environment: (String) -> String?) {
        func value(_ names: String...) -> String? { names.lazy.compactMap(environment).first { !$0.isEmpty } }
        http = value("http_proxy", "all_proxy", "ALL_PROXY")
        https = value("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        let list = (value("no_proxy", "NO_PROXY") ?? "").lowercased()
        exceptions = list.split { $0 == "," || $0 == " " }
    }

    /// Returns the proxy of a URL; nil for none.
    package func proxy(for url: SourceURL) -> String? {
        guard let proxy = url.isSecure ? https : http else { return nil }
        return exceptions.contains { Self.matches($0, url.host) } ? nil : proxy
    }

    /// Returns whether an entry of `no_proxy` matches the host: `*`, a domain with all names below it, an address or a
    /// network.
    private static func matches(_ entry: Substring, _ host: SourceURL.Host) -> Bool {
        if entry == "*" { return true }
        switch host {
        case .name(let name):
            let domain = entry.drop { $0 == "." }
            return !domain.isEmpty && (name == domain || name.hasSuffix("." + domain))
        case .address(let address):
            return AddressRange(String(entry))?.contains(address) ?? false
        }
    }
}
#endif
