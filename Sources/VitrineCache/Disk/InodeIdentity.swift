import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Tells one file from another, whatever its name: by its number on its device.
package struct InodeIdentity: Hashable {
    private let device: UInt64
    private let file: UInt64

    /// The identity of a file whose status is known.
    package init(_ status: stat) {
        device = UInt64(truncatingIfNeeded: status.st_dev)
        file = UInt64(truncatingIfNeeded: status.st_ino)
    }

    /// The identity of the file at a path; nil if there is none, or if it cannot be asked.
    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }
}
