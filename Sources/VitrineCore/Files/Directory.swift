#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Makes directories.
package enum Directory {
    /// Makes a directory and those missing above it; fine if it exists, also when another process makes it just then.
    ///
    /// - Parameter mode: For every directory made, before the umask. Default 0700, as the XDG base directory
    ///   specification (0.8, "Referencing this specification") asks.
    package static func create(_ path: String, mode: UInt32 = 0o700) throws(FileError) {
        if mkdir(path, mode_t(truncatingIfNeeded: mode)) == 0 { return }
        let code = errno
        switch code {
        case EEXIST:
            guard isDirectory(path) else { throw .alreadyExists(path: path) }
        case ENOENT:
            let parent = FilePath.parent(of: path)
            guard parent != path, !parent.isEmpty else { throw .notFound(path: path) }
            try create(parent, mode: mode)
            // Only once: whoever deletes the parent again and again must not keep us here.
            if mkdir(path, mode_t(truncatingIfNeeded: mode)) != 0 {
                let code = errno
                guard code == EEXIST, isDirectory(path) else {
                    throw FileError(operation: "mkdir", path: path, code: code)
                }
            }
        default:
            throw FileError(operation: "mkdir", path: path, code: code)
        }
    }

    /// Whether there is a directory at the path, also through a symbolic link.
    package static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// The names in a directory but `.` and `..`, in no order.
    package static func names(in path: String) throws(FileError) -> [String] {
        try names(in: path) { _, _ in true }
    }

    /// The names of the regular files in a directory, in no order. Symbolic links are not followed.
    package static func names(ofFilesIn path: String) throws(FileError) -> [String] {
        try names(in: path) { type, name in
            if type != DT_UNKNOWN { return type == DT_REG }
            // Some file systems do not tell.
            var status = stat()
            return lstat(FilePath.join(path, name()), &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        }
    }

    private static func names(
        in path: String, where isWanted: (_ type: Int, _ name: () -> String) -> Bool
    ) throws(FileError) -> [String] {
        guard let directory = opendir(path) else { throw FileError(operation: "opendir", path: path, code: errno) }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != "..", isWanted(Int(entry.pointee.d_type), { name }) { names.append(name) }
        }
        return names
    }
}
