import CVitrineFileSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Writes one file piece by piece; it appears at its path, whole, with ``commit()``.
///
/// A writer that goes without a commit removes what it wrote. Not for use from several threads at once. All calls
/// block.
public final class AtomicFileWriter {
    /// Where the file will be, symbolic links resolved.
    public let path: String
    /// How many bytes have been written.
    public private(set) var count = 0

    /// The path that was asked for, which errors name.
    private let asked: String
    private let options: AtomicFile.Options
    /// Where the bytes are until then, for who writes them by other means.
    package let temporary: String
    private var file: OpenFile?
    private var isOpen = true

    /// A descriptor that can be given up before the writer.
    private final class OpenFile {
        let descriptor: FileDescriptor
        init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }
    }

    /// Makes the temporary file.
    ///
    /// - Parameters: As of ``AtomicFile/write(_:to:options:permissions:cancellation:)``.
    public convenience init(
        path: String, options: AtomicFile.Options = [], permissions: UInt32? = nil
    ) throws(FileError) {
        try self.init(path: path, options: options, permissions: permissions, followsLinks: true)
    }

    /// Makes the temporary file.
    ///
    /// - Parameters:
    ///   - followsLinks: Whether a symbolic link at the path stays, and what it points to is replaced.
    ///   - group: Protects the temporary file after ``release()``, as long as it exists.
    package init(
        path: String, options: AtomicFile.Options, permissions: UInt32? = nil, followsLinks: Bool,
        group: TemporaryGroup? = nil
    ) throws(FileError) {
        let replaces = !options.contains(.doNotReplace)
        let target = replaces && followsLinks ? try SymbolicLink.target(of: path) : path
        var replaced = stat()
        let isThere = replaces && (followsLinks ? stat(target, &replaced) : lstat(target, &replaced)) == 0
        let isLink = isThere && replaced.st_mode & S_IFMT == S_IFLNK
        if isThere, replaced.st_mode & S_IFMT == S_IFDIR {
            throw .system(operation: "rename", path: path, code: EISDIR)
        }
        self.path = target
        self.options = options
        asked = path
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
        if isThere, !isLink { try open.descriptor.takeOver(replaced, named: path) }
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
    public func write(_ bytes: UnsafeRawBufferPointer) throws(FileError) {
        precondition(isOpen, "An AtomicFileWriter cannot write after commit() or discard().")
        do throws(FileError) {
            try open.descriptor.write(bytes)
        } catch {
            discard()
            throw error.about(asked)
        }
        count += bytes.count
    }

    /// Appends bytes.
    public func write(_ bytes: [UInt8]) throws(FileError) {
        let result = bytes.withUnsafeBytes { bytes -> Result<Void, FileError> in
            do throws(FileError) { return .success(try write(bytes)) } catch { return .failure(error) }
        }
        try result.get()
    }

    /// Appends the bytes of a file, which share its blocks if nothing was written yet and the file system can do that.
    ///
    /// - Throws: ``FileError/untrusted(path:reason:)`` if it is no regular file, and others.
    package func append(contentsOf path: String, cancellation: CancellationToken? = nil) throws(FileError) {
        let source = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        let status = try source.status()
        guard status.st_mode & S_IFMT == S_IFREG else { throw .untrusted(path: path, reason: "it is no regular file") }
        if count == 0, cfilesystem_clone(source.number, number) == 0 {
            do throws(FileError) {
                count = Int(try open.descriptor.status().st_size)
            } catch {
                throw error.about(asked)
            }
            return
        }
        let size = 1 << 18
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            if let cancellation, cancellation.isCancelled { throw .cancelled(path: asked) }
            let read = try source.read(into: buffer)
            if read == 0 { return }
            try write(UnsafeRawBufferPointer(rebasing: buffer[..<read]))
        }
    }

    /// Makes the file appear at its path.
    ///
    /// - Throws: ``FileError/notDurable(path:code:)`` if the file is in its place but its directory could not be
    ///   synchronized. After any other error the path is as it was and the temporary file is removed.
    public func commit() throws(FileError) {
        precondition(isOpen, "An AtomicFileWriter commits once.")
        defer { discard() }
        guard options.contains(.durable) else { return try place() }
        // Opened before the rename: a lack of descriptors or of permission must not be found after it.
        let directory: FileDescriptor
        do throws(FileError) {
            directory = try FileDescriptor(opening: FilePath.parent(of: path), flags: O_RDONLY | O_DIRECTORY)
        } catch {
            throw error.about(asked)
        }
        try synchronize()
        try place()
        let code = directory.synchronizationFailure()
        if code != 0 { throw .notDurable(path: asked, code: code) }
    }

    // MARK: Steps of a commit, for those who commit several files together

    /// Gives the file a time of change instead of the time at which it was written.
    package func setModified(_ time: Duration) throws(FileError) {
        let (seconds, attoseconds) = time.components
        let moment = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        guard [moment, moment].withUnsafeBufferPointer({ futimens(number, $0.baseAddress) }) == 0 else {
            throw FileError(operation: "futimens", path: asked, code: errno)
        }
    }

    /// Closes the file, which can still be placed, so that many can be written before any is placed. Only its
    /// ``TemporaryGroup`` keeps it from being taken for a dead writer's then.
    package func release() { file = nil }

    /// Returns when the bytes are on the medium; the path is as it was.
    package func synchronize() throws(FileError) {
        do throws(FileError) { try open.descriptor.synchronize() } catch { throw error.about(asked) }
    }

    /// Makes the file appear at its path; whether that outlives a power cut is not known until the directory has been
    /// synchronized.
    package func place() throws(FileError) {
        let code: Int32
        if options.contains(.doNotReplace) {
            // Fails if there is anything at the path, in one step.
            code = cfilesystem_rename_exclusive(temporary, path)
        } else {
            code = rename(temporary, path) == 0 ? 0 : errno
        }
        guard code == 0 else { throw FileError(operation: "rename", path: asked, code: code) }
        isOpen = false
        ActiveTemporaries.forget(temporary)
    }

    /// Gives the file up. Does nothing after a commit.
    public func discard() {
        guard isOpen else { return }
        isOpen = false
        unlink(temporary)
        ActiveTemporaries.forget(temporary)
    }
}
