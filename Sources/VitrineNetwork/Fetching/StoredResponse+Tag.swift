extension StoredResponse {
    /// Beyond this many bytes only what decides is kept of a header.
    private static let longestTag = 8 << 10

    /// Fields that later decisions need, in small letters.
    private static let decisive: Set<String> = [
        "age", "cache-control", "content-encoding", "content-language", "content-length", "content-type", "date",
        "etag", "expires", "last-modified", "pragma", "vary", "cdn-cache-control",
    ]

    /// The head as the tag of a cache's entry.
    var tag: [UInt8] {
        let tag = bytes()
        guard tag.count > Self.longestTag else { return tag }
        var short = self
        short.headers = HTTPHeaders(headers.filter { Self.decisive.contains($0.name.lowercased()) })
        return short.bytes()
    }
}
