extension HTTPCache {
    /// The fields of a request that asks whether a stored response still holds (RFC 9111 section 4.3.1): the
    /// requester's own conditions make way, which ``head(of:for:now:)`` evaluates afterwards.
    func conditions(for response: StoredResponse, _ request: CacheRequest) -> HTTPHeaders {
        var headers = request.headers
        guard response.entityTag != nil || response.lastModified != nil else { return headers }
        headers.removeAll { $0.isNamed("If-None-Match") || $0.isNamed("If-Modified-Since") }
        if let tag = response.entityTag { headers.append("If-None-Match", tag) }
        if let date = response.lastModified { headers.append("If-Modified-Since", date) }
        return headers
    }

    /// Whether the requester has already what a stored response holds (RFC 9110 section 13.2.2).
    func isNotModified(_ response: StoredResponse, for request: CacheRequest) -> Bool {
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
        // Without a time of change it cannot have changed after it was made (RFC 9111 section 4.3.2).
        let changed = response.lastModified.flatMap { HTTPDate.seconds($0, now: response.responseTime) }
        return changed ?? response.date <= since
    }
}

/// A validator (RFC 9110 section 8.8.3).
struct EntityTag: Hashable {
    /// What is compared, with its quotes, or without where the server forgot them.
    let opaque: String
    /// Whether the bodies may differ that it is given to.
    let isWeak: Bool

    init(_ text: String) { self.init(HTTPList.trim(Array(text.utf8)[...])) }

    init(_ bytes: ArraySlice<UInt8>) {
        isWeak = bytes.starts(with: [0x57, 0x2F])
        opaque = String(decoding: isWeak ? bytes.dropFirst(2) : bytes, as: UTF8.self)
    }

    /// Whether the tag has its quotes: others are too doubtful to put bodies together by.
    var isWellFormed: Bool { opaque.utf8.count >= 2 && opaque.utf8.first == 0x22 && opaque.utf8.last == 0x22 }

    /// Longer ones fill the request's header, which servers refuse.
    private static let longest = 1024

    /// Whether a tag can be sent back: without control characters, and of a length that requests can have.
    static func isSendable(_ text: String) -> Bool {
        text.utf8.count <= longest && HTTPSyntax.isFieldValue(text)
    }

    /// The tags of a list.
    static func list(_ line: String) -> [EntityTag] { HTTPList.elements(line).map { EntityTag($0) } }
}
