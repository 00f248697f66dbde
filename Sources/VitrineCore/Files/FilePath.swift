#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Takes paths apart and puts them together, as text (see ``PathText``).
package enum FilePath {
    /// Everything before the last component: `/a` for `/a/b`, `/` for `/a`, `.` for `a`.
    package static func parent(of path: String) -> String {
        var bytes = Substring(path).utf8
        while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        bytes = bytes[..<slash]
        while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        return bytes.isEmpty ? "/" : String(Substring(bytes))
    }

    /// The last component: `b` for `/a/b` and `/a/b/`, nothing for `/`.
    package static func name(of path: String) -> String {
        path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? ""
    }

    /// `directory` and `name` with one `/` between them.
    package static func join(_ directory: String, _ name: String) -> String {
        directory.utf8.last == UInt8(ascii: "/") ? directory + name : directory + "/" + name
    }

    /// Whether the path begins at the root.
    package static func isAbsolute(_ path: String) -> Bool { path.utf8.first == UInt8(ascii: "/") }

    /// The current directory; `/` if it has none.
    package static var current: String {
        guard let path = getcwd(nil, 0) else { return "/" }
        defer { free(path) }
        return PathText.text(cString: path)
    }

    /// The path without symbolic links, `.` and `..`; nil if there is nothing at it.
    package static func resolved(_ path: String) -> String? {
        guard let path = realpath(path, nil) else { return nil }
        defer { free(path) }
        return PathText.text(cString: path)
    }

    /// Whether there is anything at the path, also a symbolic link that leads nowhere.
    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }
}
