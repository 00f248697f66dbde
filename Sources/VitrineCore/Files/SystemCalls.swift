import CVitrineFileSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

// Overloads of the system's functions for paths as text. Swift would pass the UTF-8 of the text to the C functions.
// These overloads are preferred wherever this module is imported, and pass the bytes that the text represents (see
// PathText). A text with a zero byte fails with EINVAL instead of leading to another file. Their parameters have no labels,
// as those of the system have none: with labels, calls would silently reach the functions of the system.

package func open(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
    PathText.withSystemPath(path, failure: -1) { open($0, flags, mode) }
}

// By fstatat(2), as the type of the same name is in the way.
@discardableResult
package func stat(_ path: String, _ status: UnsafeMutablePointer<stat>) -> Int32 {
    PathText.withSystemPath(path, failure: -1) { fstatat(AT_FDCWD, $0, status, 0) }
}

@discardableResult
package func lstat(_ path: String, _ status: UnsafeMutablePointer<stat>) -> Int32 {
    PathText.withSystemPath(path, failure: -1) { fstatat(AT_FDCWD, $0, status, AT_SYMLINK_NOFOLLOW) }
}

@discardableResult
package func access(_ path: String, _ mode: Int32) -> Int32 {
    PathText.withSystemPath(path, failure: -1) { access($0, mode) }
}

@discardableResult
package func unlink(_ path: String) -> Int32 {
    PathText.withSystemPath(path, failure: -1) { unlink($0) }
}

@discardableResult
package func rmdir(_ path: String) -> Int32 {
    PathText.withSystemPath(path, failure: -1) { rmdir($0) }
}

@discardableResult
package func mkdir(_ path: String, _ mode: mode_t) -> Int32 {
    PathText.withSystemPath(path, failure: -1) { mkdir($0, mode) }
}

@discardableResult
package func readlink(_ path: String, _ target: UnsafeMutablePointer<CChar>, _ count: Int) -> Int {
    PathText.withSystemPath(path, failure: -1) { readlink($0, target, count) }
}

@discardableResult
package func symlink(_ target: String, _ path: String) -> Int32 {
    PathText.withSystemPath(target, failure: -1) { target in
        PathText.withSystemPath(path, failure: -1) { symlink(target, $0) }
    }
}

@discardableResult
package func rename(_ path: String, _ target: String) -> Int32 {
    PathText.withSystemPath(path, failure: -1) { path in
        PathText.withSystemPath(target, failure: -1) { rename(path, $0) }
    }
}

package func realpath(
    _ path: String, _ buffer: UnsafeMutablePointer<CChar>?
) -> UnsafeMutablePointer<CChar>? {
    PathText.withSystemPath(path, failure: nil) { realpath($0, buffer) }
}

/// Returns the text as a C string, up to a zero byte, for arguments of programs. The caller deallocates it by free(3).
package func strdup(_ text: String) -> UnsafeMutablePointer<CChar>? {
    (PathText.bytes(of: text).map { CChar(truncatingIfNeeded: $0) } + [0]).withUnsafeBufferPointer {
        $0.baseAddress.flatMap { strdup($0) }
    }
}

/// - Returns: 0, or the `errno`.
@discardableResult
package func cfilesystem_rename_exclusive(_ path: String, _ target: String) -> Int32 {
    PathText.withSystemPath(path, failure: EINVAL) { path in
        PathText.withSystemPath(target, failure: EINVAL) { cfilesystem_rename_exclusive(path, $0) }
    }
}

#if !canImport(Darwin)
@discardableResult
package func inotify_add_watch(_ descriptor: Int32, _ path: String, _ mask: UInt32) -> Int32 {
    PathText.withSystemPath(path, failure: -1) { inotify_add_watch(descriptor, $0, mask) }
}
#endif

/// Bytes of files that the system has in memory.
package enum ResidentBytes {
    /// Reads bytes without waiting for the disk.
    ///
    /// - Returns: How many there are, less than wanted only at the end of the file; nil if some are not in memory, or
    ///   if the system cannot tell.
    package static func read(_ descriptor: Int32, into target: UnsafeMutableRawBufferPointer, at offset: Int) -> Int? {
        let count = cfilesystem_read_resident(descriptor, target.baseAddress, target.count, Int64(offset))
        return count < 0 ? nil : Int(count)
    }
}

/// Parts of files that take no space on the disk.
package enum FileHole {
    /// Gives the space of a part of a file back to the file system. The part then reads as zeros.
    ///
    /// - Returns: Whether the file system can do that.
    package static func punch(_ descriptor: Int32, at offset: Int, count: Int) -> Bool {
        cfilesystem_punch(descriptor, Int64(offset), Int64(count)) == 0
    }
}
