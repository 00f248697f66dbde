/// The head of an answer from a stored response.
@_spi(HTTPCacheEngine) public struct ServedHead: Sendable, Hashable {
    /// The part of the stored body that follows the head.
    public enum Body: Sendable, Hashable {
        /// The whole body.
        case whole
        /// No body.
        case none
        /// The bytes of a range.
        case part(Range<Int>)
    }

    /// The stored status code, 206, 304 or 416.
    public let status: Int
    /// The header fields with `Age`.
    public let headers: HTTPHeaders
    /// The part of the body.
    public let body: Body
}

@_spi(HTTPCacheEngine) extension HTTPCache {
    /// Returns the head of an answer from a stored response (RFC 9111, section 4), with the request's conditions and
    /// range applied.
    ///
    /// - Parameters:
    ///   - response: A response that ``decide(_:stored:now:)`` permitted to use.
    ///   - request: The request.
    ///   - now: The time since 1970.
    public func head(of response: StoredResponse, for request: CacheRequest, now: Duration) -> ServedHead {
        let age = min(policy.freshness(of: response, now: now).age, .seconds(DeltaSeconds.most)).components.seconds
        var headers = response.headers
        headers["Age"] = String(age)
        guard response.status == 200, request.isLookup else {
            return ServedHead(
                status: response.status, headers: headers, body: request.method == "HEAD" ? .none : .whole)
        }
        if isNotModified(response, for: request) {
            let kept = headers.fields.filter { HTTPCache.fieldsOfNotModified.contains($0.name.lowercased()) }
            return ServedHead(status: 304, headers: HTTPHeaders(kept), body: .none)
        }
        if request.method == "HEAD" { return ServedHead(status: 200, headers: headers, body: .none) }
        guard let length = response.bodyLength, let range = wantedRange(request, response: response, length: length)
        else {
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

    /// The fields of a 304 (RFC 9110, section 15.4.5), and `Age`.
    private static let fieldsOfNotModified: Set<String> = [
        "age", "cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary",
    ]

    /// Returns the range of a request, which is empty if it begins after the end; nil for the whole body and for
    /// several ranges.
    private func wantedRange(_ request: CacheRequest, response: StoredResponse, length: Int) -> Range<Int>? {
        guard request.method == "GET", let text = request.headers["Range"],
            let range = RequestedRange(text)?.resolved(length)
        else { return nil }
        guard let condition = request.headers["If-Range"] else { return range }
        // RFC 9110, section 13.1.5: a strong tag, or exactly the date.
        if let tag = response.entityTag.map(EntityTag.init), !tag.isWeak, tag.isWellFormed,
            EntityTag(condition) == tag
        {
            return range
        }
        return condition == response.lastModified ? range : nil
    }
}

/// A `Range` field with one range of bytes (RFC 9110, section 14.1.2).
private enum RequestedRange: Hashable {
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

    /// Returns the bytes in a body of a length; empty if there are none.
    func resolved(_ length: Int) -> Range<Int> {
        switch self {
        case .from(let first, _) where first >= length: 0..<0
        case .from(let first, let last): first..<(min(last ?? length, length - 1) + 1)
        case .last(let count): (length - min(count, length))..<length
        }
    }
}

extension HTTPCache {
    /// Returns the fields of a revalidation (RFC 9111, section 4.3.1). They replace the request's own conditions, which
    /// ``head(of:for:now:)`` evaluates later.
    func conditions(for response: StoredResponse, _ request: CacheRequest) -> HTTPHeaders {
        var headers = request.headers
        guard response.entityTag != nil || response.lastModified != nil else { return headers }
        headers.removeAll { $0.isNamed("If-None-Match") || $0.isNamed("If-Modified-Since") }
        if let tag = response.entityTag { headers.append("If-None-Match", tag) }
        if let date = response.lastModified { headers.append("If-Modified-Since", date) }
        return headers
    }

    /// Returns whether the client already has the stored response (RFC 9110, section 13.2.2).
    private func isNotModified(_ response: StoredResponse, for request: CacheRequest) -> Bool {
        let tags = request.headers.all("If-None-Match")
        if !tags.isEmpty {
            let wanted = tags.flatMap(EntityTag.list)
            if wanted.contains(where: { $0.opaque == "*" }) { return true }
            guard let tag = response.entityTag.map(EntityTag.init) else { return false }
            return wanted.contains { $0.opaque == tag.opaque }
        }
        guard let text = request.headers["If-Modified-Since"],
            let since = HTTPDate.seconds(text, now: response.responseTime)
        else { return false }
        // Without a time of change, the response cannot have changed after its creation (RFC 9111, section 4.3.2).
        let changed = response.lastModified.flatMap { HTTPDate.seconds($0, now: response.responseTime) }
        return changed ?? response.date <= since
    }
}

/// An entity tag (RFC 9110, section 8.8.3).
struct EntityTag: Hashable {
    /// The opaque part with its quotes, if it has any.
    let opaque: String
    /// Whether bodies with the same tag may differ.
    let isWeak: Bool

    init(_ text: String) { self.init(HTTPList.trim(Array(text.utf8)[...])) }

    init(_ bytes: ArraySlice<UInt8>) {
        isWeak = bytes.starts(with: [0x57, 0x2F])
        opaque = String(decoding: isWeak ? bytes.dropFirst(2) : bytes, as: UTF8.self)
    }

    /// Whether the tag has quotes. Bodies are not combined under other tags.
    var isWellFormed: Bool { opaque.utf8.count >= 2 && opaque.utf8.first == 0x22 && opaque.utf8.last == 0x22 }

    /// Longer tags fill the header of the request, which servers refuse.
    private static let longest = 1024

    /// Returns whether a tag can be sent in a request.
    static func isSendable(_ text: String) -> Bool {
        text.utf8.count <= longest && HTTPSyntax.isFieldValue(text)
    }

    /// Returns the tags of a list.
    static func list(_ line: String) -> [EntityTag] { HTTPList.elements(line).map { EntityTag($0) } }
}
