extension SourceURL {
    /// The address a reference stands for, seen from this one: what a redirect's `Location` says (RFC 3986,
    /// section 5.2).
    ///
    /// Spaces and letters outside ASCII in path and query are encoded first, as browsers do.
    ///
    /// - Throws: ``NetworkError/invalidURL(url:reason:)`` or ``NetworkError/unsupportedScheme(url:scheme:)``.
    package func resolve(_ reference: String) throws(NetworkError) -> SourceURL {
        let reference = PercentEncoding.encodeForbidden(String(reference.prefix { $0 != "#" }))
        if Self.hasScheme(reference) { return try SourceURL(reference) }
        if reference.hasPrefix("//") { return try SourceURL(scheme + ":" + reference) }
        let path = String(target.prefix { $0 != "?" })
        if reference.isEmpty { return try SourceURL(text) }
        if reference.hasPrefix("?") { return try SourceURL(origin + path + reference) }
        let query = reference.firstIndex(of: "?") ?? reference.endIndex
        var merged = String(reference[..<query])
        if !merged.hasPrefix("/") {
            let directory = path.lastIndex(of: "/").map { path[...$0] } ?? "/"
            merged = directory + merged
        }
        return try SourceURL(origin + Self.withoutDots(merged) + reference[query...])
    }

    /// RFC 3986, section 3.1.
    private static func hasScheme(_ text: String) -> Bool {
        guard let first = text.utf8.first, (0x61...0x7A).contains(first | 0x20) else { return false }
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: ":"): return true
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."): break
            default: return false
            }
        }
        return false
    }

    /// RFC 3986, section 5.2.4.
    private static func withoutDots(_ path: String) -> String {
        var segments: [Substring] = []
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            switch part {
            case ".": if isLast { segments.append("") }
            case "..":
                if segments.count > 1 { segments.removeLast() }
                if isLast { segments.append("") }
            default: segments.append(part)
            }
        }
        return segments.joined(separator: "/")
    }
}
