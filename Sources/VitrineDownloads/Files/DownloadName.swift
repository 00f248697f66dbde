#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineNetwork

/// Under which name a file is kept.
package enum DownloadName {
    /// What a file is called that nobody named.
    package static let unnamed = "download"

    /// The name for what a response brought: the server's, or the last part of the address.
    package static func name(for head: HTTPResponseHead, from url: URL) -> String {
        proposed(by: head) ?? name(for: url)
    }

    /// The name the server proposes, made safe; nil if it proposes none.
    static func proposed(by head: HTTPResponseHead) -> String? {
        head.headers["Content-Disposition"].flatMap(ContentDisposition.fileName).flatMap(safe)
    }

    /// The name by an address alone.
    package static func name(for url: URL) -> String {
        let part = url.path(percentEncoded: true).split(separator: "/").last.map(String.init)
        return part.flatMap { $0.removingPercentEncoding ?? $0 }.flatMap(safe) ?? unnamed
    }

    /// A name from a server or an address as one that is harmless in its directory, in a shell and on other file
    /// systems.
    ///
    /// In addition to ``plain(_:)``: a leading `-` or `~`, and the characters that Windows reserves, become `_`; so
    /// does what would make it a device of Windows or a part file. It is at most ``longestName`` bytes long.
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

    /// A name without directories, control and direction characters, white space and dots around it, and no longer
    /// than names may be.
    ///
    /// - Returns: nil if nothing is left.
    static func plain(_ name: String) -> String? {
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last ?? []
        var text = String.UnicodeScalarView()
        for scalar in last where !isHidden(scalar) { text.append(scalar) }
        let result = trimmed(String(text))
        return result.isEmpty ? nil : shortened(result, by: "", to: FileName.maximumLength)
    }

    /// `name (2).txt`: the name with a number before its extension.
    package static func numbered(_ name: String, _ number: Int) -> String {
        number < 2 ? name : shortened(name, by: " (\(number))", to: FileName.maximumLength)
    }

    /// The longest name a server can give, in bytes: with the suffix of a part file it is one still.
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

    /// The name with something before its extension, and as much left out as it is longer than `limit` bytes.
    private static func shortened(_ name: String, by addition: String, to limit: Int) -> String {
        let ending = ending(of: name)
        let stem = name.dropLast(ending.count)
        let room = limit - ending.utf8.count - addition.utf8.count
        guard stem.utf8.count > room else { return stem + addition + ending }
        let cut = trimmed(prefix(of: stem, upTo: room))
        return (cut.isEmpty ? unnamed : cut) + addition + ending
    }

    /// The beginning of a text in at most so many bytes. A character that alone takes more than half of them, as one
    /// with very many combining marks, is cut between its scalars.
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

    /// `.tar.gz`, `.txt`, or nothing.
    private static func ending(of name: String) -> String {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count > 1, let last = parts.last, (1...16).contains(last.utf8.count),
            parts[0] != "" || parts.count > 2
        else { return "" }
        if parts.count > 2, parts[parts.count - 2] == "tar" { return ".tar." + last }
        return "." + last
    }

    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
