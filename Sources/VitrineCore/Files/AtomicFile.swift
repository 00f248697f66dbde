import CVitrineFileSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Writes whole files atomically: into a temporary file beside the target, which then replaces it by a rename.
///
/// No process ever sees a part of a file. After an error the target is unchanged and the temporary file is removed,
/// with one exception: after ``FileError/notDurable(path:code:)`` the new file is in place, but a power cut may undo
/// the change. Errors name the path of the call.
///
/// Only a crash can leave a temporary file behind; stores remove such files when they are maintained.
///
/// - A replaced file passes on its permissions, and its owner as far as the process may set it.
/// - A **symbolic link** at the target stays: the file it points to is replaced, or created if the link dangles.
///   Without `replacing`, a link counts as an existing file.
/// - A **FIFO or character device** at the target stays, and the bytes are written into it. A directory, socket or block
///   device is refused.
public enum AtomicFile {
    /// Options for writing a file.
    package struct Options: OptionSet, Sendable {
        /// The options as bits.
        package let rawValue: Int
        /// Creates options from bits.
        package init(rawValue: Int) { self.rawValue = rawValue }

        /// The writer returns only when the file and its directory entry are on the medium, which takes 0.1 to several
        /// milliseconds.
        ///
        /// Stores use this option; caches do not.
        package static let durable = Options(rawValue: 1)
        /// Fails with ``FileError/alreadyExists(path:)`` if anything exists at the target.
        ///
        /// The check and the write are one step, also among several processes.
        package static let doNotReplace = Options(rawValue: 2)
        /// Replaces a symbolic link, a FIFO or a device at the target instead of writing through it, for directories that
        /// belong to Vitrine, where users have no reason to put such. Opening a FIFO waits for a reader.
        package static let replacesSpecialFiles = Options(rawValue: 4)
    }

    /// The number of bytes between two polls of the cancellation token.
    private static let chunk = 1 << 20

