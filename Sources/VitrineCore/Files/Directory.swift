import CVitrineFileSystem

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
    /// - Parameters:
    ///   - mode: For every directory made, before the umask. Default 0700, as the XDG base directory specification
    ///     (0.8, "Referencing this specification") asks.
    ///   - isDurable: Whether to return only when every directory made has its name on the medium.
    package static func create(_ path: String, mode: UInt32 = 0o700, isDurable: Bool = false) throws(FileError) {
        if mkdir(path, mode_t(truncatingIfNeeded: mode)) == 0 {
            if isDurable { try synchronizeName(of: path) }
            return
        }
        let code = errno
        switch code {
        case EEXIST: try checkExisting(path)
        case ENOENT:
            let parent = FilePath.parent(of: path)
            guard parent != path, !parent.isEmpty else { throw .notFound(path: path) }
            try create(parent, mode: mode, isDurable: isDurable)
            // Only once: whoever deletes the parent again and again must not keep us here.
            if mkdir(path, mode_t(truncatingIfNeeded: mode)) != 0 {
                let code = errno
                guard code == EEXIST else { throw FileError(operation: "mkdir", path: path, code: code) }
                try checkExisting(path)
            }
            // Also of one that another process has made just now, which may not have come so far.
            if isDurable { try synchronizeName(of: path) }
        default:
            throw FileError(operation: "mkdir", path: path, code: code)
        }
    }

    /// Returns when the name of a directory is on the medium.
    package static func synchronizeName(of path: String) throws(FileError) {
        let parent = FilePath.parent(of: path)
        do throws(FileError) {
            try FileDescriptor(opening: parent, flags: O_RDONLY | O_DIRECTORY).synchronize()
        } catch .notPermitted {
            // A parent may be writable but not readable. Then everything in the file system has to be synchronized.
            let directory = try FileDescriptor(opening: path, flags: O_RDONLY | O_DIRECTORY)
            let code = cfilesystem_synchronize_all(directory.number)
            guard code == 0 else { throw FileError(operation: "syncfs", path: path, code: code) }
        }
    }

    /// Looks at what stood where a directory was to be made: another directory is as good.
    private static func checkExisting(_ path: String) throws(FileError) {
        if isDirectory(path) { return }
        var status = stat()
        // Somebody has deleted it since.
        if lstat(path, &status) != 0, errno == ENOENT { throw .notFound(path: path) }
        throw .alreadyExists(path: path)
    }

    /// Whether there is a directory at the path, also through a symbolic link.
    package static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// The names in a directory but `.` and `..`, in the order of their bytes.
    package static func names(in path: String) throws(FileError) -> [String] {
        try names(in: path) { _, _ in true }
    }

    /// The names of the regular files in a directory, in the order of their bytes. Symbolic links are not followed.
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
        let found = PathText.withSystemPath(path, failure: nil) { opendir($0) }
        guard let directory = found else { throw FileError(operation: "opendir", path: path, code: errno) }
        defer { closedir(directory) }
        var names = NameList()
        while let entry = readdir(directory) {
            let type = Int(entry.pointee.d_type)
            withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                let name = UnsafeRawPointer(pointer).assumingMemoryBound(to: CChar.self)
                let bytes = UnsafeRawBufferPointer(start: name, count: strlen(name))
                guard !isSelfOrParent(bytes), isWanted(type, { PathText.text(of: bytes) }) else { return }
                names.append(bytes)
            }
        }
        return names.sorted()
    }

    private static func isSelfOrParent(_ name: UnsafeRawBufferPointer) -> Bool {
        name.count <= 2 && name.allSatisfy { $0 == UInt8(ascii: ".") }
    }
}

/// Names as bytes, one behind the other: a hundred thousand are collected and sorted without an object for each.
private struct NameList {
    private var bytes: [UInt8] = []
    private var places: [(start: Int, count: Int)] = []

    mutating func append(_ name: UnsafeRawBufferPointer) {
        places.append((bytes.count, name.count))
        bytes.append(contentsOf: name)
    }

    /// The names in the order of their bytes.
    func sorted() -> [String] {
        bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return [] }
            let order = places.sorted { one, other in
                let order = memcmp(base + one.start, base + other.start, min(one.count, other.count))
                return order == 0 ? one.count < other.count : order < 0
            }
            return order.map { place in
                let name = UnsafeRawBufferPointer(start: base + place.start, count: place.count)
                return PathText.text(of: name)
            }
        }
    }
}
