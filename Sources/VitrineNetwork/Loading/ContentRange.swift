/// Which part of a whole a response brings (RFC 9110, section 14.4).
public struct ContentRange: Sendable, Hashable {
    /// The bytes, from the beginning of the whole.
    public let range: Range<Int>
    /// The length of the whole; nil if the server does not know.
    public let total: Int?

    /// Reads the value of a `Content-Range` field: `bytes 0-499/1234`, `bytes 0-499/*`.
    ///
    /// - Returns: nil for anything else, also for parts that do not lie within the whole.
    public init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let bounds = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2, let first = Self.number(bounds[0]), let last = Self.number(bounds[1]), first <= last,
            last < .max
        else { return nil }
        if parts[1] == "*" {
            total = nil
        } else {
            guard let number = Self.number(parts[1]), number > last else { return nil }
            total = number
        }
        range = first..<(last + 1)
    }

    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }
}

extension HTTPHeaders {
    /// Which part a response brings; nil if it does not say so, or says it twice.
    var contentRange: ContentRange? {
        let values = all("Content-Range")
        return values.count == 1 ? ContentRange(values[0]) : nil
    }
}