    /// Writes a whole file, as the form for arrays does.
    package static func write(
        _ bytes: UnsafeRawBufferPointer, to path: String, options: Options, permissions: UInt32? = nil,
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

    /// Writes a whole file. Blocks the calling thread.
    ///
    /// - Parameters:
    ///   - bytes: The contents.
    ///   - path: The target. Its directory must exist.
    ///   - durability: Whether the call returns only when the file is on the medium. Default: it does not wait.
    ///   - replacing: Whether an existing file is replaced. If not, ``FileError/alreadyExists(path:)`` is thrown;
    ///     check and write are one step, also among several processes.
    ///   - permissions: The mode of the file. Default: the mode of the replaced file, or 0666 less the umask.
    ///   - cancellation: Polled at every mebibyte.
    /// - Throws: ``FileError`` if the file was not written or the call was cancelled. The target is then unchanged,
    ///   except after ``FileError/notDurable(path:code:)``.
    public static func write(
        _ bytes: [UInt8], to path: String, durability: Durability = .relaxed, replacing: Bool = true,
        permissions: UInt32? = nil, cancellation: CancellationToken? = nil
    ) throws(FileError) {
        var options: Options = durability == .full ? .durable : []
        if !replacing { options.insert(.doNotReplace) }
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

    /// Writes a whole file on a thread of an executor. Cancelling the task leaves the target unchanged.
    package static func write(
        _ bytes: [UInt8], to path: String, on executor: BlockingExecutor
    ) async throws(FileError) {
        let token = CancellationToken()
        let result = await withTaskCancellationHandler {
            await executor.run { () -> Result<Void, FileError> in
                Result { () throws(FileError) in try write(bytes, to: path, cancellation: token) }
            }
        } onCancel: {
            token.cancel()
        }
        try result.get()
    }
}

/// The item at the path of an output, by the one rule for everything that writes files.
///
/// A link stays, and the file it points to is replaced. A FIFO or character device is written into. Directories, sockets
/// and block devices are refused.
package enum ReplacedItem {
    /// Nothing, or a link that is to be replaced itself. The file goes to this path, behind all links.
    case nothing(String)
    /// A file at this path, behind all links, with its status.
    case file(String, stat)
    /// A FIFO or a character device.
    case stream

    /// Returns the item at a path.
    ///
    /// - Parameters:
    ///   - path: The path of the output.
    ///   - followsLinks: Whether a symbolic link, a FIFO or a device at the path stays, and is written into. Otherwise it
    ///     is replaced, with any target.
    /// - Throws: ``FileError`` for a directory, a socket or a block device.
    package static func at(_ path: String, followsLinks: Bool = true) throws(FileError) -> ReplacedItem {
        var status = stat()
        // Through all links, as what /dev/stdout leads to has no path of its own.
        let isThere = (followsLinks ? stat(path, &status) : lstat(path, &status)) == 0
        switch isThere ? status.st_mode & S_IFMT : S_IFLNK {
        case S_IFDIR: throw .system(operation: "rename", path: path, code: EISDIR)
        case S_IFSOCK: throw .untrusted(path: path, reason: "it is a socket, which cannot be written as a file")
        case S_IFBLK: throw .untrusted(path: path, reason: "it is a block device, which is never overwritten")
        case S_IFIFO, S_IFCHR: return followsLinks ? .stream : .nothing(path)
        case S_IFLNK: return .nothing(followsLinks ? try SymbolicLink.target(of: path) : path)
        default: return .file(followsLinks ? try SymbolicLink.target(of: path) : path, status)
        }
    }
}

/// Writes one file in pieces. The whole file appears at its path with ``commit()``.
///
/// A writer that is deinitialized without a commit removes its temporary file. It must not be used from several threads
/// at once. All calls block.
package final class AtomicFileWriter {
    /// The path of the file, with symbolic links resolved.
    package let path: String
    /// The number of bytes written so far.
    package private(set) var count = 0

    /// The path of the call, which errors name.
    private let requestedPath: String
    private let options: AtomicFile.Options
    /// The path of the temporary file, for callers that write its bytes by other means.
    package let temporary: String
    private var file: OpenFile?
    private var isOpen = true
    /// Whether the bytes go into a FIFO or a character device that is at the path already.
    private let isDirect: Bool

    /// A descriptor that can be closed before the writer is deinitialized.
    private final class OpenFile {
        let descriptor: FileDescriptor
        init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }
    }

    /// Creates the temporary file. The parameters are those of
    /// ``AtomicFile/write(_:to:durability:replacing:permissions:cancellation:)``.
    package convenience init(
        path: String, options: AtomicFile.Options = [], permissions: UInt32? = nil
    ) throws(FileError) {
        try self.init(path: path, options: options, permissions: permissions, group: nil)
    }

    /// Creates the temporary file.
    ///
    /// - Parameters:
    ///   - group: Protects the temporary file after ``release()``, as long as the group exists.
    package init(
        path: String, options: AtomicFile.Options, permissions: UInt32? = nil, group: TemporaryGroup?
    ) throws(FileError) {
        let replaces = !options.contains(.doNotReplace)
        let followsLinks = !options.contains(.replacesSpecialFiles)
        let target: String
        self.options = options
        requestedPath = path
        let replaced: stat?
        switch replaces ? try ReplacedItem.at(path, followsLinks: followsLinks) : .nothing(path) {
        case .stream:
            isDirect = true
            self.path = path
            temporary = path
            file = OpenFile(try FileDescriptor(opening: path, flags: O_WRONLY | O_NOCTTY))
            return
        case .nothing(let place): (target, replaced) = (place, nil)
        case .file(let place, let status): (target, replaced) = (place, status)
        }
        isDirect = false
        self.path = target
        let prefix = group?.memberPrefix ?? "\(AtomicFile.temporaryPrefix)\(AtomicFile.TemporaryKind.locked.rawValue)"
        let directory = FilePath.parent(of: target)
        let descriptor: FileDescriptor
        do throws(FileError) {
            descriptor = try AtomicFile.createLocked {
                FilePath.join(directory, prefix + AtomicFile.randomSuffix())
            }
        } catch {
            // The caller knows the target, not the temporary name.
            throw error.about(path)
        }
        temporary = descriptor.path
        file = OpenFile(descriptor)
        if let replaced { try open.descriptor.takeOver(replaced, named: path) }
        if let permissions, fchmod(number, mode_t(truncatingIfNeeded: permissions & 0o7777)) != 0 {
            throw FileError(operation: "fchmod", path: path, code: errno)
        }
    }

    deinit {
        discard()
    }

    private var open: OpenFile {
        guard let file else { preconditionFailure("An AtomicFileWriter cannot change a file that it released.") }
        return file
    }

    private var number: Int32 { open.descriptor.number }

    /// Appends bytes.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(FileError) {
        precondition(isOpen, "An AtomicFileWriter cannot write after commit() or discard().")
        do throws(FileError) {
            try open.descriptor.write(bytes)
        } catch {
            discard()
            throw error.about(requestedPath)
        }
        count += bytes.count
    }

