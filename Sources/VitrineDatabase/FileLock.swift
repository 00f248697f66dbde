package import VitrineCore

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
package final class FileLock: Sendable {
    private let descriptor: FileDescriptor
    private let path: String

    /// Takes the lock, creating the file if it is missing.
    ///
    /// - Returns: nil if the lock is taken.
    package init?(path: String) throws(FileError) {
        let descriptor = try FileDescriptor(opening: path, flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
        guard flock(descriptor.number, LOCK_EX | LOCK_NB) == 0 else {
            if errno == EWOULDBLOCK { return nil }
            throw FileError(operation: "flock", path: path, code: errno)
        }
        self.descriptor = descriptor
        self.path = path
    }

    /// Whether the file is still at its path, so that others respect the lock. True if the system cannot tell.
    package var isCurrent: Bool {
        guard let status = try? descriptor.status() else { return true }
        return !FileState(path: path).isLoss(of: InodeIdentity(status))
    }

    deinit { release() }

    /// Releases the lock at once.
    package func release() { flock(descriptor.number, LOCK_UN) }
}
