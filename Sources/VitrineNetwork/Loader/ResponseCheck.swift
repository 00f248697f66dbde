/// Whether a response brings what was asked for, by its header alone.
enum ResponseCheck {
    /// - Returns: nil if so, or why not.
    static func failure(_ head: HTTPResponseHead, to request: HTTPRequest, policy: URLAccessPolicy) -> NetworkError? {
        var url: String { SourceURL.withoutCredentials(head.url.absoluteString) }
        if head.status == 304, isConditional(request) { return nil }
        guard (200..<300).contains(head.status) else { return .status(url: url, head) }
        if head.status == 206, let failure = wrongRange(head, to: request, url: url) { return failure }
        // Files do not say what they are.
        if head.version == .none, head.contentType == nil { return nil }
        guard policy.accepts(contentType: head.contentType) else {
            return .contentType(url: url, type: head.contentType)
        }
        return nil
    }

    private static func isConditional(_ request: HTTPRequest) -> Bool {
        request.headers.contains("If-None-Match") || request.headers.contains("If-Modified-Since")
    }

    /// A part that was not asked for would be put together with what is there already, to something that never was.
    private static func wrongRange(_ head: HTTPResponseHead, to request: HTTPRequest, url: String) -> NetworkError? {
        guard let range = request.range else {
            guard !request.headers.contains("Range") else { return nil }
            return .invalidResponse(url: url, reason: "it is a part, and all was asked for")
        }
        guard head.decodedFrom == nil, !head.headers.contains("Content-Encoding") else {
            return .invalidResponse(url: url, reason: "a part is encoded")
        }
        guard let sent = head.headers["Content-Range"].flatMap(ContentRange.init) else {
            return .invalidResponse(url: url, reason: "it is a part and does not say which")
        }
        let end = range.upperBound ?? sent.total
        guard sent.range.lowerBound == range.lowerBound, end.map({ sent.range.upperBound <= $0 }) ?? true,
            head.contentLength.map({ $0 == sent.range.count }) ?? true
        else { return .invalidResponse(url: url, reason: "it is another part than was asked for") }
        return nil
    }
}
