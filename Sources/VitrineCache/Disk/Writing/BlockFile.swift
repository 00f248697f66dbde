#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import Synchronization
import VitrineCore

/// The file with the bodies of a few KiB and more, beside the database of a generation.
///
/// A body lies in blocks that its row names (``Extent``). It is written before its row is committed, into blocks that
/// no committed row has. A reader whose snapshot is older may so read blocks that another body has got since. Each body
/// is compared with the checksum in its row, and read again with a newer snapshot if it does not fit.
final class BlockFile: Sendable {
    static let suffix = "-bodies"
    /// Smaller bodies share pages of the database.
    static let smallestBody = 2040
    static let largestBody = BlockSpace.largestBody * BlockSpace.blockBytes

    let path: String
    /// The descriptor that reads use; -1 before the first one.
    private let reading = Atomic<Int32>(-1)
    /// All descriptors for reading. They are closed at deinitialization, as another thread may be using them.
    private let descriptors = Locked<[Int32]>([])
    private let writing = Locked<Int32>(-1)

    init(database: String) { path = database + Self.suffix }

    deinit {
        for descriptor in descriptors.withLock({ $0 }) { close(descriptor) }
        let writing = writing.withLock { $0 }
        if writing >= 0 { close(writing) }
    }

    // MARK: Reading

    /// The bytes that were read of a body.
    enum Found {
        case bytes([UInt8])
        /// The file is missing or too short, or the extents do not fit the size.
        case damaged
        /// It cannot be read now. That says nothing about its bytes.
        case unreadable(FileError)
        /// It is not in memory, and the disk is not to be waited for.
        case wouldWait
    }

    /// Reads a body.
    ///
    /// - Parameters:
    ///   - size: The size in bytes.
    ///   - waits: Whether the disk may be waited for.
    func read(_ extents: [Extent], size: Int, waits: Bool) -> Found {
        let blocks = extents.reduce(0) { $0 + $1.count }, blockBytes = BlockSpace.blockBytes
        // A damaged row may claim any size.
        guard (1...Self.largestBody).contains(size), (size + blockBytes - 1) / blockBytes == blocks else {
            return .damaged
        }
        let descriptor = descriptorForReading()
        guard descriptor >= 0 else {
            let code = errno
            if [ENOENT, ENOTDIR, ELOOP].contains(code) { return .damaged }
            return .unreadable(FileError(operation: "open", path: path, code: code))
        }
        var isResident = true
        var failure: FileError?
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            count = 0
            for extent in extents {
                let part = UnsafeMutableRawBufferPointer(
                    start: buffer.baseAddress.map { $0 + count }, count: min(extent.count * blockBytes, size - count))
                let offset = extent.start * blockBytes
                if waits {
                    let code = Self.read(descriptor, into: part, at: offset)
                    if let code, code != 0 { failure = FileError(operation: "read", path: path, code: code) }
                    guard code == nil else { return }
                } else {
                    let got = ResidentBytes.read(descriptor, into: part, at: offset)
                    isResident = got != nil
                    guard got == part.count else { return }
                }
                count += part.count
            }
        }
        if bytes.count == size { return .bytes(bytes) }
        if let failure { return .unreadable(failure) }
        return isResident ? .damaged : .wouldWait
    }

    /// - Returns: nil if all was read; the error of the system, or 0 if the file is too short.
    private static func read(_ descriptor: Int32, into part: UnsafeMutableRawBufferPointer, at offset: Int) -> Int32? {
        var count = 0
        while count < part.count {
            let got = pread(
                descriptor, part.baseAddress.map { $0 + count }, part.count - count, off_t(offset + count))
            if got > 0 {
                count += got
            } else if got == 0 || errno != EINTR {
                return got == 0 ? 0 : errno
            }
        }
        return nil
    }

    private func descriptorForReading() -> Int32 {
        let known = reading.load(ordering: .acquiring)
        return known >= 0 ? known : openForReading()
    }

    private func openForReading() -> Int32 {
        descriptors.withLock { descriptors in
            let known = reading.load(ordering: .acquiring)
            if known >= 0 { return known }
            let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            guard descriptor >= 0 else { return -1 }
            var status = stat()
            let code = fstat(descriptor, &status) == 0 ? ENOENT : errno
            guard code == ENOENT, status.st_mode & S_IFMT == S_IFREG else {
                close(descriptor)
                errno = code
                return -1
            }
            descriptors.append(descriptor)
            reading.store(descriptor, ordering: .releasing)
            return descriptor
        }
    }

    /// Opens the file again if another one has taken its place. Called after a body that did not fit.
    func refresh() {
        let known = reading.load(ordering: .acquiring)
        var status = stat()
        guard known >= 0, fstat(known, &status) == 0, status.st_nlink == 0 else { return }
        _ = reading.compareExchange(expected: known, desired: -1, ordering: .acquiringAndReleasing)
    }

    // MARK: Writing

    /// Writes bytes at a block, making the file if it is missing. Called by the one writer.
    func write(_ bytes: UnsafeRawBufferPointer, at block: Int) throws(FileError) {
        let descriptor = try descriptorForWriting()
        var offset = 0
        while offset < bytes.count {
            let place = off_t(block * BlockSpace.blockBytes + offset)
            let count = pwrite(descriptor, bytes.baseAddress.map { $0 + offset }, bytes.count - offset, place)
            if count > 0 {
                offset += count
            } else if count == 0 || errno != EINTR {
                throw FileError(operation: "write", path: path, code: count == 0 ? EIO : errno)
            }
        }
    }

    private func descriptorForWriting() throws(FileError) -> Int32 {
        var code: Int32 = 0
        let descriptor = writing.withLock { writing -> Int32 in
            var status = stat()
            if writing >= 0, fstat(writing, &status) == 0, status.st_nlink > 0 { return writing }
            if writing >= 0 { close(writing) }
            writing = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            if writing < 0 { code = errno }
            return writing
        }
        guard descriptor >= 0 else { throw FileError(operation: "open", path: path, code: code) }
        return descriptor
    }

    /// Cuts the blocks behind the last one in use. Called by the one writer.
    func cut(to end: Int) {
        var status = stat()
        let size = end * BlockSpace.blockBytes
        guard stat(path, &status) == 0, Int(status.st_size) > size, let descriptor = try? descriptorForWriting()
        else { return }
        // What cannot be cut is overwritten later.
        if ftruncate(descriptor, off_t(size)) != 0 { _ = errno }
    }

    /// Gives free blocks back to the file system if the file takes more than a number of them on the disk. Called by the
    /// one writer. Nothing happens where the file system cannot do that.
    ///
    /// - Parameters:
    ///   - limit: The number of blocks that are left alone.
    ///   - target: The number of blocks above which they are given back.
    func giveBack(_ free: @autoclosure () -> [Extent], above limit: Int, downTo target: Int) {
        guard let descriptor = try? descriptorForWriting(), Self.blocks(of: descriptor) > limit else { return }
        // Free blocks may have been given back before.
        for extent in free() {
            guard Self.blocks(of: descriptor) > target else { return }
            let block = BlockSpace.blockBytes
            guard FileHole.punch(descriptor, at: extent.start * block, count: extent.count * block) else { return }
        }
    }

    /// The number of blocks that a file takes on the disk.
    private static func blocks(of descriptor: Int32) -> Int {
        var status = stat()
        // 512 bytes: the unit of `st_blocks` (stat(2)).
        return fstat(descriptor, &status) == 0 ? Int(status.st_blocks) / (BlockSpace.blockBytes / 512) : 0
    }

    /// Returns when the bodies that were written are on the medium. Called before their rows are moved out of the log,
    /// so that a power cut costs the entries of the log at most. Failures are ignored: checksums find missing bodies.
    func synchronize() {
        let descriptor = descriptorForReading()
        guard descriptor >= 0 else { return }
        #if canImport(Darwin)
        if fsync(descriptor) != 0 { _ = errno }
        #else
        if fdatasync(descriptor) != 0 { _ = errno }
        #endif
    }
}

