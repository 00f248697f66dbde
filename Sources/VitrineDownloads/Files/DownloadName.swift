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
    package static func name(for head: ResponseHead, from url: URL) -> String {
        let proposed = head.headers.first("Content-Disposition").flatMap(ContentDisposition.fileName)
        return proposed.flatMap(safe) ?? name(for: url)
    }

    /// The name by an address alone.
    package static func name(for url: URL) -> String {
        let part = url.path(percentEncoded: true).split(separator: "/").last.map(String.init)
        return part.flatMap { $0.removingPercentEncoding ?? $0 }.flatMap(safe) ?? unnamed
    }

    /// A stranger's name as one that stays in its directory and shows what it is: without directories, control and
    /// direction characters, white space around it, or a dot before it, and no longer than names may be.
    ///
    /// - Returns: nil if nothing is left.
    package static func safe(_ name: String) -> String? {
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last ?? []
        var text = String.UnicodeScalarView()
        for scalar in last where !isHidden(scalar) { text.append(scalar) }
        var result = Substring(String(text))
        while let first = result.first, first.isWhitespace || first == "." { result.removeFirst() }
        while let last = result.last, last.isWhitespace || last == "." { result.removeLast() }
        return result.isEmpty ? nil : shortened(String(result), by: "")
    }

    /// `name (2).txt`: the name with a number before its extension.
    package static func numbered(_ name: String, _ number: Int) -> String {
        number < 2 ? name : shortened(name, by: " (\(number))")
    }

    /// The name with something before its extension, and as much left out as names are too long.
    private static func shortened(_ name: String, by addition: String) -> String {
        let ending = ending(of: name)
        var stem = Substring(name.dropLast(ending.count))
        let room = FileName.maximumLength - ending.utf8.count - addition.utf8.count
        while stem.utf8.count > room, !stem.isEmpty { stem.removeLast() }
        return stem + addition + ending
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
