import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

// Text of rows. The programs of the package contain neither the rest of Foundation nor its Unicode data, 35 MB, so that
// this module imports FoundationEssentials alone where it exists.

extension Double {
    /// Returns the number in a format of `printf`, such as `%.1f`.
    func formatted(_ format: String) -> String {
        // The longest finite number has 309 digits before its point.
        var text = [CChar](repeating: 0, count: 512)
        let count = withVaList([self]) { vsnprintf(&text, text.count, format, $0) }
        return String(decoding: text.prefix(max(0, Int(count))).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

extension StringProtocol {
    /// The text without the spaces and tabs at both ends.
    var withoutSpacesAround: Substring {
        var text = Substring(self)
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text.drop { $0 == " " || $0 == "\t" }
    }

    /// The text with spaces after it, up to a number of characters.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: Swift.max(0, width - count)) }
}

/// Text that breaks between words, for terminals of any width.
package enum WrappedText {
    /// Returns the lines of a text, all of them indented. A word that is longer than a line is not broken.
    package static func lines(_ text: some StringProtocol, columns: Int, indent: Int = 0) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, indent + line.count + 1 + word.count > columns {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return (lines + [line]).map { String(repeating: " ", count: indent) + $0 }
    }

    /// Returns a label and its text in a column beside it. In a narrow terminal, the text is below the label.
    ///
    /// - Parameters:
    ///   - label: Spaces at its beginning indent it.
    ///   - column: Where the text begins.
    package static func entry(_ label: String, _ text: String, at column: Int, columns: Int) -> [String] {
        let own = label.prefix { $0 == " " }.count
        let isWide = column + 24 <= columns
        var body = lines(text, columns: columns, indent: isWide ? column : own + 4)
        if own == label.count, !isWide { return body }
        if isWide, label.count < column {
            body[0] = label.padded(to: column) + body[0].dropFirst(column)
            return body
        }
        return lines(label, columns: columns, indent: own) + body
    }
}
