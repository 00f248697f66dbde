#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
import VitrineCore

/// What a server says before the body.
public struct HTTPResponseHead: Sendable, Hashable {
    /// The versions of HTTP a response can come by.
    public enum Version: Sendable, Hashable {
        case http1_0, http1_1, http2, http3
        /// Not by HTTP: a file, a `data:` URL, a registered scheme.
        case none
    }

    /// The status code, 200…599: interim responses are swallowed. 200 where there is no HTTP.
    public var status: Int
    /// The fields, those of trailers left out. If the loader decoded the body they say nothing of the coding and length
    /// it came with, see ``decodedFrom``.
    public var headers: HTTPHeaders
    /// Where it came from: the last hop's address.
    public var url: URL
    /// The protocol.
    public var version: Version
    /// The server's (or proxy's) IP address as text; nil where there is none or the loader does not know.
    public var remoteAddress: String?
    /// Whether a proxy connected in the loader's place, so that ``remoteAddress`` is the proxy's.
    public var isProxied = false
    /// The content coding the loader has undone, for example `gzip`; nil if the body is as it came.
    public var decodedFrom: String?

    public init(
        status: Int, headers: HTTPHeaders, url: URL, version: Version = .http1_1, remoteAddress: String? = nil,
        decodedFrom: String? = nil
    ) {
        self.status = status
        self.headers = headers
        self.url = url
        self.version = version
        self.remoteAddress = remoteAddress
        self.decodedFrom = decodedFrom
    }

    /// Whether the status says that there is nothing to have (RFC 9110, sections 15.3.5 and 15.3.6): not an empty body.
    var isWithoutContent: Bool { status == 204 || status == 205 }

    /// How many bytes the body has, if the header says so in a way that can be true.
    public var contentLength: Int? { Self.contentLength(in: headers) }

    static func contentLength(in headers: HTTPHeaders) -> Int? {
        guard let text = headers["Content-Length"], !text.isEmpty,
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return Int(text)
    }

    /// - Throws: ``NetworkError/bodyTooLarge(url:limit:)`` if the header of a response with a body claims more.
    func checkLength(_ limit: ByteCount, of method: String, at url: String) throws(NetworkError) {
        guard let contentLength, contentLength > limit.bytes, method != "HEAD" else { return }
        throw .bodyTooLarge(url: url, limit: limit)
    }

    /// The media type without parameters, in small letters: `image/jpeg`; nil without one.
    public var contentType: String? {
        guard let value = headers["Content-Type"] else { return nil }
        let type = value.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        return type.isEmpty ? nil : type
    }
}

extension HTTPHeaders {
    /// Removes what the fields say of a content coding that is undone, and of the length with it.
    ///
    /// - Returns: The coding, in small letters; nil if there is none.
    mutating func takeCoding() -> String? {
        guard let coding = combined("Content-Encoding")?.lowercased(), coding != "identity" else { return nil }
        remove("Content-Encoding")
        remove("Content-Length")
        return coding
    }
}
