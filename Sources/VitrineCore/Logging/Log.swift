public import Logging

/// Creates the loggers of the package.
///
/// All labels begin with `vitrine.`, so that a program's log handler can filter them. The program chooses the handler
/// and the levels with `LoggingSystem.bootstrap(_:)` of swift-log. Messages and metadata may contain text of files and
/// servers, so control characters and the like are escaped before the handler receives them.
package enum Log {
    /// The prefix of all labels.
    package static let prefix = "vitrine."

    /// Returns a logger for one part of the package.
    ///
    /// - Parameter part: For example `cache`, which makes the label `vitrine.cache`.
    package static func logger(_ part: String) -> Logger {
        logger(part, handler: Logger(label: prefix + part).handler)
    }

    /// Returns a logger for one part of the package that writes to a given handler.
    package static func logger(_ part: String, handler: any LogHandler) -> Logger {
        Logger(label: prefix + part) { _ in PrintableLogHandler(handler) }
    }
}

/// Passes messages on to a program's handler, escaped as ``Printable/line(_:)`` does.
private struct PrintableLogHandler: LogHandler {
    private var handler: any LogHandler

    init(_ handler: any LogHandler) { self.handler = handler }

    var logLevel: Logger.Level {
        get { handler.logLevel }
        set { handler.logLevel = newValue }
    }

    var metadata: Logger.Metadata {
        get { handler.metadata }
        set { handler.metadata = newValue.mapValues(Self.printable) }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { handler.metadataProvider }
        set { handler.metadataProvider = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { handler[metadataKey: key] }
        set { handler[metadataKey: key] = newValue.map(Self.printable) }
    }

    func log(event: LogEvent) {
        var event = event
        event.message = "\(Printable.line(event.message.description))"
        event.metadata = event.metadata?.mapValues(Self.printable)
        handler.log(event: event)
    }

    private static func printable(_ value: Logger.Metadata.Value) -> Logger.Metadata.Value {
        switch value {
        case .string(let text): .string(Printable.line(text))
        case .stringConvertible(let value): .string(Printable.line(value.description))
        case .dictionary(let values): .dictionary(values.mapValues(printable))
        case .array(let values): .array(values.map(printable))
        }
    }
}

extension Logger {
    /// Logs at level debug in debug builds. Release builds do not evaluate the message.
    @inlinable
    package func debugOnly(
        _ message: @autoclosure () -> Logger.Message, metadata: @autoclosure () -> Logger.Metadata? = nil,
        file: String = #fileID, function: String = #function, line: UInt = #line
    ) {
        #if DEBUG
        debug(message(), metadata: metadata(), file: file, function: function, line: line)
        #endif
    }
}

/// Makes text of files, servers and users safe to show. Escaped text cannot move the cursor, change colours, reorder or
/// hide the text around it, or begin a new line.
///
/// Escaped are control characters (C0, DEL, C1), line and paragraph separators, bidirectional controls (Unicode
/// Technical Report 36, "Bidirectional Text Spoofing"), and invisible characters: format, tag and ignorable characters.
/// Joiners and variation selectors stay between characters beyond ASCII, where emoji and scripts need them. Characters
/// are written as `\n`, `\r`, `\t` and `\u{202E}`, bytes of file names that are not UTF-8 as `\xFF`. Backslashes are
/// not escaped; JSON output keeps the exact text.
package enum Printable {
    /// Returns the text as a part of one line.
    package static func line(_ text: String) -> String { escaped(text, keepsNewlines: false, form: display) }

    /// Returns the text with its line ends.
    package static func lines(_ text: String) -> String { escaped(text, keepsNewlines: true, form: display) }

    /// Returns JSON text whose strings have `\u` escapes for unprintable characters, which changes no value.
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

    /// Whether joiners and selectors are kept beside a character.
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
