#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// The checksums of the bytes in a part file, in a file beside it.
///
/// The part grows in runs: a body in one, a body in pieces in one for each piece. A run consists of blocks of 64 KiB. The
/// entry of a block has 8 bytes: the number of its received bytes and their CRC-32C, both in little endian. An entry is
/// written after its bytes, so that a killed process at worst receives the bytes since the last entry again.
final class PartChecksums: Sendable {
    /// The last block of a run.
    private struct Block {
        var count = 0
        var sum = CRC32C()
    }

    private let file: FileDescriptor
    /// The last blocks by the index of their run.
    private let blocks = Locked<[Int: Block]>([:])

    private static let blockSize = 64 << 10
    private static let entrySize = 8

    private init(_ file: consuming FileDescriptor) { self.file = file }

    /// Creates the file for a body that begins. An existing file is replaced.
    static func create(_ path: String) throws(FileError) -> PartChecksums {
        unlink(path)
        return PartChecksums(
            try FileDescriptor(opening: path, flags: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600))
    }

    /// Opens the file of an earlier session.
    static func open(_ path: String) throws(FileError) -> PartChecksums {
        PartChecksums(try FileDescriptor(opening: path, flags: O_RDWR | O_NOFOLLOW | O_NONBLOCK))
    }

    /// The checksum of the last block of each run, up to a number of runs.
    func lastSums(ofRuns count: Int) -> [UInt32] {
        blocks.withLock { blocks in (0..<count).map { blocks[$0, default: Block()].sum.value } }
    }

    /// Returns whether the file belongs to this user, like the part.
    func isTrusted(_ isOwn: (stat) -> Bool) -> Bool { (try? file.status()).map(isOwn) ?? false }

    func synchronize() throws(FileError) { try file.synchronize() }

    /// Adds bytes that were written to the part.
    ///
    /// - Parameters:
    ///   - bytes: The bytes.
    ///   - offset: Their offset in the run.
    ///   - run: The index of the run.
    ///   - start: The offset of the run in the part.
    func add(
        _ bytes: UnsafeRawBufferPointer, at offset: Int, inRun run: Int, from start: Int
    ) throws(FileError) {
        // Each run has one writer at a time.
        var block = blocks.withLock { $0[run] } ?? Block()
        var rest = bytes[...], offset = offset
        while !rest.isEmpty {
            if block.count == Self.blockSize { block = Block() }
            let part = rest.prefix(Self.blockSize - block.count)
            block.sum.update(UnsafeRawBufferPointer(rebasing: part))
            block.count += part.count
            try write(block, at: Self.entry(at: offset, inRun: run, from: start))
            rest = rest.dropFirst(part.count)
            offset += part.count
        }
        blocks.withLock { [block] in $0[run] = block }
    }

    /// Returns the number of bytes of a run, from its beginning, that are as they were received.
    ///
    /// Further bytes of the run are added after these.
    ///
    /// - Parameters:
    ///   - part: The part file.
    ///   - length: The bytes of the run in the file.
    ///   - tail: The checksum of a last block that has an entry for more bytes, of which the file lost some.
    ///   - run: The index of the run.
    ///   - start: The offset of the run in the part.
    func intactLength(
        of part: borrowing FileDescriptor, upTo length: Int, tail: UInt32?, inRun run: Int, from start: Int
    ) throws(FileError) -> Int {
        var buffer = [UInt8](repeating: 0, count: Self.blockSize)
        var intact = 0
        var block = Block()
        while intact < length {
            guard var entry = try read(at: Self.entry(at: intact, inRun: run, from: start)),
                (1...Self.blockSize).contains(entry.count)
            else { break }
            if intact + entry.count > length {
                guard let tail else { break }
                entry = (length - intact, tail)
            }
            guard try read(entry.count, of: part, at: start + intact, into: &buffer) else { break }
            var sum = CRC32C()
            buffer.withUnsafeBytes { sum.update(UnsafeRawBufferPointer(rebasing: $0[..<entry.count])) }
            guard sum.value == entry.sum else { break }
            intact += entry.count
            block = Block(count: entry.count, sum: sum)
            guard entry.count == Self.blockSize else { break }
        }
        blocks.withLock { [block] in $0[run] = block }
        return intact
    }

    // MARK: Entries

    /// Returns the offset of a block's entry. A run that ends within a block leaves its entry to itself.
    private static func entry(at offset: Int, inRun run: Int, from start: Int) -> Int {
        (start / blockSize + run + offset / blockSize) * entrySize
    }

    private func write(_ block: Block, at offset: Int) throws(FileError) {
        let entry = (UInt64(block.sum.value) << 32 | UInt64(block.count)).littleEndian
        while true {
            let count = withUnsafeBytes(of: entry) { pwrite(file.number, $0.baseAddress, $0.count, off_t(offset)) }
            if count < 0, errno == EINTR { continue }
            guard count == Self.entrySize else {
                throw FileError(operation: "pwrite", path: file.path, code: count < 0 ? errno : ENOSPC)
            }
            return
        }
    }

    /// - Returns: nil if there is no entry.
    private func read(at offset: Int) throws(FileError) -> (count: Int, sum: UInt32)? {
        var bytes = [UInt8](repeating: 0, count: Self.entrySize)
        guard try Self.read(Self.entrySize, of: file, at: offset, into: &bytes) else { return nil }
        let entry = bytes.withUnsafeBytes { UInt64(littleEndian: $0.load(as: UInt64.self)) }
        return (Int(entry & 0xFFFF_FFFF), UInt32(entry >> 32))
    }

    private func read(
        _ count: Int, of part: borrowing FileDescriptor, at offset: Int, into buffer: inout [UInt8]
    ) throws(FileError) -> Bool {
        try Self.read(count, of: part, at: offset, into: &buffer)
    }

    /// - Returns: false if the file ends before.
    private static func read(
        _ count: Int, of file: borrowing FileDescriptor, at offset: Int, into buffer: inout [UInt8]
    ) throws(FileError) -> Bool {
        let (number, path) = (file.number, file.path)
        var done = 0
        while done < count {
            let next = buffer.withUnsafeMutableBytes {
                pread(number, $0.baseAddress?.advanced(by: done), count - done, off_t(offset + done))
            }
            if next < 0, errno == EINTR { continue }
            guard next >= 0 else { throw FileError(operation: "pread", path: path, code: errno) }
            guard next > 0 else { return false }
            done += next
        }
        return true
    }
}