    /// Appends bytes.
    package func write(_ bytes: [UInt8]) throws(FileError) {
        let result = bytes.withUnsafeBytes { bytes -> Result<Void, FileError> in
            do throws(FileError) { return .success(try write(bytes)) } catch { return .failure(error) }
        }
        try result.get()
    }

    /// Appends the bytes of a file. They share its blocks if the file system supports that and no bytes were written
    /// before.
    ///
    /// - Throws: ``FileError/untrusted(path:reason:)`` if the source is not a regular file, and other errors.
    package func append(contentsOf path: String, cancellation: CancellationToken? = nil) throws(FileError) {
        let source = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        let status = try source.status()
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw .untrusted(path: path, reason: "it is not a regular file")
        }
        if count == 0, cfilesystem_clone(source.number, number) == 0 {
            do throws(FileError) {
                count = Int(try open.descriptor.status().st_size)
            } catch {
                throw error.about(requestedPath)
            }
            return
        }
        let size = 1 << 18
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            if let cancellation, cancellation.isCancelled { throw .cancelled(path: requestedPath) }
            let read = try source.read(into: buffer)
            if read == 0 { return }
            try write(UnsafeRawBufferPointer(rebasing: buffer[..<read]))
        }
    }

    /// Moves the file to its path.
    ///
    /// - Throws: ``FileError/notDurable(path:code:)`` if the file is in place but its directory could not be
    ///   synchronized. After any other error the path is unchanged and the temporary file is removed.
    package func commit() throws(FileError) {
        precondition(isOpen, "An AtomicFileWriter commits once.")
        defer { discard() }
        guard options.contains(.durable), !isDirect else { return try place() }
        do throws(FileError) {
            try FileRename.durably(at: path) { () throws(FileError) in
                try synchronize()
                try place()
            }
        } catch {
            throw error.about(requestedPath)
        }
    }

    // MARK: Steps of a commit, for callers that commit several files together

    /// Sets the modification time of the file, instead of the time of writing.
    package func setModified(_ time: Duration) throws(FileError) {
        if isDirect { return }
        let (seconds, attoseconds) = time.components
        let moment = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        guard [moment, moment].withUnsafeBufferPointer({ futimens(number, $0.baseAddress) }) == 0 else {
            throw FileError(operation: "futimens", path: requestedPath, code: errno)
        }
    }

    /// Closes the file, which can still be placed, so that many files can be written before any is placed.
    ///
    /// From then on only its ``TemporaryGroup`` protects the temporary file.
    package func release() { file = nil }

    /// Returns when the bytes are on the medium. The path is unchanged.
    package func synchronize() throws(FileError) {
        do throws(FileError) { try open.descriptor.synchronize() } catch { throw error.about(requestedPath) }
    }

    /// Moves the file to its path. The change is durable only after the directory has been synchronized.
    package func place() throws(FileError) {
        if isDirect {
            isOpen = false
            return
        }
        let code: Int32
        if options.contains(.doNotReplace) {
            // Fails if there is anything at the path, in one step.
            code = cfilesystem_rename_exclusive(temporary, path)
        } else {
            code = rename(temporary, path) == 0 ? 0 : errno
        }
        guard code == 0 else { throw FileError(operation: "rename", path: requestedPath, code: code) }
        isOpen = false
        ActiveTemporaries.forget(temporary)
    }

    /// Removes the temporary file. Does nothing after a commit.
    package func discard() {
        guard isOpen else { return }
        isOpen = false
        if isDirect { return }
        unlink(temporary)
        ActiveTemporaries.forget(temporary)
    }
}
