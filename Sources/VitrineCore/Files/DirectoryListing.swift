#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What is in a directory, in an order of one's choice (R43).
///
/// ```swift
/// try DirectoryListing.forEach(in: path, by: .modified, ascending: false) { item, index, stop in
///     print(index, item.name, item.size)
///     stop = index == 9
/// }
/// ```
public enum DirectoryListing {
    /// One file or directory.
    public struct Item: Sendable, Hashable {
        /// Without the directory. Bytes that are no UTF-8 are private characters, which all calls of this package
        /// turn back: U+10FE80 to U+10FEFF for the bytes 0x80 to 0xFF.
        public let name: String
        /// The length of a file in bytes; what the file system says for others.
        public let size: ByteCount
        /// When its content last changed, since 1970.
        public let modified: Duration
        /// Whether it is a directory. Symbolic links are not followed.
        public let isDirectory: Bool
        /// Whether it is a file with contents of its own: neither a directory nor a link, a socket and the like.
        public let isRegularFile: Bool
    }

    /// What to sort by. Items that are equal in it follow by name, in the order of its bytes.
    public enum Order: Sendable, Hashable, CaseIterable {
        case name, size, modified
    }

    /// Everything directly in a directory. Blocks. What disappears meanwhile is left out.
    ///
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

    /// Calls a body with each item and its index, until it sets `stop`. Blocks.
    ///
    /// - Throws: ``FileError`` if the directory cannot be read, and what the body throws.
    public static func forEach(
        in path: String, by order: Order = .name, ascending: Bool = true,
        _ body: (_ item: Item, _ index: Int, _ stop: inout Bool) throws -> Void
    ) throws {
        var stop = false
        for (index, item) in try items(in: path, by: order, ascending: ascending).enumerated() {
            try body(item, index, &stop)
            if stop { return }
        }
    }

    private static func sorted(_ items: [Item], by value: (Item) -> some Comparable) -> [Item] {
        items.enumerated().sorted { one, other in
            let (first, second) = (value(one.element), value(other.element))
            return first == second ? one.offset < other.offset : first < second
        }.map(\.element)
    }

    /// Looked up from the open directory, as the whole path may be longer than the system takes.
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
