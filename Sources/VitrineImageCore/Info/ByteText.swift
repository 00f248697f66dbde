/// Searches in bytes that are text in ASCII or a superset of it.
package enum ByteText {
    package static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || (9...13).contains(byte) }

    /// Where the bytes behind `pattern` stand.
    package static func find(_ pattern: StaticString, in text: [UInt8], from start: Int) -> Int? {
        let length = pattern.utf8CodeUnitCount
        var at = max(0, start)
        while at <= text.count - length {
            if text[at] == pattern.utf8Start[0], (1..<length).allSatisfy({ text[at + $0] == pattern.utf8Start[$0] }) {
                return at + length
            }
            at += 1
        }
        return nil
    }
}
