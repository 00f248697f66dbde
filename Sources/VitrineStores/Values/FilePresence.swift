#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore
import VitrineDatabase

/// Shows other processes that this one uses a file, by a shared lock on another file (flock(2)).
///
/// A file that is in use must not be replaced: its users would write into a file that no new process reads.
final class FilePresence: Sendable {
    private let descriptor: FileDescriptor

    /// Waits for a replacement in progress. Blocks.
    init(path: String) throws(FileError) {
        descriptor = try FileDescriptor(opening: path, flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
        while flock(descriptor.number, LOCK_SH) != 0 {
            let code = errno
            guard code == EINTR else { throw FileError(operation: "flock", path: path, code: code) }
        }
    }

    // A child between fork and exec has the descriptor, too, so closing it does not release the lock.
    deinit { end() }

    /// Ends the use of the file.
    func end() { flock(descriptor.number, LOCK_UN) }

    /// Runs a body while no process uses the file.
    ///
    /// - Returns: nil if a process uses it.
    static func whileAlone<Result>(at path: String, _ body: () throws -> Result?) throws -> Result? {
        guard let lock = try FileLock(path: path) else { return nil }
        defer { lock.release() }
        return try body()
    }
}
