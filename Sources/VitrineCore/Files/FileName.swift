/// Makes file names of keys (R39, R40): any text becomes one safe component of a path.
public enum FileName {
    /// The longest name the usual file systems take, in bytes (`NAME_MAX`).
    public static let maximumLength = 255

    // MARK: Escaped names

    /// The text as a file name that can be turned back, however long it gets.
    ///
    /// `%`, NUL, `:` and `/` become `%25`, `%00`, `%3A` and `%2F`; the names that mean directories, `.` and `..`,
    /// become `%2E` and `%2E%2E`; the empty text becomes a lone `%`. Everything else stays, but for private characters
    /// that stand for bytes and would become other text as a file's name.
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

    /// The text an ``escaped(_:)`` name was made of; nil for a name it never makes.
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

    /// The file name of a key: ``escaped(_:)`` if that fits into ``maximumLength`` bytes, else ``digestName(for:)``.
    public static func name(for key: String) -> String {
        // Escaping never shortens, so a longer text needs no try.
        guard PathText.byteCount(of: key) <= maximumLength else { return digestName(for: key) }
        let name = escaped(key)
        return PathText.byteCount(of: name) <= maximumLength ? name : digestName(for: key)
    }

    // MARK: Digest names

    /// SHA-256 of the key as 64 hexadecimal digits and the key's extension, as in `….png`; 64 to 81 bytes.
    public static func digestName(for key: String) -> String {
        Hexadecimal.text(SHA256Digest.digest(of: key)) + dottedExtension(of: key)
    }

    /// MD5 of the key as 32 hexadecimal digits and the key's extension: the form of earlier libraries' long names.
    /// Two keys of one MD5 can be made on purpose; where keys come from strangers take ``name(for:)``.
    public static func md5Name(for key: String) -> String {
        md5(key) + dottedExtension(of: key)
    }

    /// MD5 of the text as 32 lower-case hexadecimal digits.
    public static func md5(_ text: String) -> String {
        Hexadecimal.text(MD5Digest.digest(of: text))
    }

    /// SHA-256 of the text as 64 lower-case hexadecimal digits.
    public static func sha256(_ text: String) -> String {
        Hexadecimal.text(SHA256Digest.digest(of: text))
    }

    // MARK: Compact names

    private static let compactAlphabet = Array("eilotrmapdnsIcufkMShjTRxgC4013".utf8)

    /// Eleven letters and digits for any text (R40): 54 bits of its SHA-256, so two of a million names meet with a
    /// chance of about 1 in 35,000.
    ///
    /// Byte `i` of the digest picks one of 30 characters; a byte above 239 would favour some of them and gives way to
    /// byte `i + 11`, that one to byte `i + 22`, whose value counts whatever it is. The names tell upper from lower
    /// case: not for file systems that do not.
    public static func compact(_ text: String) -> String {
        let digest = SHA256Digest.digest(of: text)
        let name = (0..<11).map { index -> UInt8 in
            var byte = digest[index]
            if byte > 239 { byte = digest[index + 11] }
            // The digest has 32 bytes: the last character has no third one.
            if byte > 239, index + 22 < digest.count { byte = digest[index + 22] }
            return compactAlphabet[Int(byte) % compactAlphabet.count]
        }
        return String(decoding: name, as: UTF8.self)
    }

    // MARK: Extensions

    /// The extension of the last component of a path or URL, without query and fragment; "" if there is none.
    ///
    /// Only 1 to 16 ASCII letters and digits count, so nothing that a file system or a shell could take amiss gets
    /// through.
    public static func pathExtension(of text: String) -> String {
        let end = text.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? text.utf8.endIndex
        var component = text.utf8[..<end]
        if let scheme = firstRange(of: "://", in: component) {
            component = component[scheme...]
            // The host is no file: `http://haneke.io` has no extension.
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

    /// The index just after the first occurrence of an ASCII text.
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

    private static func dottedExtension(of key: String) -> String {
        let found = pathExtension(of: key)
        return found.isEmpty ? "" : "." + found
    }
}
