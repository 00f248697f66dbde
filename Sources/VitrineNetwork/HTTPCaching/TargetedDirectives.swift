/// Reads fields like `CDN-Cache-Control` that are meant for caches of one kind (RFC 9213): a dictionary in the sense of
/// RFC 8941, to be ignored as a whole when it is not a valid one.
enum TargetedDirectives {
    /// The directives of a field's lines; nil when there are none or the field is not a valid dictionary.
    static func parse(_ lines: [String]) -> CacheDirectives? {
        let bytes = Array(lines.joined(separator: ",").utf8)
        var reader = StructuredReader(bytes: bytes)
        reader.skipSpaces()
        guard !reader.isAtEnd else { return nil }
        var members: [String: StructuredReader.Item] = [:]
        while true {
            guard let name = reader.key() else { return nil }
            guard let item = reader.accept(0x3D) ? reader.item() : .flag(true), reader.skipParameters() else {
                return nil
            }
            // Of members of one name the last counts (RFC 8941 section 3.2).
            members[name] = item
            reader.skipOptionalSpace()
            if reader.isAtEnd { break }
            guard reader.accept(0x2C) else { return nil }
            reader.skipOptionalSpace()
            if reader.isAtEnd { return nil }
        }
        return directives(members)
    }

    private static func directives(_ members: [String: StructuredReader.Item]) -> CacheDirectives {
        var directives = CacheDirectives()
        directives.isEmpty = false
        for (name, item) in members {
            switch item {
            case .flag(false): break
            case .flag(true): directives.apply(name, nil)
            case .integer(let digits): directives.apply(name, digits)
            // Only lists of fields come as strings; elsewhere they are of the wrong type.
            case .text(let text) where name == "no-cache" || name == "private": directives.apply(name, text)
            case .text, .other: directives.apply(name, [])
            }
        }
        return directives
    }
}
