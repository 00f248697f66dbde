/// Names of hosts in other scripts than the Latin of ASCII, turned into the form that is sent (RFC 5891, RFC 3492).
///
/// Takes only what needs no interpretation: letters, marks and digits that Unicode's compatibility folding leaves as
/// they are, after changing capitals to small letters. The others (full-width letters, ligatures, dots of other
/// scripts) are what names are forged with; who needs them writes `xn--`.
enum InternationalHost {
    static func ascii(percentEncoded bytes: Slice<UnsafeBufferPointer<UInt8>>) throws(SourceURLProblem) -> String {
        guard let decoded = PercentEncoding.decode(bytes), let name = String(validating: decoded, as: UTF8.self) else {
            throw .malformed("the host's name is not UTF-8")
        }
        return try ascii(name)
    }

    static func ascii(_ name: String) throws(SourceURLProblem) -> String {
        var labels: [String] = []
        for label in name.split(separator: ".", omittingEmptySubsequences: false) {
            labels.append(try self.label(label))
        }
        if labels.count > 1, labels.last == "" { labels.removeLast() }
        let host = labels.joined(separator: ".")
        // The result goes the way of every other name.
        var text = host
        let result = text.withUTF8 { bytes in
            Result { () throws(SourceURLProblem) in try SourceAuthority.host(bytes[...]) }
        }
        guard case .name(let checked) = try result.get() else {
            throw .malformed("the host is a number in an unusual notation")
        }
        return checked
    }

    private static func label(_ label: Substring) throws(SourceURLProblem) -> String {
        if label.utf8.allSatisfy({ $0 < 0x80 && $0 != UInt8(ascii: "%") }) { return label.lowercased() }
        let folded = label.lowercased()
        for scalar in folded.unicodeScalars where !isPlain(scalar) {
            throw .malformed("the host's name holds characters that have to be written as xn--")
        }
        guard folded.unicodeScalars.first?.properties.isMark == false else {
            throw .malformed("a part of the host's name begins with an accent")
        }
        return "xn--" + Punycode.encode(folded.unicodeScalars.map(\.value))
    }

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII {
            return (0x30...0x39).contains(scalar.value) || (0x61...0x7A).contains(scalar.value) || scalar == "-"
        }
        let properties = scalar.properties
        guard !properties.changesWhenNFKCCaseFolded, !properties.isDefaultIgnorableCodePoint else { return false }
        switch properties.generalCategory {
        case .lowercaseLetter, .otherLetter, .modifierLetter, .decimalNumber: return true
        // Accents above and below would have to be joined with their letters first.
        case .nonspacingMark, .spacingMark: return properties.canonicalCombiningClass.rawValue < 200
        default: return false
        }
    }
}

extension Unicode.Scalar.Properties {
    fileprivate var isMark: Bool {
        switch generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: true
        default: false
        }
    }
}
