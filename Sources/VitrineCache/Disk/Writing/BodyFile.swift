import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A large body in a file of its own: nothing but its bytes; length and checksum are in its entry's row.
///
/// A body that replaces another is written beside it first, as its successor. Then the row is stored, and then the
/// successor takes the place of the older one. So whenever the program is killed, the body that fits the row's checksum
/// is whole, in one of the two files.
enum BodyFile {
    /// The suffix of a new body that waits to replace the current one.
    static let successorSuffix = ".new"

    /// Where the body lies that is to replace the one at a path.
    static func successor(of path: String) -> String { path + successorSuffix }

    /// The body that fits, and whether it is still the successor of the one at the path; nil if none fits.
    ///
    /// - Parameter waits: Whether the disk may be waited for.
    /// - Throws: If a file cannot be read now. That says nothing about its bytes.
    static func find(
        _ path: String, size: Int, waits: Bool = true, where fits: (UnsafeRawBufferPointer) -> Bool
    ) throws(FileError) -> (bytes: [UInt8], isSuccessor: Bool)? {
        var failure: FileError?
        for isSuccessor in [false, true] {
            do throws(FileError) {
                let bytes = try read(isSuccessor ? successor(of: path) : path, size: size, waits: waits)
                if let bytes, bytes.withUnsafeBytes(fits) { return (bytes, isSuccessor) }
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return nil
    }

    /// Puts a successor into the place of the older body. If that fails it is found where it is.
    static func promoteSuccessor(of path: String) { rename(successor(of: path), path) }

    /// The file's bytes if it has exactly that many; nil if not, or if there is none.
    private static func read(_ path: String, size: Int, waits: Bool) throws(FileError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            // ELOOP is a link (O_NOFOLLOW).
            if [ENOENT, ENOTDIR, ELOOP].contains(code) { return nil }
            throw FileError(operation: "open", path: path, code: code)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw FileError(operation: "fstat", path: path, code: errno) }
        // Before the memory is taken: a damaged row may claim any size.
        guard status.st_mode & S_IFMT == S_IFREG, Int(status.st_size) == size else { return nil }
        var code: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            count = 0
            guard waits else {
                let all = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: size)
                if ResidentBytes.read(descriptor, into: all, at: 0) == size { count = size }
                return
            }
            while count < size, let base = buffer.baseAddress {
                let got = systemRead(descriptor, target: base + count, count: size - count)
                if got > 0 {
                    count += got
                } else if got == 0 || errno != EINTR {
                    code = got == 0 ? 0 : errno
                    break
                }
            }
        }
        guard code == 0 else { throw FileError(operation: "read", path: path, code: code) }
        return bytes.count == size ? bytes : nil
    }

    /// Writes a body atomically, creating its directory if needed.
    ///
    /// - Parameter temporary: The path until then, on the same file system. A file left there by another writer is
    ///   overwritten.
    static func write(_ bytes: [UInt8], to path: String, by temporary: String) throws(FileError) {
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(FileError) in
                let flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW
                try FileDescriptor(opening: temporary, flags: flags, mode: 0o600).write(bytes)
            }
        }
        do throws(FileError) {
            try result.get()
            guard rename(temporary, path) != 0 else { return }
            guard errno == ENOENT else { throw FileError(operation: "rename", path: path, code: errno) }
            try Directory.create(FilePath.parent(of: path))
            guard rename(temporary, path) == 0 else { throw FileError(operation: "rename", path: path, code: errno) }
        } catch {
            unlink(temporary)
            throw error
        }
    }

    /// Deletes a body and its successor; harmless if there is none.
    static func remove(_ path: String) {
        unlink(path)
        unlink(successor(of: path))
    }
}

// The enum's own read hides the C function.
private func systemRead(_ descriptor: Int32, target: UnsafeMutableRawPointer, count: Int) -> Int {
    read(descriptor, target, count)
}

/// The checksum every entry carries: 64 bits over body, length, key, times, validator and tags.
///
/// Made of two independent hashes joined by exclusive or, so that times and validator can change without the body being
/// read again. It finds damage; it is no protection against someone who writes into the directory on purpose.
enum EntryChecksum {
    /// Over body and key. ``StableHash`` takes the length into account.
    static func body(_ bytes: UnsafeRawBufferPointer, id: Int64) -> UInt64 {
        StableHash.hash(bytes, seed: UInt64(bitPattern: id))
    }

    /// Computes the checksum of the properties that cannot be checked otherwise, and the text of the key.
    static func properties(
        key: UnsafeRawBufferPointer, created: Int64, expires: Int64?, validator: UnsafeRawBufferPointer,
        tags: UnsafeRawBufferPointer
    ) -> UInt64 {
        let times = (created, expires ?? .min, Int64(validator.count))
        let head = withUnsafeBytes(of: times) { StableHash.hash($0, seed: 0x7665_7272_696e_6520) }
        let middle = StableHash.hash(key, seed: head)
        let sum = validator.isEmpty ? middle : StableHash.hash(validator, seed: middle)
        return tags.isEmpty ? sum : StableHash.hash(tags, seed: ~sum)
    }

    /// The checksum of the properties with a key that is at hand.
    static func properties(
        key: CacheKey, created: Int64, expires: Int64?, validator: [UInt8], tags: [UInt8]
    ) -> UInt64 {
        withBytes(of: key) { key in
            validator.withUnsafeBytes { validator in
                tags.withUnsafeBytes {
                    properties(key: key, created: created, expires: expires, validator: validator, tags: $0)
                }
            }
        }
    }

    /// Lends the bytes of a key's identity, which keys hold as contiguous UTF-8.
    @inline(__always)
    static func withBytes<Result>(of key: CacheKey, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var identity = key.identity
        return identity.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
}

extension Duration {
    /// The duration in whole nanoseconds, clamped to 64 bits (until the year 2262). Times are stored like this.
    var nanosecondsClamped: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min / 2 : .max / 2 }
        return min(max(product, .min / 2), .max / 2) + attoseconds / 1_000_000_000
    }
}

extension WallClock {
    /// Nanoseconds since 1970.
    var nanoseconds: Int64 { now.nanosecondsClamped }
}
