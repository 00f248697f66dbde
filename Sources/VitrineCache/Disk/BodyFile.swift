#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// A large body in a file of its own: nothing but its bytes; length and checksum are in its entry's row.
enum BodyFile {
    /// The file's bytes if it has exactly that many; nil if not, or if it cannot be read.
    static func read(_ path: String, size: Int) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        // Before the memory is taken: a damaged row may claim any size.
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, Int(status.st_size) == size else {
            return nil
        }
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            count = 0
            while count < size, let base = buffer.baseAddress {
                let got = systemRead(descriptor, base + count, size - count)
                if got > 0 {
                    count += got
                } else if got == 0 || errno != EINTR {
                    break
                }
            }
        }
        return bytes.count == size ? bytes : nil
    }

    /// Writes a body, making its directory if it is missing. It appears whole.
    static func write(_ bytes: [UInt8], to path: String) throws(FileError) {
        do throws(FileError) {
            try AtomicFile.write(bytes, to: path, permissions: 0o600)
        } catch .notFound {
            try Directory.create(FilePath.parent(of: path))
            try AtomicFile.write(bytes, to: path, permissions: 0o600)
        }
    }

    /// Deletes a body; harmless if there is none.
    static func remove(_ path: String) { unlink(path) }
}

// The enum's own read hides the C function.
private func systemRead(_ descriptor: Int32, _ target: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(descriptor, target, count)
}
