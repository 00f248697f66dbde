import CVitrineServer
import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// The files of the gallery and of the operator's page, which are part of the program.
enum ServerPages {
    struct File: Sendable {
        let type: String
        let body: ByteBuffer
        let entityTag: String
    }

    static let files: [String: File] = {
        var files: [String: File] = [:]
        for index in 0..<vitrine_server_page_count() {
            let page = vitrine_server_page(index)
            guard let name = page.name, let type = page.type, let bytes = page.bytes else { continue }
            let buffer = UnsafeRawBufferPointer(start: bytes, count: page.count)
            let digest = SHA256.hash(data: buffer).prefix(12).map { String($0, radix: 16) }.joined()
            files[String(cString: name)] = File(
                type: String(cString: type), body: ByteBuffer(bytes: buffer), entityTag: "\"\(digest)\"")
        }
        return files
    }()

    /// Nothing from other hosts, no script and no style inside of pages.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
        + "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

    /// Fields of every answer that is a page or belongs to one.
    static func protect(_ headers: inout HTTPFields) {
        if headers[name("Content-Security-Policy")] == nil { headers[name("Content-Security-Policy")] = policy }
        headers[.xContentTypeOptions] = "nosniff"
        headers[name("Referrer-Policy")] = "no-referrer"
        headers[name("Cross-Origin-Resource-Policy")] = "same-origin"
        headers[name("Cross-Origin-Opener-Policy")] = "same-origin"
    }

    /// The policy of files of others, which may be documents with scripts.
    static func confine(_ headers: inout HTTPFields) {
        headers[name("Content-Security-Policy")] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    }

    private static func name(_ text: String) -> HTTPField.Name {
        // Every name here is a literal of this file.
        guard let name = HTTPField.Name(text) else { preconditionFailure("“\(text)” is not the name of a field") }
        return name
    }

    /// Answers with a file; nil if there is none of this name.
    static func response(_ name: String, to request: Request, status: HTTPResponse.Status = .ok) -> Response? {
        guard let file = files[name] else { return nil }
        var headers: HTTPFields = [
            .contentType: file.type, .cacheControl: "no-cache", .eTag: file.entityTag,
            .contentLength: String(file.body.readableBytes),
        ]
        protect(&headers)
        if status == .ok, request.headers[.ifNoneMatch] == file.entityTag {
            headers[.contentLength] = nil
            return Response(status: .notModified, headers: headers)
        }
        let body = request.method == .head ? ResponseBody() : ResponseBody(byteBuffer: file.body)
        return Response(status: status, headers: headers, body: body)
    }

    static func json(_ text: String) -> Response { made(text, type: "application/json") }

    static func html(_ text: String, to request: Request, status: HTTPResponse.Status = .ok) -> Response {
        let response = made(text, type: "text/html; charset=utf-8", status: status)
        return request.method == .head ? response.createHeadResponse() : response
    }

    private static func made(_ text: String, type: String, status: HTTPResponse.Status = .ok) -> Response {
        var headers: HTTPFields = [
            .contentType: type, .cacheControl: "no-store", .contentLength: String(text.utf8.count),
        ]
        protect(&headers)
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}
