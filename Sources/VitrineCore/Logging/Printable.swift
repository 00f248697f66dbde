/// Makes text from files, servers and users safe to show: nothing in it can move a cursor, colour, reorder or hide
/// what stands around it, or begin a line of its own.
///
/// Escaped are control characters (C0, DEL, C1), line and paragraph separators, what reorders text (Unicode Technical
/// Report 36, "Bidirectional Text Spoofing"), and what cannot be seen: format, tag and ignorable characters. Joiners
/// and variation selectors stay between characters beyond ASCII, where emoji and scripts need them. Characters are written
/// `\n`, `\r`, `\t` and `\u{202E}`, bytes of file names that are no UTF-8 `\xFF`. Backslashes stay as they are: what
/// needs the exact text takes JSON.
package enum Printable {
    /// The text as a part of one line.
    package static func line(_ text: String) -> String { escaped(text, keepsNewlines: false, form: display) }

    /// The text with its ends of lines.
    package static func lines(_ text: String) -> String { escaped(text, keepsNewlines: true, form: display) }

    /// JSON text with what is not printable inside of its strings as `\u` escapes, which change no value.
    package static func json(_ text: String) -> String { escaped(text, keepsNewlines: true, form: jsonEscape) }

    private static func escaped(
        _ text: String, keepsNewlines: Bool, form: (Unicode.Scalar) -> String
    ) -> String {
        let isPlain = text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F || keepsNewlines && $0 == 0x0A }
        if isPlain { return text }
        var result = String.UnicodeScalarView()
        var index = text.unicodeScalars.startIndex
        let scalars = text.unicodeScalars
        while index < scalars.endIndex {
            let scalar = scalars[index]
            let next = scalars.index(after: index)
            let isKept =
                isPrintable(scalar) || keepsNewlines && scalar == "\n"
                || isJoining(scalar)
                    && joins(index > scalars.startIndex ? scalars[scalars.index(before: index)] : nil)
                    && (scalar.properties.isVariationSelector || joins(next < scalars.endIndex ? scalars[next] : nil))
            if isKept { result.append(scalar) } else { result.append(contentsOf: form(scalar).unicodeScalars) }
            index = next
        }
        return String(result)
    }

    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.value < 0x7F { return scalar.value >= 0x20 }
        if PathText.byte(of: scalar) != nil { return false }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: return false
        default: return !scalar.properties.isDefaultIgnorableCodePoint && !scalar.properties.isNoncharacterCodePoint
        }
    }

    /// Zero-width joiner and non-joiner, and the selectors of text and emoji.
    private static func isJoining(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x200C, 0x200D, 0xFE0E, 0xFE0F: true
        default: false
        }
    }

    /// Whether a character is one that joiners and selectors belong to.
    private static func joins(_ scalar: Unicode.Scalar?) -> Bool {
        guard let scalar, scalar.value >= 0x80 else { return false }
        return isPrintable(scalar) || scalar.value == 0xFE0F
    }

    private static func display(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default: break
        }
        if let byte = PathText.byte(of: scalar) { return "\\x" + String(byte, radix: 16, uppercase: true) }
        return "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
    }

    private static func jsonEscape(_ scalar: Unicode.Scalar) -> String {
        UTF16.encode(scalar)?.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined() ?? ""
    }
}
