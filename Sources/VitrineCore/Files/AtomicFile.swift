#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Writes files so that nobody ever sees a part of one: into a temporary file beside the target, then by a rename
/// (R42).
///
/// Whatever goes wrong, the target is either what it was or what it was to become, and the temporary file is removed.
/// Only a crash can leave one behind; ``removeStaleTemporaries(in:olderThan:)`` finds those.
///
/// - A file that is replaced passes its permissions on, and its owner as far as the process may set it.
/// - A **symbolic link** at the target stays: the file it points to is replaced, or made if the link dangles. With
///   ``Options/doNotReplace`` a link counts as something that is there.
///
/// All calls block; call them on a ``BlockingExecutor``, or use the asynchronous form.
public enum AtomicFile {
    /// How to write.
    public struct Options: OptionSet, Sendable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Return only when file and directory entry are on the medium. For stores; caches do without (0.1 to
        /// several milliseconds per file).
        public static let durable = Options(rawValue: 1)
        /// Fail with ``FileError/alreadyExists(path:)`` if there is anything at the target, decided in one step
        /// even among several processes.
        public static let doNotReplace = Options(rawValue: 2)
    }

    /// Bytes written between two looks at the cancellation token.
    private static let chunk = 1 << 20

    /// Writes a whole file.
    ///
    /// - Parameters:
    ///   - bytes: The contents.
    ///   - path: The target. Its directory must exist.
    ///   - options: Durability, and whether an existing file may be replaced. Default: not durable, replacing.
    ///   - permissions: Mode of the file; nil for that of the file replaced, else 0666 less the umask.
    ///   - cancellation: Polled at every mebibyte.
    /// - Throws: Why it could not be written, or ``FileError/cancelled(path:)``.
    public static func write(
        _ bytes: UnsafeRawBufferPointer, to path: String, options: Options = [], permissions: UInt32? = nil,
        cancellation: CancellationToken? = nil
    ) throws(FileError) {
        let writer = try AtomicFileWriter(path: path, options: options, permissions: permissions)
        var offset = 0
        while offset < bytes.count {
            if let cancellation, cancellation.isCancelled { throw .cancelled(path: path) }
            let end = min(bytes.count, offset + chunk)
            try writer.write(UnsafeRawBufferPointer(rebasing: bytes[offset..<end]))
            offset = end
        }
        if let cancellation, cancellation.isCancelled { throw .cancelled(path: path) }
        try writer.commit()
    }

    /// Writes a whole file.
    public static func write(
        _ bytes: [UInt8], to path: String, options: Options = [], permissions: UInt32? = nil,
        cancellation: CancellationToken? = nil
    ) throws(FileError) {
        let result = bytes.withUnsafeBytes { bytes -> Result<Void, FileError> in
            do throws(FileError) {
                return .success(
                    try write(
                        bytes, to: path, options: options, permissions: permissions, cancellation: cancellation))
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    /// Writes a whole file on an executor's threads. Cancelling the task removes what was written so far and throws
    /// ``FileError/cancelled(path:)``.
    public static func write(
        _ bytes: [UInt8], to path: String, options: Options = [], permissions: UInt32? = nil,
        on executor: BlockingExecutor
    ) async throws(FileError) {
        let token = CancellationToken()
        let result = await withTaskCancellationHandler {
            await executor.run { () -> Result<Void, FileError> in
                Result { () throws(FileError) in
                    try write(bytes, to: path, options: options, permissions: permissions, cancellation: token)
                }
            }
        } onCancel: {
            token.cancel()
        }
        try result.get()
    }

    // MARK: Temporary files

    /// Begins the name of every temporary file. No ``FileName/escaped(_:)`` name has `%` before anything but two
    /// hexadecimal digits, so a key can never be taken for one.
    package static let temporaryPrefix = ".%tmp-"

    /// Removes the temporary files that crashed writers left in a directory (not below it).
    ///
    /// - Parameters:
    ///   - directory: Where to look.
    ///   - age: Files changed since then are left alone. Files still being written are never touched, in any process:
    ///     writers hold a lock on them.
    /// - Returns: How many were removed.
    @discardableResult
    public static func removeStaleTemporaries(
        in directory: String, olderThan age: Duration = .seconds(60)
    ) throws(FileError) -> Int {
        var removed = 0
        // Not by time(2), whose clock may be behind that of the files by a tick.
        let limit = Int((WallClock.system.now - age).components.seconds)
        for name in try Directory.names(in: directory) where name.hasPrefix(temporaryPrefix) {
            if removeIfStale(FilePath.join(directory, name), changedBefore: limit) { removed += 1 }
        }
        return removed
    }

    private static func removeIfStale(_ path: String, changedBefore limit: Int) -> Bool {
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
        guard let file = try? FileDescriptor(opening: path, flags: flags), let status = try? file.status(),
            status.st_mode & S_IFMT == S_IFREG, Int(status.modified.tv_sec) <= limit,
            flock(file.number, LOCK_EX | LOCK_NB) == 0
        else { return false }
        return unlink(path) == 0
    }
}
