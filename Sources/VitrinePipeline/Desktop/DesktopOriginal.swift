#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// A file as the desktop's thumbnail cache knows it: its address and the version of it that was found.
///
/// Take it **before** the file is decoded: a thumbnail is stored only while the file is still that version.
package struct DesktopOriginal: Sendable, Hashable {
    /// The path as it was given.
    package let path: String
    /// The address, which thumbnails are named after.
    package let uri: String
    /// When the content last changed, in seconds since 1970.
    package let modified: Int
    /// Bytes.
    package let count: Int
    private let nanoseconds: Int
    private let inode: UInt64

    /// A look at a file. Blocks.
    ///
    /// - Returns: nil unless it is a regular file that this user can read; neither thumbnails nor failures of other
    ///   files are looked up or kept (standard, "Permissions").
    package init?(path: String) {
        var status = stat()
        guard !path.isEmpty, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, access(path, R_OK) == 0
        else { return nil }
        self.path = path
        uri = FileURI.text(of: path)
        modified = Int(status.modified.tv_sec)
        nanoseconds = Int(status.modified.tv_nsec)
        count = Int(status.st_size)
        inode = UInt64(status.st_ino)
    }

    /// The name of the file's thumbnails.
    var thumbnailName: String { Self.name(uri) }

    /// The names its thumbnails may have in a directory of shared ones.
    ///
    /// Programs read the standard in two ways: as the digest of the name, or of the name as a relative address.
    var sharedNames: [String] {
        let name = FilePath.name(of: FileURI.absolute(path))
        return [name, "./" + FileURI.escaped(name)].map(Self.name)
    }

    /// The values of `Thumb::URI` that are valid in a shared thumbnail.
    var sharedURIs: Set<String> {
        let name = FilePath.name(of: FileURI.absolute(path))
        let escaped = FileURI.escaped(name)
        return [name, escaped, "./" + name, "./" + escaped]
    }

    private static func name(_ text: String) -> String {
        Hexadecimal.text(MD5Digest.digest(of: PathText.bytes(of: text))) + ".png"
    }
}

/// Paths as `file:` addresses, written exactly as GLib writes them: the names in the desktop's thumbnail cache are
/// digests of these texts, so a single byte written otherwise is another name.
///
/// Source: `g_canonicalize_filename` and `g_filename_to_uri` of GLib 2.74, observed byte for byte.
package enum FileURI {
    /// The bytes that a path contains unescaped; every other byte becomes `%XX` with upper-case digits.
    private static let plain: [Bool] = {
        var plain = [Bool](repeating: false, count: 256)
        let digitsAndLetters = [48...57, 65...90, 97...122].joined()
        for byte in digitsAndLetters { plain[byte] = true }
        for byte in "!$&'()*+,-./:=@_~".utf8 { plain[Int(byte)] = true }
        return plain
    }()

    /// The address of a path: absolute, without `.`, `..` and empty components. Symbolic links are not followed.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - directory: The base of relative paths; nil for the current directory.
    package static func text(of path: String, in directory: String? = nil) -> String {
        "file://" + escaped(absolute(path, in: directory))
    }

    /// The path of an address such as `file:///a%20b` or `file://localhost/a`; nil for any other scheme or host, and
    /// for a path with a zero byte. Bytes that are no UTF-8 are private characters, as in
    /// ``DirectoryListing/Item/name``.
    package static func path(of uri: String) -> String? {
        guard uri.utf8.count >= 7, uri.prefix(7).lowercased() == "file://" else { return nil }
        var rest = uri.utf8.dropFirst(7)
        if rest.first != UInt8(ascii: "/") {
            guard rest.starts(with: "localhost/".utf8) else { return nil }
            rest = rest.dropFirst(9)
        }
        var bytes: [UInt8] = []
        var iterator = rest.makeIterator()
        while let byte = iterator.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = iterator.next().flatMap(Hexadecimal.value),
                let low = iterator.next().flatMap(Hexadecimal.value)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes.contains(0) ? nil : PathText.text(of: bytes)
    }

    /// A path or name with every byte that does not stand for itself in a path as `%XX`.
    package static func escaped(_ text: String) -> String {
        PercentEncoding.encoded(PathText.bytes(of: text)) { plain[Int($0)] }
    }

    /// The path from the root, tidied as text. Exactly two slashes in front stay, as POSIX lets them mean something.
    package static func absolute(_ path: String, in directory: String? = nil) -> String {
        var whole = path
        if !FilePath.isAbsolute(path) {
            whole = FilePath.join(directory ?? FilePath.current, path)
        }
        let slashes = whole.utf8.prefix { $0 == UInt8(ascii: "/") }.count
        var parts: [Substring] = []
        // By bytes: a combining mark behind a slash would make another Character of it.
        for part in whole.utf8.split(separator: UInt8(ascii: "/")).map({ Substring($0) }) {
            switch part {
            case ".": break
            case "..": _ = parts.popLast()
            default: parts.append(part)
            }
        }
        return (slashes == 2 ? "//" : "/") + parts.joined(separator: "/")
    }
}
