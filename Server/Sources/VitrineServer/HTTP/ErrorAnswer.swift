package import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// Answers for requests that get no image.
package struct ErrorAnswer {
    let configuration: ImageHTTPConfiguration

    /// Returns the error that a client may see of any error.
    static func visible(_ error: any Error) -> RequestError {
        switch error {
        case let error as RequestError: error
        case is CancellationError: RequestError(499, code: "client-left", reason: "The request was cancelled.")
        default: RequestError(500, code: "internal", reason: "The server failed to make the image.")
        }
    }

    /// - Parameters:
    ///   - extra: More fields, for example those of CORS.
    ///   - isImage: Whether an image was asked for, so that the fallback may replace the error.
    func response(
        for error: RequestError, requestID: String, extra: HTTPFields, isHead: Bool, isImage: Bool, closes: Bool = false
    ) -> Response {
        if isImage, let fallback = configuration.fallback, fallback.statuses.contains(error.status) {
            return response(with: fallback, for: error, extra: extra, isHead: isHead)
        }
        let body = ByteBuffer(string: Self.json(error, requestID: requestID))
        var fields = extra
        fields.append(HTTPField(name: .contentType, value: "application/json"))
        fields.append(HTTPField(name: .contentLength, value: String(body.readableBytes)))
        fields.append(HTTPField(name: .xContentTypeOptions, value: "nosniff"))
        fields.append(HTTPField(name: .cacheControl, value: cacheControl(for: error)))
        if let name = configuration.cacheStatusName, isImage {
            fields.append(HTTPField(name: .cacheStatus, value: "\(name); fwd=miss; fwd-status=\(error.status)"))
        }
        let retryAfter = error.retryAfter ?? ([429, 503].contains(error.status) ? configuration.retryAfter : nil)
        if let retryAfter { fields.append(HTTPField(name: .retryAfter, value: String(max(0, retryAfter)))) }
        if error.status == 405 { fields.append(HTTPField(name: .allow, value: ImageMethods.allowed)) }
        if closes { fields.append(HTTPField(name: .connection, value: "close")) }
        return Response(
            status: HTTPResponse.Status(code: error.status), headers: fields,
            body: isHead ? ResponseBody() : ResponseBody(byteBuffer: body))
    }

    private func response(
        with fallback: ImageHTTPConfiguration.Fallback, for error: RequestError, extra: HTTPFields, isHead: Bool
    ) -> Response {
        var fields = extra
        fields.append(HTTPField(name: .contentType, value: fallback.mediaType))
        fields.append(HTTPField(name: .contentLength, value: String(fallback.bytes.readableBytes)))
        fields.append(HTTPField(name: .xContentTypeOptions, value: "nosniff"))
        fields.append(HTTPField(name: .cacheControl, value: "public, max-age=\(max(0, fallback.lifetime))"))
        if let name = configuration.cacheStatusName {
            fields.append(
                HTTPField(name: .cacheStatus, value: "\(name); fwd=miss; fwd-status=\(error.status); detail=fallback"))
        }
        return Response(
            status: HTTPResponse.Status(code: fallback.status ?? error.status), headers: fields,
            body: isHead ? ResponseBody() : ResponseBody(byteBuffer: fallback.bytes))
    }

    private func cacheControl(for error: RequestError) -> String {
        guard let lifetime = configuration.errorLifetimes[error.status], lifetime > 0 else { return "no-store" }
        return "public, max-age=\(lifetime)"
    }

    package static func json(_ error: RequestError, requestID: String) -> String {
        #"{"code":"# + quoted(error.code) + #","status":\#(error.status),"reason":"# + quoted(error.reason)
            + #","requestID":"# + quoted(requestID) + "}\n"
    }

    /// A string of JSON, in which also `<`, `>` and `&` are escaped, so that the text is harmless in HTML.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "<", ">", "&": result += UnseenText.escape(scalar)
            case _ where UnseenText.isUnseen(scalar): result += UnseenText.escape(scalar)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

/// The methods that images have.
enum ImageMethods {
    static let allowed = "GET, HEAD, OPTIONS"
}

extension HTTPField.Name {
    private static func known(_ name: String, or other: HTTPField.Name) -> HTTPField.Name {
        HTTPField.Name(name) ?? other
    }

    package static let cacheStatus = known("Cache-Status", or: .age)
    package static let serverTiming = known("Server-Timing", or: .age)
    package static let requestID = known("X-Request-ID", or: .age)
    package static let acceptCH = known("Accept-CH", or: .age)
}
