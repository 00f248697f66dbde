#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// An open file, closed when it goes. The few calls this module needs, with interruptions and short counts handled.
package struct FileDescriptor: ~Copyable {
    /// The system's number for it.
    package let number: Int32
    /// What was opened.
    package let path: String

    /// Opens a file; never passed on to child processes.
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
            let count = systemWrite(number, base + offset, bytes.count - offset)
            if count > 0 {
                offset += count
            } else if count == 0 || errno != EINTR {
                throw FileError(operation: "write", path: path, code: count == 0 ? EIO : errno)
            }
        }
    }

    /// Reads up to the buffer's size; 0 at the end.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(FileError) -> Int {
        while true {
            let count = systemRead(number, buffer.baseAddress, buffer.count)
            if count >= 0 { return count }
            guard errno == EINTR else { throw FileError(operation: "read", path: path, code: errno) }
        }
    }

    /// What the system knows of it.
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

    /// Returns when the bytes are on the medium: 0, or the `errno` of the failure.
    package func synchronizationFailure() -> Int32 {
        #if canImport(Darwin)
        // fsync only reaches the drive's cache there (fsync(2)); not every file system knows the full form.
        if fcntl(number, F_FULLFSYNC) == 0 { return 0 }
        #endif
        while fsync(number) != 0 {
            let code = errno
            // Some file systems cannot synchronize a directory; its entries are then as safe as they get.
            if code == EINVAL || code == ENOTSUP { return 0 }
            if code != EINTR { return code }
        }
        return 0
    }
}

// The methods above hide the C functions of the same names.
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    write(descriptor, bytes, count)
}

private func systemRead(_ descriptor: Int32, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    read(descriptor, bytes, count)
}
