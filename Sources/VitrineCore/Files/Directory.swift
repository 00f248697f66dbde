import CVitrineFileSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Creates and reads directories.
package enum Directory {
    /// Creates a directory and its missing parents. An existing directory is no error, even if another process creates
    /// it at the same time.
    ///
    /// - Parameters:
    ///   - mode: The mode of every created directory, before the umask. Default: 0700, as the XDG base directory
    ///     specification (0.8, "Referencing this specification") asks.
    ///   - isDurable: Whether the call returns only when the names of all created directories are on the medium.
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
            // Only once: a process that keeps deleting the parent must not keep this call in a loop.
            if mkdir(path, mode_t(truncatingIfNeeded: mode)) != 0 {
                let code = errno
                guard code == EEXIST else { throw FileError(operation: "mkdir", path: path, code: code) }
                try checkExisting(path)
            }
            // Also of a directory that another process has just created, and may not have synchronized yet.
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

    /// Accepts an existing directory at a path that could not be created.
    private static func checkExisting(_ path: String) throws(FileError) {
        if isDirectory(path) { return }
        var status = stat()
        // It has been deleted since.
        if lstat(path, &status) != 0, errno == ENOENT { throw .notFound(path: path) }
        throw .alreadyExists(path: path)
    }

    /// Whether a directory exists at the path, also through a symbolic link.
    package static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Returns the names in a directory, except `.` and `..`, in the order of their bytes.
    package static func names(in path: String) throws(FileError) -> [String] {
        try names(in: path) { _, _ in true }
    }

    /// Returns the names in a directory that have a prefix, in the order of their bytes. The other names do not become
    /// texts.
    package static func names(in path: String, prefix: String) throws(FileError) -> [String] {
        try names(in: path) { _, name in name.starts(with: prefix.utf8) }
    }

    /// Returns the names of the regular files in a directory, in the order of their bytes. Links are not followed.
    package static func names(ofFilesIn path: String) throws(FileError) -> [String] {
        try names(in: path) { type, name in
            if type != DT_UNKNOWN { return type == DT_REG }
            // Some file systems do not report the type.
            var status = stat()
            return lstat(FilePath.join(path, PathText.text(of: name)), &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        }
    }

    private static func names(
        in path: String, where isWanted: (_ type: Int, _ name: UnsafeRawBufferPointer) -> Bool
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
                guard !isSelfOrParent(bytes), isWanted(type, bytes) else { return }
                names.append(bytes)
            }
        }
        return names.sorted()
    }

    private static func isSelfOrParent(_ name: UnsafeRawBufferPointer) -> Bool {
        name.count <= 2 && name.allSatisfy { $0 == UInt8(ascii: ".") }
    }
}

/// Names as bytes in one array: a hundred thousand are collected and sorted without an object for each.
private struct NameList {
    private var bytes: [UInt8] = []
    private var places: [(start: Int, count: Int)] = []

    mutating func append(_ name: UnsafeRawBufferPointer) {
        places.append((bytes.count, name.count))
        bytes.append(contentsOf: name)
    }

    /// Returns the names in the order of their bytes.
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

/// Lists a directory by name, size or date, in either direction.
///
/// ```swift
/// for (index, item) in try DirectoryListing.items(in: path, by: .modified, ascending: false).enumerated() {
///     print(index, item.name, item.size)
/// }
/// ```
public enum DirectoryListing {
    /// One file or directory.
    public struct Item: Sendable, Hashable {
        /// The name without the directory.
        ///
        /// Bytes that are not UTF-8 appear as private-use characters, U+10FE80 to U+10FEFF for 0x80 to 0xFF. All calls
        /// of this package convert them back.
        public let name: String
        /// The length of a file in bytes. For other items, the size that the file system reports.
        public let size: ByteCount
        /// The time of the last change of the content, since 1970.
        public let modified: Duration
        /// Whether it is a directory. Symbolic links are not followed.
        public let isDirectory: Bool
        /// Whether it is a regular file: neither a directory nor a link, a socket and the like.
        package let isRegularFile: Bool
    }

    /// The property to sort by. Items that are equal in it follow by name, in the order of its bytes.
    public enum Order: Sendable, Hashable, CaseIterable {
        /// By name, in the order of its bytes.
        case name
        /// By size.
        case size
        /// By time of change.
        case modified
    }

    /// Returns everything directly in a directory. Blocks. Items that disappear meanwhile are omitted.
    ///
    /// - Parameters:
    ///   - path: The directory.
    ///   - order: The property to sort by.
    ///   - ascending: Whether the smallest comes first.
    /// - Throws: ``FileError`` if the directory cannot be read.
    public static func items(
        in path: String, by order: Order = .name, ascending: Bool = true
    ) throws(FileError) -> [Item] {
        // In the order of the names, which is also that of items that are equal otherwise.
        let names = try Directory.names(in: path)
        let directory = try FileDescriptor(opening: path, flags: O_RDONLY | O_DIRECTORY)
        var items: [Item] = []
        items.reserveCapacity(names.count)
        for name in names {
            if let item = try item(name, in: directory) { items.append(item) }
        }
        switch order {
        case .name: break
        case .size: items = sorted(items) { $0.size }
        case .modified: items = sorted(items) { $0.modified }
        }
        return ascending ? items : items.reversed()
    }

    private static func sorted(_ items: [Item], by value: (Item) -> some Comparable) -> [Item] {
        items.enumerated().sorted { one, other in
            let (first, second) = (value(one.element), value(other.element))
            return first == second ? one.offset < other.offset : first < second
        }.map(\.element)
    }

    /// Looks an item up from the open directory, because the whole path may exceed the limit of the system.
    private static func item(
        _ name: String, in directory: borrowing FileDescriptor
    ) throws(FileError) -> Item? {
        var status = stat()
        let number = directory.number
        let result = PathText.withSystemPath(name, failure: -1) { fstatat(number, $0, &status, AT_SYMLINK_NOFOLLOW) }
        guard result == 0 else {
            let code = errno
            if code == ENOENT { return nil }
            throw FileError(operation: "fstatat", path: FilePath.join(directory.path, name), code: code)
        }
        let changed = status.modified
        return Item(
            name: name, size: ByteCount(Int(status.st_size)),
            modified: .seconds(Int64(changed.tv_sec)) + .nanoseconds(Int64(changed.tv_nsec)),
            isDirectory: status.st_mode & S_IFMT == S_IFDIR, isRegularFile: status.st_mode & S_IFMT == S_IFREG)
    }
}
