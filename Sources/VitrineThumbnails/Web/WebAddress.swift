/// Takes addresses of pages apart, as far as it is decided here whether they are drawn.
package enum WebAddress {
    /// What stands before the first colon, in small letters (RFC 3986 §3.1); nil for none.
    package static func scheme(of url: String) -> String? {
        guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let scheme = url.utf8[..<colon]
        let isScheme = scheme.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        return isScheme && !scheme.isEmpty ? String(Substring(scheme)).lowercased() : nil
    }

    /// The path of a `file:` address on this machine, without query and fragment; nil for other addresses.
    package static func path(ofFile url: String) -> String? {
        guard scheme(of: url) == "file" else { return nil }
        var rest = url.utf8.dropFirst(5).prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        if rest.starts(with: "//localhost/".utf8) {
            rest = rest.dropFirst(11)
        } else if rest.starts(with: "///".utf8) {
            rest = rest.dropFirst(2)
        }
        guard rest.first == UInt8(ascii: "/"), rest.dropFirst().first != UInt8(ascii: "/") else { return nil }
        return String(decoding: unescaped(rest), as: UTF8.self)
    }

    /// With `%20` and the like as the bytes they stand for.
    private static func unescaped(_ text: some Collection<UInt8>) -> [UInt8] {
        func digit(_ byte: UInt8) -> UInt8? { Character(UnicodeScalar(byte)).hexDigitValue.map(UInt8.init) }
        let bytes = Array(text)
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = digit(bytes[index + 1]),
                let low = digit(bytes[index + 2])
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }
}
