import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// An exclusive lock on a file, which other processes and other objects of this one respect (flock(2)).
///
/// A child has all descriptors of this process between fork and exec. The lock is therefore released before its
/// descriptor is closed, and not by closing it.
struct FileLock: ~Copyable {
    private let descriptor: FileDescriptor

    /// Takes the lock, creating the file if it is missing.
    ///
    /// - Returns: nil if the lock is taken.
    init?(path: String) throws(FileError) {
        let descriptor = try FileDescriptor(opening: path, flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
        guard flock(descriptor.number, LOCK_EX | LOCK_NB) == 0 else {
            if errno == EWOULDBLOCK { return nil }
            throw FileError(operation: "flock", path: path, code: errno)
        }
        self.descriptor = descriptor
    }

    deinit { release() }

    /// Releases the lock at once.
    func release() { flock(descriptor.number, LOCK_UN) }
}
