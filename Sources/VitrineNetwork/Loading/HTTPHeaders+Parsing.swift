extension HTTPHeaders {
    /// Reads the lines of a header, as they come from a server.
    ///
    /// Folded lines are joined by a space (RFC 9112, section 5.2). The number and size of the fields are bounded by who
    /// collects the lines.
    ///
    /// - Throws: What is wrong with them, as a sentence.
    package init(lines: [UInt8]) throws(HTTPHeadersProblem) {
        var fields: [Field] = []
        fields.reserveCapacity(16)
        let problem = lines.withUnsafeBufferPointer { bytes in Self.read(bytes, into: &fields) }
        if let problem { throw problem }
        self.init(fields)
    }

    private static func read(_ bytes: UnsafeBufferPointer<UInt8>, into fields: inout [Field]) -> HTTPHeadersProblem? {
        var start = 0
        while start < bytes.count {
            var end = start, colon = -1
            var hasControls = false
            while end < bytes.count, bytes[end] != 0x0A {
                let byte = bytes[end]
                if byte == UInt8(ascii: ":"), colon < 0 { colon = end }
                // One CR may stand before the LF.
                if byte == 0 || byte == 0x0D && end + 1 < bytes.count && bytes[end + 1] != 0x0A { hasControls = true }
                end += 1
            }
            let line = start..<(end > start && bytes[end - 1] == 0x0D ? end - 1 : end)
            start = end + 1
            if hasControls { return HTTPHeadersProblem(reason: "a field holds control characters") }
            if line.isEmpty { continue }
            if HTTPSyntax.isBlank(bytes[line.lowerBound]) {
                guard let last = fields.popLast() else {
                    return HTTPHeadersProblem(reason: "the header begins with a folded line")
                }
                fields.append(Field(name: last.name, value: last.value + " " + text(trimmed(bytes, line))))
            } else {
                guard colon >= 0 else { return HTTPHeadersProblem(reason: "a line of the header has no colon") }
                let name = text(UnsafeBufferPointer(rebasing: bytes[line.lowerBound..<colon]))
                guard HTTPSyntax.isToken(name) else {
                    return HTTPHeadersProblem(reason: "a field of the header has no name")
                }
                fields.append(Field(name: name, value: text(trimmed(bytes, (colon + 1)..<line.upperBound))))
            }
        }
        return nil
    }

    private static func trimmed(
        _ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>
    ) -> UnsafeBufferPointer<UInt8> {
        var lower = range.lowerBound, upper = range.upperBound
        while lower < upper, HTTPSyntax.isBlank(bytes[lower]) { lower += 1 }
        while upper > lower, HTTPSyntax.isBlank(bytes[upper - 1]) { upper -= 1 }
        return UnsafeBufferPointer(rebasing: bytes[lower..<upper])
    }

    /// UTF-8 where it is that, else ISO 8859-1, whose bytes are the first 256 scalars.
    private static func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        if bytes.allSatisfy({ $0 < 0x80 }) {
            return String(unsafeUninitializedCapacity: bytes.count) { $0.initialize(fromContentsOf: bytes) }
        }
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        var text = String.UnicodeScalarView()
        for byte in bytes { text.append(Unicode.Scalar(byte)) }
        return String(text)
    }
}

/// Why lines are no header.
package struct HTTPHeadersProblem: Error {
    /// What is wrong with them.
    package let reason: String
}
