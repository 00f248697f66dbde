#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// Bodies in pieces that several connections receive.
///
/// The length of each piece is stored after the body in the file itself, 8 bytes per piece, so that it is current when
/// the process is killed. The head contains the synchronized lengths. Several threads may write at once, each to its
/// own piece.
extension PartialFile {
    /// The pieces; nil if the body is not divided.
    package var pieces: PieceTable? { state.withLock { $0.pieces } }

    /// Divides a body that has just begun into pieces.
    package func divide(into pieces: PieceTable) throws(FileError) {
        // Record the division before the file grows, because the size of an undivided file is its length.
        let head = state.withLock { state -> PartialHead? in
            state.pieces = pieces
            state.head?.durablePieces = pieces.lengths
            return state.head
        }
        if let head { try write(head, isDurable: false) }
        try note(pieces)
    }

    /// Appends bytes to a piece.
    ///
    /// - Returns: Whether all bytes belong to the piece.
    package func write(_ bytes: UnsafeRawBufferPointer, to piece: Int) throws(FileError) -> Bool {
        // Copying the whole table would cost a copy per change.
        let place = state.withLock { state in
            state.pieces.map { (missing: $0.missing(of: piece), length: $0.lengths[piece], total: $0.total) }
        }
        guard let (missing, length, total) = place else { return false }
        let count = min(bytes.count, missing.count)
        try put(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: missing.lowerBound)
        // Record the length after the bytes, so that a killed process at worst receives them again.
        try note(length + count, of: piece, total: total)
        let start = missing.lowerBound - length
        try checksums?.add(
            UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: length, inRun: piece, from: start)
        let isDue = state.withLock { state in
            state.pieces?.add(count, to: piece)
            return state.takesCheckpoint()
        }
        if isDue { try synchronize() }
        return count == bytes.count
    }

    /// Joins the complete pieces to an undivided body.
    package func join() throws(FileError) {
        guard let pieces, pieces.isComplete else { return }
        // The head must be complete before the lengths in the file are removed.
        try synchronize()
        guard ftruncate(file.number, off_t(pieces.total)) == 0,
            lseek(file.number, off_t(pieces.total), SEEK_SET) == off_t(pieces.total)
        else { throw FileError(operation: "ftruncate", path: path, code: errno) }
        let head = state.withLock { state -> PartialHead? in
            state.pieces = nil
            state.length = pieces.total
            state.head?.joinedPieces = pieces.count
            state.head?.durablePieces = []
            state.head?.durableLength = pieces.total
            return state.head
        }
        if let head { try write(head, isDurable: false) }
    }

    // MARK: Lengths in the file

    /// Returns the bytes of each piece that are as they were received; nil if head and file do not match.
    static func intactPieces(
        of file: borrowing FileDescriptor, _ head: PartialHead, _ checksums: PartChecksums
    ) throws(FileError) -> PieceTable? {
        guard let table = try pieces(of: file, head) else { return nil }
        return PieceTable(
            total: table.total, lengths: try intactLengths(of: table, file: file, head: head, checksums: checksums))
    }

    /// Returns the length of a whole body that was received in pieces, or 0 if its bytes are not those received.
    static func intactLength(
        ofJoined count: Int, in file: borrowing FileDescriptor, _ head: PartialHead, _ checksums: PartChecksums
    ) throws(FileError) -> Int {
        guard let total = ResumableDownload(length: 1, of: head.response)?.total,
            let empty = PieceTable(total: total, lengths: [Int](repeating: 0, count: min(count, total))),
            let whole = PieceTable(total: total, lengths: (0..<empty.count).map { empty.range(of: $0).count })
        else { return 0 }
        return try intactLengths(of: whole, file: file, head: head, checksums: checksums) == whole.lengths ? total : 0
    }

    private static func intactLengths(
        of table: PieceTable, file: borrowing FileDescriptor, head: PartialHead, checksums: PartChecksums
    ) throws(FileError) -> [Int] {
        var lengths: [Int] = []
        for piece in 0..<table.count {
            let sum = head.durableSums.count == table.count ? head.durableSums[piece] : nil
            lengths.append(
                try checksums.intactLength(
                    of: file, upTo: table.lengths[piece], tail: head.isOfThisSession ? nil : sum, inRun: piece,
                    from: table.range(of: piece).lowerBound))
        }
        return lengths
    }

