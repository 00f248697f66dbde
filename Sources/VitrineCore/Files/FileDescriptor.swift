#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// An open file, which is closed at deinitialization. It has the few calls this module needs and handles interruptions
/// and short counts.
package struct FileDescriptor: ~Copyable {
    /// The number of the descriptor.
    package let number: Int32
    /// The path of the opened file.
    package let path: String

    /// Opens a file. Child processes do not inherit it.
    package init(opening path: String, flags: Int32, mode: UInt32 = 0o666) throws(FileError) {
        var number: Int32
        repeat {
            number = open(path, flags | O_CLOEXEC, mode_t(truncatingIfNeeded: mode))
        } while number < 0 && errno == EINTR
        guard number >= 0 else { throw FileError(operation: "open", path: path, code: errno) }
        self.number = number
        self.path = path
    }

    deinit {
        if number >= 0 { close(number) }
    }

    /// Writes all of the bytes.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(FileError) {
        guard let base = bytes.baseAddress else { return }
        var offset = 0
        while offset < bytes.count {
            let count = systemWrite(number, bytes: base + offset, count: bytes.count - offset)
            if count > 0 {
                offset += count
            } else if count == 0 || errno != EINTR {
                throw FileError(operation: "write", path: path, code: count == 0 ? EIO : errno)
            }
        }
    }

    /// Reads up to the size of the buffer. Returns 0 at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(FileError) -> Int {
        while true {
            let count = systemRead(number, bytes: buffer.baseAddress, count: buffer.count)
            if count >= 0 { return count }
            guard errno == EINTR else { throw FileError(operation: "read", path: path, code: errno) }
        }
    }

    /// Returns the file's status.
    package func status() throws(FileError) -> stat {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw FileError(operation: "fstat", path: path, code: errno) }
        return status
    }

    /// Returns when the bytes are on the medium.
    package func synchronize() throws(FileError) {
        let code = synchronizationFailure()
        if code != 0 { throw FileError(operation: "fsync", path: path, code: code) }
    }

    /// Returns when the bytes are on the medium. The result is 0 or the `errno` of the failure.
    package func synchronizationFailure() -> Int32 {
        #if canImport(Darwin)
        // fsync only reaches the drive's cache there (fsync(2)). Not every file system has the full form.
        if fcntl(number, F_FULLFSYNC) == 0 { return 0 }
        #endif
        while fsync(number) != 0 {
            let code = errno
            // Some file systems cannot synchronize a directory; nothing more can be done for its entries.
            if code == EINVAL || code == ENOTSUP { return 0 }
            if code != EINTR { return code }
        }
        return 0
    }
}

// The methods above hide the C functions of the same names.
private func systemWrite(_ descriptor: Int32, bytes: UnsafeRawPointer, count: Int) -> Int {
    write(descriptor, bytes, count)
}

private func systemRead(_ descriptor: Int32, bytes: UnsafeMutableRawPointer?, count: Int) -> Int {
    read(descriptor, bytes, count)
}

extension FileDescriptor {
    /// Copies the permissions of a file that is to be replaced, and its owner as far as the process may set it.
    ///
    /// - Parameters:
    ///   - replaced: The status of the other file.
    ///   - path: The path for errors.
    package func takeOver(_ replaced: stat, named path: String) throws(FileError) {
        let own = try status()
        if own.st_uid != replaced.st_uid || own.st_gid != replaced.st_gid {
            // Only root may give files away. Where it is refused the file is the writer's, as with any editor.
            if fchown(number, replaced.st_uid, replaced.st_gid) != 0 { _ = errno }
        }
        let mode = replaced.st_mode & 0o7777
        guard own.st_mode & 0o7777 != mode || own.st_uid != replaced.st_uid else { return }
        guard fchmod(number, mode) == 0 else { throw FileError(operation: "fchmod", path: path, code: errno) }
    }
}

extension stat {
    /// The time of the last change of the content, independent of the platform's name of the field.
    package var modified: timespec {
        #if canImport(Darwin)
        st_mtimespec
        #else
        st_mtim
        #endif
    }
}

/// Reads whole files. Blocks: call it on a ``BlockingExecutor``.
package enum FileContents {
    /// Returns the bytes of a file, which is read to its end even if it reports a smaller size, as files in `/proc` do.
    ///
    /// - Parameters:
    ///   - path: The file. Symbolic links are followed.
    ///   - limit: The maximum number of bytes. Default: no limit.
    /// - Throws: ``FileError/tooLarge(path:limit:)`` above the limit, and other errors of reading.
    package static func read(_ path: String, limit: Int = .max) throws(FileError) -> [UInt8] {
        // Without blocking, so that a FIFO without a writer cannot hang the caller.
        let file = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        let claimed = Int(try file.status().st_size)
        guard claimed <= limit else { throw .tooLarge(path: path, limit: limit) }
        // One byte more than claimed, so that the first read also sees the end.
        var bytes = [UInt8](repeating: 0, count: max(4096, claimed &+ 1))
        var count = 0
        while true {
            if count == bytes.count { bytes.append(contentsOf: repeatElement(0, count: bytes.count)) }
            let read = try fill(&bytes, from: count, with: file)
            if read == 0 { break }
            count += read
            guard count <= limit else { throw .tooLarge(path: path, limit: limit) }
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    private static func fill(
        _ bytes: inout [UInt8], from start: Int, with file: borrowing FileDescriptor
    ) throws(FileError) -> Int {
        let result = bytes.withUnsafeMutableBytes { buffer -> Result<Int, FileError> in
            do throws(FileError) {
                return .success(try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[start...])))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
