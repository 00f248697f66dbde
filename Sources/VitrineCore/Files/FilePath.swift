import CVitrineFileSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Splits and joins paths as text (see ``PathText``).
package enum FilePath {
    /// Returns the path without its last component: `/a` for `/a/b`, `/` for `/a`, `.` for `a`.
    package static func parent(of path: String) -> String {
        var bytes = Substring(path).utf8
        while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        bytes = bytes[..<slash]
        while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        return bytes.isEmpty ? "/" : String(Substring(bytes))
    }

    /// Returns the last component: `b` for `/a/b` and `/a/b/`, nothing for `/`.
    package static func name(of path: String) -> String {
        path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? ""
    }

    /// Joins a directory and a name with one `/`.
    package static func join(_ directory: String, _ name: String) -> String {
        directory.utf8.last == UInt8(ascii: "/") ? directory + name : directory + "/" + name
    }

    /// Whether the path begins at the root.
    package static func isAbsolute(_ path: String) -> Bool { path.utf8.first == UInt8(ascii: "/") }

    /// The current directory, or `/` if the process has none.
    package static var current: String {
        guard let path = getcwd(nil, 0) else { return "/" }
        defer { free(path) }
        return PathText.text(cString: path)
    }

    /// Returns the path without symbolic links, `.` and `..`, or nil if nothing exists at it.
    package static func resolved(_ path: String) -> String? {
        guard let path = realpath(path, nil) else { return nil }
        defer { free(path) }
        return PathText.text(cString: path)
    }

    /// Whether anything exists at the path, including a dangling symbolic link.
    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }
}

/// Follows symbolic links.
package enum SymbolicLink {
    /// Returns the target of a path after following links at its end, whether or not the target exists.
    ///
    /// - Throws: `ELOOP` after 40 links, the limit of the kernel (path_resolution(7)).
    package static func target(of path: String) throws(FileError) -> String {
        var path = path
        for _ in 0..<40 {
            guard let next = try link(at: path) else { return path }
            path = FilePath.isAbsolute(next) ? next : FilePath.join(FilePath.parent(of: path), next)
        }
        throw .system(operation: "readlink", path: path, code: ELOOP)
    }

    /// Returns the text of the link at the path, or nil if there is no link.
    private static func link(at path: String) throws(FileError) -> String? {
        var code: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer, count in
            let result = buffer.withMemoryRebound(to: CChar.self) { text in
                text.baseAddress.map { readlink(path, $0, text.count) } ?? 0
            }
            if result < 0 { code = errno }
            count = max(0, result)
        }
        switch code {
        case 0: return PathText.text(of: bytes)
        case EINVAL, ENOENT: return nil
        default: throw FileError(operation: "readlink", path: path, code: code)
        }
    }
}

/// Renames files.
package enum FileRename {
    /// Moves a file to another path of the same file system, in one step.
    ///
    /// - Parameter replaces: Whether an existing file at the target is replaced. Otherwise the call throws
    ///   ``FileError/alreadyExists(path:)``.
    package static func move(_ path: String, to target: String, replaces: Bool) throws(FileError) {
        let code = replaces ? (rename(path, target) == 0 ? 0 : errno) : cfilesystem_rename_exclusive(path, target)
        guard code == 0 else { throw FileError(operation: "rename", path: target, code: code) }
    }

    /// Changes names in a directory, and returns when the change is on the medium.
    ///
    /// The directory is opened before the change: a lack of descriptors or of permission leaves all as it was.
    ///
    /// - Parameters:
    ///   - target: The path whose directory changes. Errors of the directory are about it.
    ///   - change: Makes the change.
    /// - Throws: ``FileError/notDurable(path:code:)`` after a change; nothing was changed after any other error.
    package static func durably(at target: String, _ change: () throws(FileError) -> Void) throws(FileError) {
        let directory: FileDescriptor
        do throws(FileError) {
            directory = try FileDescriptor(opening: FilePath.parent(of: target), flags: O_RDONLY | O_DIRECTORY)
        } catch {
            throw error.about(target)
        }
        try change()
        let code = directory.synchronizationFailure()
        if code != 0 { throw .notDurable(path: target, code: code) }
    }
}