    /// Returns the pieces of a file; nil if head and file do not match.
    private static func pieces(
        of file: borrowing FileDescriptor, _ head: PartialHead
    ) throws(FileError) -> PieceTable? {
        guard let total = ResumableDownload(length: 1, of: head.response)?.total,
            let durable = PieceTable(total: total, lengths: head.durablePieces)
        else { return nil }
        guard head.isOfThisSession, Int(try file.status().st_size) == total + 8 * durable.count else { return durable }
        var notes = [UInt64](repeating: 0, count: durable.count)
        let size = notes.count * 8
        let count = notes.withUnsafeMutableBytes { pread(file.number, $0.baseAddress, size, off_t(total)) }
        guard count == size else { return durable }
        return PieceTable(total: total, lengths: notes.map { Int(clamping: UInt64(littleEndian: $0)) }) ?? durable
    }

    /// Extends the file and records the length of each piece.
    func note(_ pieces: PieceTable) throws(FileError) {
        guard ftruncate(file.number, off_t(pieces.total + 8 * pieces.count)) == 0 else {
            throw FileError(operation: "ftruncate", path: path, code: errno)
        }
        for piece in 0..<pieces.count { try note(pieces.lengths[piece], of: piece, total: pieces.total) }
    }

    private func note(_ length: Int, of piece: Int, total: Int) throws(FileError) {
        let note = UInt64(length).littleEndian
        try withUnsafeBytes(of: note) { bytes in
            Result { () throws(FileError) in try put(bytes, at: total + 8 * piece) }
        }.get()
    }

    private func put(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileError) {
        var rest = bytes[...]
        while let base = UnsafeRawBufferPointer(rebasing: rest).baseAddress, !rest.isEmpty {
            let count = pwrite(file.number, base, rest.count, off_t(offset + bytes.count - rest.count))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw FileError(operation: "pwrite", path: path, code: count < 0 ? errno : ENOSPC) }
            rest = rest.dropFirst(count)
        }
    }
}

/// The division of a body into pieces, and the received bytes of each.
package struct PieceTable: Sendable, Hashable {
    /// The length of the body.
    package let total: Int
    /// The received bytes of each piece, from its beginning.
    package private(set) var lengths: [Int]
    /// The received bytes of all pieces.
    package private(set) var length: Int

    private static let largestCount = 256
    /// Smaller pieces cost more time for requests than they save.
    private static let smallestPiece = 1 << 20

    /// Divides a body, or returns nil if a division is not worthwhile.
    ///
    /// - Parameters:
    ///   - total: The length of the body.
    ///   - connections: The number of connections. Each loads several pieces, so that a slow one loads fewer.
    package init?(dividing total: Int, among connections: Int) {
        let count = min(total / Self.smallestPiece, max(0, min(connections, Self.largestCount)) * 4, Self.largestCount)
        guard connections > 1, count > 1 else { return nil }
        self.init(total: total, lengths: [Int](repeating: 0, count: count))
    }

    /// Creates a table of received lengths, or returns nil for invalid lengths.
    package init?(total: Int, lengths: [Int]) {
        guard (1...Self.largestCount).contains(lengths.count), lengths.count <= total,
            total <= Int.max / Self.largestCount
        else { return nil }
        (self.total, self.lengths, self.length) = (total, lengths, 0)
        for piece in lengths.indices {
            guard (0...range(of: piece).count).contains(lengths[piece]) else { return nil }
            length += lengths[piece]
        }
    }

    package var count: Int { lengths.count }

    package var isComplete: Bool { length == total }

    /// Returns the range of a piece.
    func range(of piece: Int) -> Range<Int> {
        (total * piece / lengths.count)..<(total * (piece + 1) / lengths.count)
    }

    /// Returns the missing range of a piece, which may be empty.
    package func missing(of piece: Int) -> Range<Int> {
        let range = range(of: piece)
        return (range.lowerBound + lengths[piece])..<range.upperBound
    }

    mutating func add(_ count: Int, to piece: Int) {
        lengths[piece] += count
        length += count
    }
}
