import VitrineCore

/// Converts host names with letters outside ASCII to the form that is sent (RFC 5891, RFC 3492).
///
/// Accepts only unambiguous characters: letters, marks and digits that Unicode's compatibility folding does not change,
/// after conversion to lowercase. Other characters (full-width letters, ligatures, dots of other scripts) are used to
/// forge names; they have to be written as `xn--`.
enum InternationalHost {
    static func ascii(percentEncoded bytes: Slice<UnsafeBufferPointer<UInt8>>) throws(SourceURLProblem) -> String {
        guard let decoded = PercentEncoding.validated(bytes),
            let name = String(validating: decoded, as: UTF8.self)
        else {
            throw .malformed("the host name is not UTF-8")
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
        // The result is checked as every other name.
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
            throw .malformed("the host name contains characters that have to be written as xn--")
        }
        guard folded.unicodeScalars.first?.properties.isMark == false else {
            throw .malformed("a label of the host name begins with an accent")
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
        // Accents above and below would have to be composed with their letters first.
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

/// The encoding of Unicode in host names (RFC 3492, with the parameters of section 5).
private enum Punycode {
    private static let base = 36, tMin = 1, tMax = 26, skew = 38, damp = 700

    /// Returns the code of a label without its prefix `xn--` (section 6.3).
    static func encode(_ scalars: [UInt32]) -> String {
        var output = scalars.filter { $0 < 0x80 }.map { UInt8($0) }
        let basic = output.count
        if basic > 0 { output.append(UInt8(ascii: "-")) }
        var code = 128, delta = 0, bias = 72, handled = basic
        while handled < scalars.count {
            let next = scalars.lazy.map(Int.init).filter { $0 >= code }.min() ?? code
            // A label has at most a few hundred scalars of 21 bits, so this cannot overflow.
            delta += (next - code) * (handled + 1)
            code = next
            for scalar in scalars.lazy.map(Int.init) {
                if scalar < code { delta += 1 }
                guard scalar == code else { continue }
                append(delta, bias, to: &output)
                bias = adapt(delta, handled + 1, isFirst: handled == basic)
                delta = 0
                handled += 1
            }
            delta += 1
            code += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func append(_ delta: Int, _ bias: Int, to output: inout [UInt8]) {
        var rest = delta, k = base
        while true {
            let threshold = min(max(k - bias, tMin), tMax)
            if rest < threshold { break }
            output.append(digit(threshold + (rest - threshold) % (base - threshold)))
            rest = (rest - threshold) / (base - threshold)
            k += base
        }
        output.append(digit(rest))
    }

    private static func digit(_ value: Int) -> UInt8 { UInt8(value < 26 ? 0x61 + value : 0x30 + value - 26) }

    /// Section 6.1.
    private static func adapt(_ delta: Int, _ count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / damp : delta / 2
        delta += delta / count
        var k = 0
        while delta > (base - tMin) * tMax / 2 {
            delta /= base - tMin
            k += base
        }
        return k + (base - tMin + 1) * delta / (delta + skew)
    }
}
