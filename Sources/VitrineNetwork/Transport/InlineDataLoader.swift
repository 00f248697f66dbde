#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Loads `data:` URLs, which contain their own content (RFC 2397).
package struct InlineDataLoader: HTTPTransport {
    package init() {}

    package func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        let text = request.url.absoluteString
        let shown = String(text.prefix(64))
        let fragment = text.utf8.firstIndex(of: UInt8(ascii: "#")) ?? text.endIndex
        guard let comma = text.utf8.firstIndex(of: UInt8(ascii: ",")), comma < fragment,
            text.prefix(5).lowercased() == "data:"
        else { throw .invalidURL(url: shown, reason: "it has no comma before its data") }
        var parameters = text[text.utf8.index(text.startIndex, offsetBy: 5)..<comma].split(
            separator: ";", omittingEmptySubsequences: false)
        let isBase64 = parameters.count > 1 && parameters.last?.lowercased() == "base64"
        if isBase64 { parameters.removeLast() }
        let data = text.utf8[text.utf8.index(after: comma)..<fragment]
        guard data.count / 4 * 3 <= request.maximumBodySize.bytes || !isBase64,
            var bytes = PercentEncoding.decode(data)
        else { throw .invalidURL(url: shown, reason: "its data are too long or not encoded correctly") }
        if isBase64 {
            guard let decoded = Data(base64Encoded: Data(bytes)) else {
                throw .invalidURL(url: shown, reason: "its data are not base64")
            }
            bytes = Array(decoded)
        }
        guard bytes.count <= request.maximumBodySize.bytes else {
            throw .bodyTooLarge(url: shown, limit: request.maximumBodySize)
        }
        let type = parameters.joined(separator: ";")
        let headers: HTTPHeaders = [
            // RFC 2397, section 2: the default media type.
            "Content-Type": type.isEmpty ? "text/plain;charset=US-ASCII" : type, "Content-Length": String(bytes.count),
        ]
        let head = HTTPResponseHead(status: 200, headers: headers, url: request.url, version: .none)
        return HTTPResponse(head: head, body: ResponseBody(request.method == "HEAD" ? [] : bytes))
    }
}
