/// Makes file names from keys: any text becomes one safe component of a path.
public enum FileName {
    /// The longest name of the common file systems, in bytes (`NAME_MAX`).
    package static let maximumLength = 255

    // MARK: Escaped names

    /// Returns the text as a file name that ``unescaped(_:)`` converts back. The name may be longer than 255 bytes.
    ///
    /// `%`, NUL, `:` and `/` become `%25`, `%00`, `%3A` and `%2F`. The names `.` and `..` become `%2E` and `%2E%2E`,
    /// and the empty text becomes a single `%`. Other characters are kept, except private-use characters that would
    /// become a different text as the name of a file.
    ///
    /// - Parameter text: The text.
    public static func escaped(_ text: String) -> String {
        switch text {
        case "": return "%"
        case ".": return "%2E"
        case "..": return "%2E%2E"
        default: break
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count + 16)
        let isExact = PathText.isExact(text)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "%": bytes.append(contentsOf: "%25".utf8)
            case "\0": bytes.append(contentsOf: "%00".utf8)
            case ":": bytes.append(contentsOf: "%3A".utf8)
            case "/": bytes.append(contentsOf: "%2F".utf8)
            default:
                let utf8 = UTF8.encode(scalar) ?? .init()
                if isExact || PathText.byte(of: scalar) == nil {
                    bytes.append(contentsOf: utf8)
                } else {
                    for byte in utf8 { bytes.append(contentsOf: "%\(Hexadecimal.text([byte]).uppercased())".utf8) }
                }
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the text of an ``escaped(_:)`` name, or nil for any other name.
    ///
    /// - Parameter name: The name of a file.
    public static func unescaped(_ name: String) -> String? {
        if name == "%" { return "" }
        var bytes: [UInt8] = []
        var rest = name.utf8.makeIterator()
        while let byte = rest.next() {
            if byte == UInt8(ascii: "%") {
                guard let high = rest.next().flatMap(Hexadecimal.value),
                    let low = rest.next().flatMap(Hexadecimal.value)
                else { return nil }
                bytes.append(high << 4 | low)
            } else {
                bytes.append(byte)
            }
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        // Compared as bytes: String's == accepts canonically equivalent names.
        return escaped(text).utf8.elementsEqual(name.utf8) ? text : nil
    }

    /// Returns the file name of a key: ``escaped(_:)`` if it has at most 255 bytes, otherwise a digest name.
    ///
    /// A digest name has the SHA-256 of the key as 64 hexadecimal digits, and the extension of the key.
    ///
    /// - Parameter key: The key.
    public static func name(for key: String) -> String {
        // Escaping never shortens, so a longer text needs no try.
        guard PathText.byteCount(of: key) <= maximumLength else { return digestName(for: key) }
        let name = escaped(key)
        return PathText.byteCount(of: name) <= maximumLength ? name : digestName(for: key)
    }

    // MARK: Digest names

    /// Returns the SHA-256 of the key as 64 hexadecimal digits with the extension of the key; 64 to 81 bytes.
    package static func digestName(for key: String) -> String {
        Hexadecimal.text(SHA256Digest.digest(of: key)) + dottedExtension(of: key)
    }

    /// Returns the SHA-256 of the text as 64 lower-case hexadecimal digits.
    ///
    /// - Parameter text: The text, which is hashed as UTF-8.
    public static func sha256(_ text: String) -> String {
        Hexadecimal.text(SHA256Digest.digest(of: text))
    }

    // MARK: Extensions

    /// Returns the extension of the last component of a path or URL, without query and fragment, or "" if there is
    /// none.
    ///
    /// An extension has 1 to 16 ASCII letters and digits, so it is safe for file systems and shells.
    package static func pathExtension(of text: String) -> String {
        let end = text.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? text.utf8.endIndex
        var component = text.utf8[..<end]
        if let scheme = firstRange(of: "://", in: component) {
            component = component[scheme...]
            // A host is not a file: `http://example.org` has no extension.
            guard component.contains(UInt8(ascii: "/")) else { return "" }
        }
        if let slash = component.lastIndex(of: UInt8(ascii: "/")) {
            component = component[component.index(after: slash)...]
        }
        guard let dot = component.lastIndex(of: UInt8(ascii: ".")), dot != component.startIndex else { return "" }
        let found = component[component.index(after: dot)...]
        let isSafe = found.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        }
        return isSafe && (1...16).contains(found.count) ? String(Substring(found)) : ""
    }

    /// Returns the index just after the first occurrence of an ASCII text.
    private static func firstRange(of pattern: String, in text: Substring.UTF8View) -> Substring.UTF8View.Index? {
        var index = text.startIndex
        while index < text.endIndex {
            if text[index...].starts(with: pattern.utf8) {
                return text.index(index, offsetBy: pattern.utf8.count)
            }
            index = text.index(after: index)
        }
        return nil
    }

    package static func dottedExtension(of key: String) -> String {
        let found = pathExtension(of: key)
        return found.isEmpty ? "" : "." + found
    }
}
