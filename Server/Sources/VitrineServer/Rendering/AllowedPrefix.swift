import Foundation
import VitrineNetwork

/// The beginning of allowed addresses.
struct AllowedPrefix: Sendable {
    private enum Place: Sendable, Hashable {
        /// Scheme, host and port.
        case web(origin: String)
        case bucket(String)
        case local
    }

    private let place: Place
    /// The beginning of the path, percent-encoded: with its slash on the web, without it elsewhere.
    private let path: String

    /// - Parameter text: `https://example.org`, `https://example.org/pictures/`, `s3://bucket/a/`, `local:///a/` or
    ///   `local://`; nil for other texts.
    init?(_ text: String) {
        let lowercased = text.lowercased()
        if lowercased == "local://" || lowercased.hasPrefix("local:///") {
            (place, path) = (.local, String(text.dropFirst(9)))
        } else if lowercased.hasPrefix("s3://") {
            let rest = text.dropFirst(5)
            let slash = rest.firstIndex(of: "/") ?? rest.endIndex
            guard slash > rest.startIndex else { return nil }
            (place, path) = (.bucket(String(rest[..<slash])), String(rest[slash...].dropFirst()))
        } else {
            guard let parts = Self.parts(ofWeb: text) else { return nil }
            (place, path) = (.web(origin: parts.origin), parts.path)
        }
    }

    func contains(_ source: SourceTable.Source) -> Bool {
        switch source.place {
        case .web(let url): contains(web: url.absoluteString)
        case .local(let names): place == .local && names.joined(separator: "/").utf8.starts(with: path.utf8)
        case .bucket(let bucket, let key): place == .bucket(bucket) && contains(path: key, isWhole: path.isEmpty)
        case .inline: false
        }
    }

    /// Whether an address of the web is allowed, as it is requested after its normalization.
    func contains(web address: String) -> Bool {
        guard let parts = Self.parts(ofWeb: address), place == .web(origin: parts.origin) else { return false }
        return contains(path: parts.path, isWhole: path == "/")
    }

    /// - Parameter isWhole: Whether every path is allowed.
    private func contains(path other: String, isWhole: Bool) -> Bool {
        isWhole || other.utf8.starts(with: path.utf8) && !PathSpelling.mayLeadElsewhere(other)
    }

    private static func parts(ofWeb address: String) -> (origin: String, path: String)? {
        guard let url = URLAccessPolicy.normalizedText(of: address), let mark = url.firstRange(of: "://"),
            let slash = url[mark.upperBound...].firstIndex(of: "/")
        else { return nil }
        return (String(url[..<slash]), String(url[slash...].prefix { $0 != "?" }))
    }
}

/// The spellings of a path that some server reads as another path.
enum PathSpelling {
    /// More rounds of decoding than any chain of servers does.
    private static let mostRounds = 8

    /// Whether a server may resolve a percent-encoded path to one with another beginning: by segments of dots in any
    /// spelling, backslashes, parameters, control characters, or bytes that decoders disagree about.
    static func mayLeadElsewhere(_ path: String) -> Bool {
        var bytes = Array(path.utf8)
        for _ in 0..<mostRounds {
            if isAmbiguous(bytes) { return true }
            let decoded = decoded(bytes)
            if decoded == bytes { return false }
            bytes = decoded
        }
        return true
    }

    /// Decodes the escapes once, and leaves all other text.
    private static func decoded(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let high = GrammarText.hexadecimal(bytes[index + 1]),
                let low = GrammarText.hexadecimal(bytes[index + 2])
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    private static func isAmbiguous(_ bytes: [UInt8]) -> Bool {
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), !hasOverlongForm(bytes), !hasUnicodeEscape(bytes) else {
            return true
        }
        var text = String(decoding: bytes, as: UTF8.self)
        // Fullwidth dots and slashes, the leader of two dots, and others become ASCII in some file systems.
        if !bytes.allSatisfy({ $0 < 0x80 }) {
            text = text.precomposedStringWithCompatibilityMapping.replacing("\u{2215}", with: "/")
                .replacing("\u{2044}", with: "/")
        }
        let separators = Array("/\\".utf8)
        return text.utf8.split(whereSeparator: { separators.contains($0) }).contains { name in
            // Some servers cut parameters off, others blanks and further dots at the end.
            let name = name.prefix { $0 != UInt8(ascii: ";") }
            return name.contains(UInt8(ascii: ".")) && name.allSatisfy { $0 == UInt8(ascii: ".") || $0 == 0x20 }
        }
    }

    /// Whether a character is written with more bytes than it needs (RFC 3629, section 10).
    private static func hasOverlongForm(_ bytes: [UInt8]) -> Bool {
        bytes.indices.contains { index in
            switch bytes[index] {
            case 0xC0, 0xC1: true
            case 0xE0: index + 1 < bytes.count && (0x80..<0xA0).contains(bytes[index + 1])
            case 0xF0: index + 1 < bytes.count && (0x80..<0x90).contains(bytes[index + 1])
            default: false
            }
        }
    }

    /// `%u002e`, as some servers of Windows decode it.
    private static func hasUnicodeEscape(_ bytes: [UInt8]) -> Bool {
        zip(bytes, bytes.dropFirst()).contains { $0 == UInt8(ascii: "%") && $1 | 0x20 == UInt8(ascii: "u") }
    }
}
