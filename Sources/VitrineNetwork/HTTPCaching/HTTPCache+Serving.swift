/// The head to answer a request with from a stored response, and how much of its body belongs to it.
public struct ServedHead: Sendable, Hashable {
    /// How much of the stored body follows.
    public enum Body: Sendable, Hashable {
        case whole
        case none
        /// The bytes of a range.
        case part(Range<Int>)
    }

    /// The status code: the stored one, 206, 304 or 416.
    public let status: Int
    /// The fields, with `Age`.
    public let headers: HTTPHeaders
    /// What of the body follows.
    public let body: Body
}

extension HTTPCache {
    /// The head of the answer to a request from a response that ``decide(_:stored:now:)`` allowed to use (RFC 9111
    /// section 4): with its `Age`, and with the request's own conditions and range applied.
    public func head(of response: StoredResponse, for request: CacheRequest, now: Duration) -> ServedHead {
        let age = min(policy.freshness(of: response, now: now).age, .seconds(DeltaSeconds.most)).components.seconds
        var headers = response.headers
        headers["Age"] = String(age)
        guard response.status == 200, request.isLookup else {
            return ServedHead(
                status: response.status, headers: headers, body: request.method == "HEAD" ? .none : .whole)
        }
        if isNotModified(response, for: request) {
            let kept = headers.filter { HTTPCache.fieldsOfNotModified.contains($0.name.lowercased()) }
            return ServedHead(status: 304, headers: HTTPHeaders(Array(kept)), body: .none)
        }
        if request.method == "HEAD" { return ServedHead(status: 200, headers: headers, body: .none) }
        guard let length = response.bodyLength, let range = wantedRange(request, response, length) else {
            return ServedHead(status: 200, headers: headers, body: .whole)
        }
        guard !range.isEmpty else {
            headers.removeAll { $0.name.lowercased().hasPrefix("content-") }
            headers["Content-Range"] = "bytes */\(length)"
            headers["Content-Length"] = "0"
            return ServedHead(status: 416, headers: headers, body: .none)
        }
        headers["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
        headers["Content-Length"] = String(range.count)
        return ServedHead(status: 206, headers: headers, body: .part(range))
    }

    /// RFC 9110 section 15.4.5, and what tells the age.
    private static let fieldsOfNotModified: Set<String> = [
        "age", "cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary",
    ]

    /// The range a request wants, empty if it lies behind the end; nil if it wants everything, or several.
    private func wantedRange(_ request: CacheRequest, _ response: StoredResponse, _ length: Int) -> Range<Int>? {
        guard request.method == "GET", let text = request.headers["Range"],
            let range = RequestedRange(text)?.resolved(length)
        else { return nil }
        guard let condition = request.headers["If-Range"] else { return range }
        // RFC 9110 section 13.1.5: a strong tag, or exactly the date.
        if let tag = response.entityTag.map(EntityTag.init), !tag.isWeak, tag.isWellFormed,
            EntityTag(condition) == tag
        {
            return range
        }
        return condition == response.lastModified ? range : nil
    }
}

/// What a `Range` of bytes says (RFC 9110 section 14.1.2), if it is one range only.
enum RequestedRange: Hashable {
    case from(Int, through: Int?)
    case last(Int)

    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count > 6, bytes.prefix(6).map(\.asciiLowercased) == Array("bytes=".utf8) else { return nil }
        let parts = bytes[6...].split(separator: 0x2D, omittingEmptySubsequences: false).map(HTTPList.trim)
        guard parts.count == 2 else { return nil }
        switch (parts[0].isEmpty, parts[1].isEmpty) {
        case (true, true): return nil
        case (true, false):
            guard let count = HTTPList.number(parts[1]) else { return nil }
            self = .last(count)
        case (false, true):
            guard let first = HTTPList.number(parts[0]) else { return nil }
            self = .from(first, through: nil)
        case (false, false):
            guard let first = HTTPList.number(parts[0]), let last = HTTPList.number(parts[1]), first <= last
            else { return nil }
            self = .from(first, through: last)
        }
    }

    /// The bytes of a body of a length; empty if it has none of them.
    func resolved(_ length: Int) -> Range<Int> {
        switch self {
        case .from(let first, _) where first >= length: 0..<0
        case .from(let first, let last): first..<(min(last ?? length, length - 1) + 1)
        case .last(let count): (length - min(count, length))..<length
        }
    }
}
