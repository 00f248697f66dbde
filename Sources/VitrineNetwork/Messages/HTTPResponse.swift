#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import VitrineCore

/// A response: its head and its body.
public struct HTTPResponse: Sendable {
    /// The status and the header fields.
    public var head: HTTPResponseHead
    /// The body. It can be read once.
    public internal(set) var body: ResponseBody
    /// The heads of the redirects that led to the response, in order.
    package var redirects: [HTTPResponseHead] = []
    /// Whether conditions were sent to the server of the response: false if they belong to another URL.
    package var answersConditions = true

    /// Creates a response, for a ``HTTPTransport`` of your own.
    ///
    /// - Parameters:
    ///   - head: The status and the header fields.
    ///   - body: The body.
    public init(head: HTTPResponseHead, body: ResponseBody) {
        self.head = head
        self.body = body
    }
}

/// The status and header fields of a response.
public struct HTTPResponseHead: Sendable, Hashable {
    /// The protocol that a response was received by.
    package enum Version: Sendable, Hashable {
        case http1_0, http1_1, http2, http3
        /// Not HTTP: a file, a `data:` URL, or a registered scheme.
        case none
    }

    /// The final status code, 200…599. Responses without HTTP have status 200.
    public var status: Int
    /// The header fields without trailers. If the transport decoded the body, `Content-Encoding` and `Content-Length`
    /// are removed.
    public var headers: HTTPHeaders
    /// The URL of the response after redirects.
    public var url: URL
    /// The protocol.
    package var version: Version
    /// The IP address of the server or proxy; nil if it is unknown.
    package var remoteAddress: String?
    /// Whether a proxy made the connection, so that ``remoteAddress`` is the address of the proxy.
    package var isProxied = false
    /// Whether the request had credentials, from any part of the loader.
    package var answersCredentials = false
    /// The content coding that the transport has decoded, for example `gzip`; nil if the body is as it was sent.
    package var decodedFrom: String?

    /// Creates the head of a response, for a ``HTTPTransport`` of your own.
    ///
    /// - Parameters:
    ///   - status: The status code.
    ///   - headers: The header fields.
    ///   - url: The URL of the response.
    public init(status: Int = 200, headers: HTTPHeaders = HTTPHeaders(), url: URL) {
        self.init(status: status, headers: headers, url: url, version: .http1_1)
    }

    package init(
        status: Int, headers: HTTPHeaders, url: URL, version: Version, remoteAddress: String? = nil,
        decodedFrom: String? = nil
    ) {
        self.status = status
        self.headers = headers
        self.url = url
        self.version = version
        self.remoteAddress = remoteAddress
        self.decodedFrom = decodedFrom
    }

    /// Whether the status says that there is no content (RFC 9110, sections 15.3.5 and 15.3.6), which differs from an
    /// empty body.
    var isWithoutContent: Bool { status == 204 || status == 205 }

    /// The length of the body as the header declares it; nil if the field is missing or invalid.
    public var contentLength: Int? { Self.contentLength(in: headers) }

    static func contentLength(in headers: HTTPHeaders) -> Int? {
        guard let text = headers["Content-Length"], !text.isEmpty,
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return Int(text)
    }

    /// Checks the declared length.
    ///
    /// - Throws: ``NetworkError/bodyTooLarge(url:limit:)`` if a response with a body declares more than the limit.
    func checkLength(_ limit: ByteCount, of method: String, at url: String) throws(NetworkError) {
        guard let contentLength, contentLength > limit.bytes, method != "HEAD" else { return }
        throw .bodyTooLarge(url: url, limit: limit)
    }

    /// Makes the status of a response 206 if it declares itself a part of the body.
    ///
    /// Some servers send parts with status 200. Such a part is never the whole. A part that is the whole stays 200.
    mutating func nameStatusOfPart() {
        guard status == 200, let part = headers.contentRange else { return }
        if part.range.lowerBound == 0, part.range.upperBound == part.total {
            headers.remove("Content-Range")
        } else {
            status = 206
        }
    }

    /// The media type in lowercase without parameters, such as `image/jpeg`; nil if the field is missing.
    public var contentType: String? {
        guard let value = headers["Content-Type"] else { return nil }
        let type = value.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        return type.isEmpty ? nil : type
    }

    /// The source of a body, for resumptions.
    var source: PartSource { PartSource(url) }

    /// Whether a file has to be decoded before it is the resource that its URL names.
    ///
    /// Servers send `archive.tar.gz` with `Content-Encoding: gzip` although the compressed file is meant. Browsers keep
    /// such files as they are.
    var hasCodingToUndo: Bool {
        let codings = HTTPList.names(headers.all("Content-Encoding")).filter { $0 != "identity" }
        guard !codings.isEmpty else { return false }
        let path = url.path(percentEncoded: true).lowercased()
        guard codings.count == 1, let endings = Self.endings[codings[0]] else { return true }
        return !endings.contains { path.hasSuffix($0) }
    }

    /// The file name extensions of each content coding.
    private static let endings: [String: [String]] = [
        "gzip": [".gz", ".tgz", ".svgz"], "x-gzip": [".gz", ".tgz", ".svgz"], "br": [".br"], "zstd": [".zst", ".tzst"],
        "compress": [".z"], "x-compress": [".z"],
    ]
}

extension HTTPHeaders {
    /// Removes the fields of a content coding that is decoded, and the length with them.
    ///
    /// - Returns: The coding in lowercase, or nil if there is none.
    mutating func takeCoding() -> String? {
        guard let coding = combined("Content-Encoding")?.lowercased(), coding != "identity" else { return nil }
        remove("Content-Encoding")
        remove("Content-Length")
        return coding
    }

    /// The part that a response brings; nil if the field is missing, invalid or repeated.
    var contentRange: ContentRange? {
        let values = all("Content-Range")
        return values.count == 1 ? ContentRange(values[0]) : nil
    }
}

/// The part of a body that a response brings (RFC 9110, section 14.4).
package struct ContentRange: Sendable, Hashable {
    /// The byte offsets.
    package let range: Range<Int>
    /// The length of the whole body; nil if the server does not know it.
    package let total: Int?

    /// Parses the value of a `Content-Range` field, such as `bytes 0-499/1234` or `bytes 0-499/*`.
    ///
    /// - Returns: nil for anything else, and for parts outside the whole.
    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let bounds = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, let first = Self.number(bounds[0]), let last = Self.number(bounds[1]), first <= last,
            last < .max
        else { return nil }
        if parts[1] == "*" {
            total = nil
        } else {
            guard let number = Self.number(parts[1]), number > last else { return nil }
            total = number
        }
        range = first..<(last + 1)
    }

    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }
}
