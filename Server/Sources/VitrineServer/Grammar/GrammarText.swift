import Foundation
import VitrineImaging

/// Reads the parts of URLs that both grammars share.
enum GrammarText {
    /// The longest path that is read, in bytes.
    static let maximumPathLength = 8_192

    /// - Throws: ``RequestError`` with status 414 for a path that is too long, and 400 for one with control
    ///   characters or bytes that were no UTF-8.
    static func checkPath(_ path: Substring) throws(RequestError) {
        guard path.utf8.count <= maximumPathLength else {
            throw RequestError(414, code: "path-too-long", reason: "The path has more than \(maximumPathLength) bytes.")
        }
        let isASCII = path.utf8.allSatisfy { $0 < 0x80 }
        // Bytes that were not UTF-8 have become the replacement character.
        guard !path.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }),
            isASCII || !path.unicodeScalars.contains("\u{FFFD}")
        else {
            throw RequestError(400, code: "malformed-path", reason: "The path has a control character or is not UTF-8.")
        }
    }

    /// The parts between separators, empty ones included. A mark that combines with a separator does not hide it.
    static func split(_ text: Substring, at separator: Character) -> [Substring] {
        guard let byte = separator.asciiValue else {
            return text.split(separator: separator, omittingEmptySubsequences: false)
        }
        return text.utf8.split(separator: byte, omittingEmptySubsequences: false).map { Substring($0) }
    }

    static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop { $0.isWhitespace }
        guard let end = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return start[...end]
    }

    /// Restores slashes that a proxy has merged: `http:/host` becomes `http://host`, and `local:/a` `local:///a`.
    static func restoringSlashes(of source: Substring) -> Substring {
        guard let colon = source.firstIndex(of: ":"), !source[..<colon].contains("/") else { return source }
        let rest = source[source.index(after: colon)...]
        guard rest.hasPrefix("/"), !rest.hasPrefix("//"), rest.utf8.count > 1 else { return source }
        return "\(source[...colon])\(source[..<colon] == "local" ? "//" : "/")\(rest)"[...]
    }

    /// The path up to the first question mark.
    static func withoutQuery(_ path: Substring) -> Substring {
        path.utf8.firstIndex(of: UInt8(ascii: "?")).map { path[..<$0] } ?? path
    }

    /// Decodes percent escapes once; nil for an incomplete escape, and for a result that is not UTF-8 (which never
    /// has overlong forms) or has control characters.
    static func percentDecoded(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(hexadecimal), let low = rest.next().flatMap(hexadecimal) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return checkedText(bytes)
    }

    /// Decodes base64 in the alphabet for URLs, with or without padding, as ``percentDecoded(_:)`` checks it.
    static func base64Decoded(_ text: some StringProtocol) -> String? {
        var digits: [UInt8] = []
        digits.reserveCapacity(text.utf8.count + 3)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "-"): digits.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): digits.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"): return nil
            default: digits.append(byte)
            }
        }
        while digits.last == UInt8(ascii: "=") { digits.removeLast() }
        guard digits.count % 4 != 1, !digits.contains(UInt8(ascii: "=")) else { return nil }
        while digits.count % 4 != 0 { digits.append(UInt8(ascii: "=")) }
        return Data(base64Encoded: Data(digits)).flatMap { checkedText(Array($0)) }
    }

    /// The bytes as text; nil unless they are UTF-8 without control characters.
    private static func checkedText(_ bytes: [UInt8]) -> String? {
        guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// Reads ASCII digits with an optional minus; nil for other text and more than 18 digits.
    static func integer(_ text: some StringProtocol) -> Int? {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        guard !digits.isEmpty, digits.utf8.count <= 18, digits.utf8.allSatisfy(isDigit) else { return nil }
        return Int(text)
    }

    /// Reads a decimal number such as `-1.5` or `.5`, never an exponent, `nan` or `inf`.
    static func number(_ text: some StringProtocol) -> Double? {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        guard digits.utf8.count <= 24, digits.utf8.contains(where: isDigit),
            digits.utf8.allSatisfy({ isDigit($0) || $0 == UInt8(ascii: ".") }),
            digits.utf8.count(where: { $0 == UInt8(ascii: ".") }) <= 1
        else { return nil }
        // Zeros complete `.5` and `5.`.
        let fraction = digits.utf8.contains(UInt8(ascii: ".")) ? "0" : ""
        guard let value = Double("0\(digits)\(fraction)") else { return nil }
        return text.hasPrefix("-") ? -value : value
    }

    static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// Reads a colour of three or six hexadecimal digits.
    static func hexColor(_ text: some StringProtocol) -> PixelColor? {
        guard text.utf8.count == 3 || text.utf8.count == 6 else { return nil }
        return PixelColor(css: "#\(text)")
    }

    /// The name of an option as it may stand in an answer: printable ASCII, at most 32 characters.
    static func printable(_ name: some StringProtocol) -> String {
        String(name.unicodeScalars.prefix(32).map { (0x21...0x7E).contains($0.value) ? Character($0) : "?" })
    }

    /// The text as a source.
    ///
    /// - Throws: ``RequestError`` for a missing source and for nil, a source that could not be decoded.
    static func source(_ text: String?) throws(RequestError) -> String {
        guard let text else {
            throw RequestError(
                400, code: "invalid-source",
                reason: "The source is not encoded correctly or has control characters. "
                    + "One that is not in base64 stands behind “plain/”.")
        }
        guard !text.isEmpty else { throw .missingSource }
        return text
    }
}

// MARK: Formats

