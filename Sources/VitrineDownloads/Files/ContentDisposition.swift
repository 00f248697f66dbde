import VitrineCore

/// The name a server proposes for a file (RFC 6266).
package enum ContentDisposition {
    /// The name in a `Content-Disposition` field: that of `filename*` (RFC 8187) before that of `filename`.
    ///
    /// - Returns: nil if it has none. The name is as it was sent: nothing that may be used as a path.
    package static func fileName(_ field: String) -> String? {
        var rest = Substring(field)
        var plain: String?, extended: String?
        // The type, `attachment` or `inline`, does not matter here.
        guard let type = rest.firstIndex(of: ";") else { return nil }
        rest = rest[rest.index(after: type)...]
        while let (name, value) = parameter(&rest) {
            switch name.lowercased() {
            case "filename": plain = plain ?? value
            case "filename*": extended = extended ?? decode(value)
            default: break
            }
        }
        return extended ?? plain
    }

    /// Takes the next `name=value` off a list; the value may be quoted.
    private static func parameter(_ rest: inout Substring) -> (name: String, value: String)? {
        rest = rest.drop { $0 == ";" || $0 == " " || $0 == "\t" }
        guard let equals = rest.firstIndex(where: { $0 == "=" || $0 == ";" }) else { return nil }
        // A word without a value is none of those that matter.
        guard rest[equals] == "=" else {
            rest = rest[equals...]
            return ("", "")
        }
        let name = rest[..<equals].filter { $0 != " " && $0 != "\t" }
        rest = rest[rest.index(after: equals)...].drop { $0 == " " || $0 == "\t" }
        var value = ""
        if rest.first == "\"" {
            rest.removeFirst()
            while let character = rest.popFirst(), character != "\"" {
                // A backslash quotes what follows, but servers also send paths of Windows unquoted.
                if character == "\\", let next = rest.first, next == "\"" || next == "\\" {
                    value.append(next)
                    rest.removeFirst()
                } else {
                    value.append(character)
                }
            }
            rest = rest.drop { $0 != ";" }
        } else {
            let end = rest.firstIndex(of: ";") ?? rest.endIndex
            value = String(rest[..<end])
            while value.last == " " || value.last == "\t" { value.removeLast() }
            rest = rest[end...]
        }
        return (name, value)
    }

    /// Reads `UTF-8'en'%e2%82%ac.txt`.
    private static func decode(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var bytes: [UInt8] = []
        var rest = parts[2].utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(code)
            rest = rest.dropFirst(2)
        }
        switch parts[0].lowercased() {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1":
            var text = String.UnicodeScalarView()
            for byte in bytes { text.append(Unicode.Scalar(byte)) }
            return String(text)
        default: return nil
        }
    }
}
