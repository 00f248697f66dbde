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
/// After an error it is what it was, except after ``FileError/notDurable(path:code:)``: then the new file is in its
/// place, and only a power cut can take it back. Errors name the path that was asked for.
///
/// Only a crash can leave a temporary file behind; ``removeStaleTemporaries(in:olderThan:)`` finds those.
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
    /// - Throws: Why it could not be written, or ``FileError/cancelled(path:)``; the target is as it was. Or
    ///   ``FileError/notDurable(path:code:)``; the target is written.
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
}
