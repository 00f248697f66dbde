import VitrineCore
import VitrineNetwork

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Takes addresses of pages apart, as far as it is decided here whether they are drawn.
package enum WebAddress {
    /// The text before the first colon, in lower case (RFC 3986 §3.1); nil for none.
    package static func scheme(of url: String) -> String? {
        guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let scheme = url.utf8[..<colon]
        let isScheme = scheme.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        return isScheme && !scheme.isEmpty ? String(Substring(scheme)).lowercased() : nil
    }

    /// Scheme, host and port of an HTTP address with any path; nil for other addresses, and for hosts in
    /// notations that ``SourceURL`` does not read.
    package static func site(of url: String) -> SourceURL? {
        guard let scheme = scheme(of: url), scheme == "http" || scheme == "https" else { return nil }
        let rest = url.utf8.dropFirst(scheme.utf8.count + 1)
        guard rest.starts(with: "//".utf8) else { return nil }
        let authority = rest.dropFirst(2).prefix { !"/?#\\".utf8.contains($0) }
        return try? SourceURL(scheme + "://" + String(decoding: Array(authority), as: UTF8.self) + "/")
    }

    /// The path of a `file:` address on this machine, without query and fragment; nil for other addresses.
    package static func path(ofFile url: String) -> String? {
        guard scheme(of: url) == "file" else { return nil }
        var rest = url.utf8.dropFirst(5).prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        if rest.starts(with: "//localhost/".utf8) {
            rest = rest.dropFirst(11)
        } else if rest.starts(with: "///".utf8) {
            rest = rest.dropFirst(2)
        }
        guard rest.first == UInt8(ascii: "/"), rest.dropFirst().first != UInt8(ascii: "/") else { return nil }
        return PathText.text(of: unescaped(rest))
    }

    /// An address for messages: without a name and password, and shortened.
    package static func short(_ url: String) -> String {
        let url = SourceURL.withoutCredentials(url)
        return url.utf8.count <= 200 ? url : String(url.prefix(200)) + "…"
    }

    /// With `%20` and the like as the bytes they stand for.
    private static func unescaped(_ text: some Collection<UInt8>) -> [UInt8] {
        func digit(_ byte: UInt8) -> UInt8? { Character(UnicodeScalar(byte)).hexDigitValue.map(UInt8.init) }
        let bytes = Array(text)
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = digit(bytes[index + 1]),
                let low = digit(bytes[index + 2])
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
}

/// Files that a local page may read.
enum LocalFile {
    /// The path without links, as the file is found; nil when there is no such file.
    static func resolved(_ path: String) -> String? {
        guard !path.utf8.contains(0), let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    /// The directory of a file, with `/` at its end; a directory's own path when that is given.
    static func directory(of path: String) -> String {
        var status = stat()
        let isDirectory = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        let base = isDirectory ? path : String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        return base.hasSuffix("/") ? base : base + "/"
    }
}
