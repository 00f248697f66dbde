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