/// Gathers the bodies of a transaction, so that bodies in adjacent blocks are written by one call.
///
/// Used by one thread at a time.
final class BlockWriter {
    /// Bodies are gathered up to this size, in bytes.
    private static let bufferBytes = 256 << 10

    private let file: BlockFile
    private var buffer: [UInt8] = []
    /// The block at which the buffer belongs.
    private var start = 0

    init(file: BlockFile) { self.file = file }

    /// Adds a body, filling its last block with zeros. It is written by ``flush()`` at the latest.
    func add(_ bytes: [UInt8], at extents: [Extent]) throws(FileError) {
        var place = 0
        for extent in extents {
            let count = extent.count * BlockSpace.blockBytes
            if !buffer.isEmpty,
                start + buffer.count / BlockSpace.blockBytes != extent.start || buffer.count + count > Self.bufferBytes
            {
                try flush()
            }
            if buffer.isEmpty { start = extent.start }
            let end = min(place + count, bytes.count)
            buffer.append(contentsOf: bytes[place..<end])
            let padding = count - (end - place)
            if padding > 0 { buffer.append(contentsOf: repeatElement(0, count: padding)) }
            place = end
        }
    }

    /// Writes the gathered blocks.
    func flush() throws(FileError) {
        guard !buffer.isEmpty else { return }
        defer { buffer.removeAll(keepingCapacity: true) }
        let result = buffer.withUnsafeBytes { bytes in
            Result { () throws(FileError) in try file.write(bytes, at: start) }
        }
        try result.get()
    }

    /// Drops the gathered blocks.
    func drop() { buffer.removeAll(keepingCapacity: true) }
}