extension GrammarText {
    /// Formats by the names that URLs give them.
    private static let formats: [String: ImageFormat] = [
        "jpg": .jpeg, "jpeg": .jpeg, "png": .png, "webp": .webp, "avif": .avif, "gif": .gif, "jxl": .jxl,
        "tiff": .tiff, "tif": .tiff, "heic": .heic, "heif": .heic, "bmp": .bmp, "ico": .ico, "svg": .svg, "jp2": .jp2,
    ]
    /// Formats that an image can be encoded in.
    static let resultFormats: Set<ImageFormat> = [.jpeg, .png, .webp, .avif, .gif, .jxl]
    /// The names of ``resultFormats`` in messages.
    static let resultFormatNames = "jpg, png, webp, avif, gif or jxl"

    /// Reads the name of any format.
    static func format(_ name: some StringProtocol) -> ImageFormat? { formats[name.lowercased()] }

    /// Reads the name of a format of results.
    ///
    /// - Throws: ``RequestError`` that names `option`: unsupported for formats that are only read, else invalid.
    static func resultFormat(_ name: some StringProtocol, option: String) throws(RequestError) -> ImageFormat {
        let onlyRead: Set<String> = ["best", "pdf", "psd", "mp4", "webm"]
        if let format = format(name) {
            guard resultFormats.contains(format) else { throw .unsupportedOption(option, "no \(format) is written") }
            return format
        }
        guard !onlyRead.contains(name.lowercased()) else {
            throw .unsupportedOption(option, "no \(name.lowercased()) is written")
        }
        throw .invalidArgument(option, resultFormatNames)
    }
}

// MARK: Errors

extension RequestError {
    static let missingSource = RequestError(400, code: "missing-source", reason: "The path names no source.")

    /// An option that is in neither grammar.
    static func unknownOption(_ name: some StringProtocol) -> RequestError {
        // An address where options are expected.
        let isAddress = ["http", "https", "local", "data", "s3"].contains(name.lowercased())
        let hint = isAddress ? " An address that is not in base64 stands behind “plain/”." : ""
        return RequestError(
            400, code: "unknown-option", reason: "There is no option \(GrammarText.printable(name)).\(hint)")
    }

    /// An option of the grammar that this server does not have.
    static func unsupportedOption(_ name: some StringProtocol, _ why: String? = nil) -> RequestError {
        let name = GrammarText.printable(name)
        return RequestError(
            400, code: "unsupported-option",
            reason: "The option \(name) is not supported" + (why.map { ": \($0)." } ?? "."))
    }

    /// An argument that is missing, surplus, out of range or of the wrong type.
    static func invalidArgument(_ option: some StringProtocol, _ expected: String) -> RequestError {
        RequestError(
            400, code: "invalid-argument", reason: "The option \(GrammarText.printable(option)) takes \(expected).")
    }
}

// MARK: Arguments

/// The arguments of one option, percent-decoded.
struct OptionArguments {
    /// The name in messages.
    let option: String
    var values: [String]

    /// Decodes the arguments.
    init(option: String, encoded: some Sequence<Substring>) throws(RequestError) {
        self.option = option
        values = []
        for text in encoded {
            guard let value = GrammarText.percentDecoded(text) else {
                throw .invalidArgument(option, "text with valid percent escapes and without control characters")
            }
            values.append(value)
        }
    }

    init(option: String, values: [String]) {
        self.option = option
        self.values = values
    }

    var count: Int { values.count }

    /// The argument; empty if there are not so many.
    subscript(index: Int) -> String { index < values.count ? values[index] : "" }

    /// Whether the argument is given and not empty.
    func has(_ index: Int) -> Bool { !self[index].isEmpty }

    /// All arguments from an index on.
    func dropFirst(_ count: Int) -> OptionArguments {
        OptionArguments(option: option, values: Array(values.dropFirst(count)))
    }

    func check(_ range: ClosedRange<Int>) throws(RequestError) {
        guard range.contains(count) else {
            let text = range.lowerBound == range.upperBound ? "\(range.lowerBound)"
                : "\(range.lowerBound) to \(range.upperBound)"
            throw .invalidArgument(option, text + (range.upperBound == 1 ? " argument" : " arguments"))
        }
    }

    func integer(_ index: Int, _ range: ClosedRange<Int>) throws(RequestError) -> Int {
        guard let value = GrammarText.integer(self[index]), range.contains(value) else {
            throw .invalidArgument(option, "a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func number(_ index: Int, _ range: ClosedRange<Double>) throws(RequestError) -> Double {
        guard let value = GrammarText.number(self[index]), range.contains(value) else {
            throw .invalidArgument(
                option, "a number from \(plain(range.lowerBound)) to \(plain(range.upperBound))")
        }
        return value
    }

    /// A factor above 0.
    func factor(_ index: Int, upTo maximum: Double) throws(RequestError) -> Double {
        guard let value = GrammarText.number(self[index]), value > 0, value <= maximum else {
            throw .invalidArgument(option, "a number above 0 and at most \(plain(maximum))")
        }
        return value
    }

    func flag(_ index: Int) throws(RequestError) -> Bool {
        switch self[index] {
        case "1", "t", "T", "true", "True", "TRUE": return true
        case "0", "f", "F", "false", "False", "FALSE": return false
        default: throw .invalidArgument(option, "1, t or true, or 0, f or false")
        }
    }

    func hexColor(_ index: Int) throws(RequestError) -> PixelColor {
        guard let color = GrammarText.hexColor(self[index]) else {
            throw .invalidArgument(option, "a colour of three or six hexadecimal digits")
        }
        return color
    }

    /// The number without a fraction of zero.
    private func plain(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}
