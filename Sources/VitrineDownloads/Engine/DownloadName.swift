import VitrineCore
import VitrineNetwork

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The names of downloaded files.
package enum DownloadName {
    /// The name of a file without any other.
    package static let unnamed = "download"

    /// Returns the name for a response: the proposal of the server, or the last component of the address.
    package static func name(for head: HTTPResponseHead, from url: URL) -> String {
        proposed(by: head) ?? name(for: url)
    }

    /// Returns the safe form of the name that the server proposes, or nil if there is none.
    static func proposed(by head: HTTPResponseHead) -> String? {
        head.headers["Content-Disposition"].flatMap(ContentDisposition.fileName).flatMap(safe)
    }

    /// Returns the name for an address alone.
    package static func name(for url: URL) -> String { lastComponent(of: url).flatMap(safe) ?? unnamed }

    /// Returns the last component of the path, without its percent-encoding if that is UTF-8; nil for an empty path.
    package static func lastComponent(of url: URL) -> String? {
        let part = url.path(percentEncoded: true).split(separator: "/").last.map(String.init)
        return part.map { part in
            PercentEncoding.validated(part.utf8).flatMap { String(validating: $0, as: UTF8.self) } ?? part
        }
    }

    /// Returns a name from a server or an address in a form that is safe in its directory, in a shell and on other file
    /// systems.
    ///
    /// In addition to ``plain(_:)``, a leading `-` or `~` and the characters that Windows reserves become `_`. Names of
    /// Windows devices and of part files get a `_`. The result has at most ``longestName`` bytes.
    ///
    /// - Returns: nil if nothing is left.
    package static func safe(_ name: String) -> String? {
        guard let plain = plain(name) else { return nil }
        var text = String.UnicodeScalarView()
        for scalar in plain.unicodeScalars { text.append(reserved.contains(scalar) ? "_" : scalar) }
        if let first = text.first, first == "-" || first == "~" {
            text.replaceSubrange(text.startIndex...text.startIndex, with: ["_"])
        }
        var result = String(text)
        let stem = result.prefix { $0 != "." }.uppercased()
        let isPort = ports.contains(String(stem.dropLast())) && stem.last?.isNumber == true
        if isPort || devices.contains(stem) { result = "_" + result }
        if PartialFile.isName(result) { result += "_" }
        return shortened(result, by: "", to: longestName)
    }

    /// Returns a name without directories, without control and bidirectional characters, and without white space and
    /// dots at its ends. It has at most 255 bytes.
    ///
    /// - Returns: nil if nothing is left.
    static func plain(_ name: String) -> String? {
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last ?? []
        var text = String.UnicodeScalarView()
        for scalar in last where !isHidden(scalar) { text.append(scalar) }
        let result = trimmed(String(text))
        return result.isEmpty ? nil : shortened(result, by: "", to: FileName.maximumLength)
    }

    /// Returns the name with a number before its extension, such as `name (2).txt`.
    package static func numbered(_ name: String, _ number: Int) -> String {
        number < 2 ? name : shortened(name, by: " (\(number))", to: FileName.maximumLength)
    }

    /// The length limit of names of servers, in bytes, which leaves room for the suffix of a part file.
    static let longestName = FileName.maximumLength - ".vitrine-part".utf8.count

    private static let reserved: Set<Unicode.Scalar> = [":", "*", "?", "\"", "<", ">", "|"]
    /// Names that Windows opens as devices, with any extension
    /// (https://learn.microsoft.com/windows/win32/fileio/naming-a-file).
    private static let devices: Set<String> = ["CON", "PRN", "AUX", "NUL"]
    private static let ports: Set<String> = ["COM", "LPT"]

    private static func trimmed(_ name: String) -> String {
        let scalars = name.unicodeScalars
        func isEdge(_ scalar: Unicode.Scalar) -> Bool { scalar == "." || scalar.properties.isWhitespace }
        guard let first = scalars.firstIndex(where: { !isEdge($0) }),
            let last = scalars.lastIndex(where: { !isEdge($0) })
        else { return "" }
        return String(scalars[first...last])
    }

    /// Returns the name with an addition before its extension, shortened to `limit` bytes.
    private static func shortened(_ name: String, by addition: String, to limit: Int) -> String {
        let ending = ending(of: name)
        let stem = name.dropLast(ending.count)
        let available = limit - ending.utf8.count - addition.utf8.count
        guard stem.utf8.count > available else { return stem + addition + ending }
        let cut = trimmed(prefix(of: stem, upTo: available))
        return (cut.isEmpty ? unnamed : cut) + addition + ending
    }

    /// Returns the beginning of a text in at most `count` bytes. A character of more than half of them, such as one
    /// with many combining marks, is cut between its scalars.
    private static func prefix(of text: Substring, upTo count: Int) -> String {
        var length = 0, end = text.startIndex
        while end < text.endIndex {
            let next = text[end].utf8.count
            guard length + next <= count else { break }
            length += next
            end = text.index(after: end)
        }
        guard length < count / 2 else { return String(text[..<end]) }
        var result = String.UnicodeScalarView(text[..<end].unicodeScalars)
        for scalar in text[end...].unicodeScalars {
            length += UTF8.width(scalar)
            guard length <= count else { break }
            result.append(scalar)
        }
        return String(result)
    }

    /// Returns the extension, such as `.tar.gz` or `.txt`, or an empty text.
    private static func ending(of name: String) -> String {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count > 1, let last = parts.last, (1...16).contains(last.utf8.count),
            parts[0] != "" || parts.count > 2
        else { return "" }
        if parts.count > 2, parts[parts.count - 2] == "tar" { return ".tar." + last }
        return "." + last
    }

    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // The zero-width joiners are letters of Persian and Indic words and parts of emoji (Unicode 16, section 23.2), and
        // tags are parts of the flags of regions (UTS #51).
        case 0x200C, 0x200D, 0xE0020...0xE007F: return false
        default: break
        }
        return switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}

/// The name that a server proposes for a file (RFC 6266).
package enum ContentDisposition {
    /// Returns the name in a `Content-Disposition` field: `filename*` (RFC 8187) takes precedence over `filename`.
    ///
    /// - Returns: nil without a name. The name is as it was sent and must not be used as a path.
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

    /// Removes the next `name=value` from a list; the value may be quoted.
    private static func parameter(_ rest: inout Substring) -> (name: String, value: String)? {
        rest = rest.drop { $0 == ";" || $0 == " " || $0 == "\t" }
        guard let equals = rest.firstIndex(where: { $0 == "=" || $0 == ";" }) else { return nil }
        // Parameters without a value are ignored.
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
                // A backslash quotes the next character, but servers also send Windows paths without quoting.
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

    /// Decodes a text such as `UTF-8'en'%e2%82%ac.txt`.
    private static func decode(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = PercentEncoding.validated(parts[2].utf8) else { return nil }
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
