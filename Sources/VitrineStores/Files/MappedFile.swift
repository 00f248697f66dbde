import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A file's bytes in memory without being read: the system brings in what is looked at.
///
/// Stores replace files by renames, so the bytes stay those of the moment of mapping. A file that someone else cuts
/// short meanwhile ends the process with a bus error: map only what stores wrote.
public final class MappedFile: Sendable {
    /// How many bytes.
    public let count: Int
    // Readable until deinit, and never written.
    private let address: UInt

    /// Maps a file. Blocks shortly.
    public init(path: String) throws(FileError) {
        let file = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        let status = try file.status()
        guard status.st_mode & S_IFMT == S_IFREG else { throw .untrusted(path: path, reason: "it is no regular file") }
        count = Int(status.st_size)
        guard count > 0 else {
            address = 0
            return
        }
        guard let start = mmap(nil, count, PROT_READ, MAP_PRIVATE, file.number, 0), start != MAP_FAILED else {
            throw FileError(operation: "mmap", path: path, code: errno)
        }
        address = UInt(bitPattern: start)
    }

    deinit {
        if count > 0 { munmap(UnsafeMutableRawPointer(bitPattern: address), count) }
    }

    /// Calls a body with the bytes, which are there until it returns.
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        defer { withExtendedLifetime(self) {} }
        return try body(UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: address), count: count))
    }
}
