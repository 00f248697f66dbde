import VitrineCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A new directory that only this user can read, removed with the object.
///
/// The directory is locked (flock(2)) as long as the process lives. ``sweep(_:)`` removes directories without a lock,
/// which killed processes have left.
package final class TemporaryProfile {
    /// The prefix of the names. Versions that did not lock theirs used another prefix.
    private static let prefix = "vitrine-web-"
    private static let isSwept = Locked(false)

    package let path: String
    private let lock: Int32

    /// Makes a directory in `parent`. The first call of a process for the default parent sweeps it.
    ///
    /// - Parameter parent: Default: `TMPDIR`, or `/tmp` if that is unset or not UTF-8, which browsers require.
    package init(in parent: String? = nil) throws(FileError) {
        let directory = parent ?? Self.defaultParent
        let isFirst = Self.isSwept.withLock { isSwept in
            defer { isSwept = true }
            return !isSwept
        }
        if isFirst { Self.sweep(directory) }
        var code: Int32 = EAGAIN
        for _ in 0..<16 {
            var template = Array(FilePath.join(directory, Self.prefix + "XXXXXX").utf8CString)
            let isMade = template.withUnsafeMutableBufferPointer { $0.baseAddress.flatMap { mkdtemp($0) } != nil }
            let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard isMade else { throw FileError(operation: "mkdtemp", path: path, code: errno) }
            // Another process that sweeps may have been faster than the lock.
            guard let lock = Self.lock(path) else {
                code = errno
                continue
            }
            self.path = path
            self.lock = lock
            return
        }
        throw FileError(operation: "flock", path: directory, code: code)
    }

    deinit {
        Self.remove(path)
        close(lock)
    }

    private static var defaultParent: String {
        let named = getenv("TMPDIR").flatMap { String(validatingCString: $0) } ?? ""
        return named.isEmpty ? "/tmp" : named
    }

    /// Removes the directories of processes that have ended without doing so.
    package static func sweep(_ parent: String) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? [] where name.hasPrefix(prefix) {
            let path = FilePath.join(parent, name)
            guard let lock = lock(path) else { continue }
            remove(path)
            close(lock)
        }
    }

    /// Locks a directory of this user.
    ///
    /// - Returns: The descriptor that holds the lock; nil when somebody else has it, or the directory is not there.
    private static func lock(_ path: String) -> Int32? {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        var (opened, named) = (stat(), stat())
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, fstat(descriptor, &opened) == 0, lstat(path, &named) == 0,
            opened.st_ino == named.st_ino, opened.st_dev == named.st_dev, opened.st_uid == geteuid()
        else {
            let code = errno
            close(descriptor)
            errno = code
            return nil
        }
        return descriptor
    }

    /// Removes a directory that killed processes may still write to.
    static func remove(_ path: String) {
        for _ in 0..<20 {
            try? FileManager.default.removeItem(atPath: path)
            guard access(path, F_OK) == 0 else { return }
            usleep(5_000)
        }
    }
}
