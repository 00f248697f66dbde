#if os(Linux)
import CVitrineCurl
import FoundationEssentials
import VitrineCore

/// A request in the form the loop's thread hands on: made by who asks, so that the thread has less to do.
struct CurlRequest: Sendable {
    let url: SourceURL
    let method: String
    /// `Name: value` lines, each ended by a NUL; an empty one is the end.
    let headers: [UInt8]
    let body: [UInt8]?
    let proxy: String
    let isDecoded: Bool
    let isHTTP1: Bool
    let bufferSize: Int
    let maximumBodySize: Int
    let priority: Priority
    let connectTimeout: Int
    let totalTimeout: Int
    /// Milliseconds; nil for none.
    let idleTimeout: Int64?

    /// What errors say the address is.
    var displayURL: String { url.text }

    init(_ request: HTTPRequest, configuration: CurlLoader.Configuration, proxies: ProxySettings)
        throws(NetworkError)
    {
        url = try SourceURL(request.url.absoluteString)
        guard HTTPSyntax.isToken(request.method), request.method != "CONNECT" else {
            throw .invalidRequest(url: url.text, reason: "\(request.method) is no method to load with")
        }
        method = request.method
        body = request.body
        isDecoded = request.acceptsCompression && request.range == nil && !request.headers.contains("Range")
        // Without encryption nobody speaks HTTP/2, but the library would wait for the first response to be sure of it.
        isHTTP1 = request.prefersHTTP1 || !configuration.allowsHTTP2 || !url.isSecure
        // Large bodies are worth fewer and longer reads. What is read at a time and grows a thousandfold by decoding
        // has to be kept if nobody wants it.
        bufferSize = request.prefersHTTP1 && !isDecoded ? configuration.largeBufferSize : configuration.bufferSize
        maximumBodySize = request.maximumBodySize.bytes
        priority = request.priority
        connectTimeout = Self.milliseconds(request.timeouts.connect)
        totalTimeout = Self.milliseconds(request.timeouts.total)
        idleTimeout = request.timeouts.idle.map { Int64(Self.milliseconds($0)) }
        proxy = proxies.proxy(for: url) ?? ""
        headers = try Self.lines(of: request, isDecoded: isDecoded, url: url, configuration: configuration)
    }

    /// Whether the request may be sent again when a connection that was used before turns out to be gone
    /// (RFC 9110, section 9.2.2).
    var isIdempotent: Bool { HTTPSyntax.isIdempotent(method) }

    /// 0 for none; at least 1, at most what the library's type holds on all systems.
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
            append("Range", range.headerValue, to: &lines)
            if let validator = request.ifRange {
                guard HTTPSyntax.isFieldValue(validator) else {
                    throw .invalidRequest(url: url.text, reason: "the validator of the range cannot be sent")
                }
                append("If-Range", validator, to: &lines)
            }
        }
        if request.body != nil {
            // Without these the library would wait for an interim response, and name a type of its own.
            lines += Array("Expect:".utf8) + [0]
            if !request.headers.contains("Content-Type") { lines += Array("Content-Type:".utf8) + [0] }
        }
        lines.append(0)
        return lines
    }

    private static func append(_ name: String, _ value: String, to lines: inout [UInt8]) {
        lines.append(contentsOf: name.utf8)
        if value.isEmpty {
            // How the library is told of a field without a value.
            lines.append(UInt8(ascii: ";"))
        } else {
            lines.append(UInt8(ascii: ":"))
            lines.append(UInt8(ascii: " "))
            lines.append(contentsOf: value.utf8)
        }
        lines.append(0)
    }

    /// Begins the transfer.
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
                            // An empty array may have no address, which would mean no body.
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
#endif
