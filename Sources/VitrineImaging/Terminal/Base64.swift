/// Base 64 with padding (RFC 4648 §4).
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let left = bytes.count - start
            let word = Int(bytes[start]) << 16 | (left > 1 ? Int(bytes[start + 1]) << 8 : 0)
                | (left > 2 ? Int(bytes[start + 2]) : 0)
            text.append(alphabet[word >> 18])
            text.append(alphabet[word >> 12 & 63])
            text.append(left > 1 ? alphabet[word >> 6 & 63] : UInt8(ascii: "="))
            text.append(left > 2 ? alphabet[word & 63] : UInt8(ascii: "="))
        }
        return text
    }
}
