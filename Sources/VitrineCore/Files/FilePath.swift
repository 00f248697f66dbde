/// Takes paths apart and puts them together, as text.
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

    /// `directory` and `name` with one `/` between them.
    package static func join(_ directory: String, _ name: String) -> String {
        directory.utf8.last == UInt8(ascii: "/") ? directory + name : directory + "/" + name
    }

    /// Whether the path begins at the root.
    package static func isAbsolute(_ path: String) -> Bool { path.utf8.first == UInt8(ascii: "/") }
}
