#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// Bodies that come in pieces, each at its place of the file.
///
/// How much of each piece is there follows the body in the file itself, 8 bytes a piece, so that it is as new as the
/// bytes when the process is killed. What is surely on the medium is in the head. Several threads may write at once,
/// each to a piece of its own.
extension PartialFile {
    /// The pieces, and how much of each is there; nil if the body comes from beginning to end.
    package var pieces: PieceTable? { state.withLock { $0.pieces } }

    /// Makes the body that has just begun one of pieces.
    package func divide(into pieces: PieceTable) throws(FileError) {
        // Known to be one of pieces before it is as long: of others the size says how much is there.
        let head = state.withLock { state -> PartialHead? in
            state.pieces = pieces
            state.head?.durablePieces = pieces.lengths
            return state.head
        }
        if let head { try write(head, isDurable: false) }
        try note(pieces)
    }

    /// Writes bytes behind what is there of a piece.
    ///
    /// - Returns: Whether there was room for all of them.
    package func write(_ bytes: UnsafeRawBufferPointer, to piece: Int) throws(FileError) -> Bool {
        // Not the whole table, which would be copied with every change.
        let place = state.withLock { state in
            state.pieces.map { (missing: $0.missing(of: piece), length: $0.lengths[piece], total: $0.total) }
        }
        guard let (missing, length, total) = place else { return false }
        let count = min(bytes.count, missing.count)
        try put(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: missing.lowerBound)
        // Not before the bytes themselves: a process that is killed in between has them once more.
        try note(length + count, of: piece, total: total)
        let isDue = state.withLock { state in
            state.pieces?.add(count, to: piece)
            return state.takesCheckpoint()
        }
        if isDue { try synchronize() }
        return count == bytes.count
    }

    /// Makes the body one from beginning to end, now that all pieces are there.
    package func join() throws(FileError) {
        guard let pieces, pieces.isComplete else { return }
        // What the head says must be true without the file's own notes before these go.
        try synchronize()
        guard ftruncate(file.number, off_t(pieces.total)) == 0,
            lseek(file.number, off_t(pieces.total), SEEK_SET) == off_t(pieces.total)
        else { throw FileError(operation: "ftruncate", path: path, code: errno) }
        let head = state.withLock { state -> PartialHead? in
            state.pieces = nil
            state.length = pieces.total
            state.head?.durablePieces = []
            state.head?.durableLength = pieces.total
            return state.head
        }
        if let head { try write(head, isDurable: false) }
    }

    // MARK: What the file itself says

    /// The pieces of a file with a head that speaks of such; nil if the two do not go together.
    static func pieces(of file: borrowing FileDescriptor, _ head: PartialHead) throws(FileError) -> PieceTable? {
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

    /// Makes the file as long as it has to be, and says in it how much of each piece is there.
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

/// How a body is divided into pieces that come over several connections, and how much of each is there.
package struct PieceTable: Sendable, Hashable {
    /// The length of the body.
    package let total: Int
    /// Of each piece, how many bytes are there, from its beginning.
    package private(set) var lengths: [Int]
    /// How many bytes are there of all pieces.
    package private(set) var length: Int

    private static let largestCount = 256
    /// Smaller pieces cost more requests than they save time.
    private static let smallestPiece = 1 << 20

    /// - Parameters:
    ///   - total: The length of the body.
    ///   - connections: How many are to load it. Each has several pieces, so that a slow one has few in the end.
    /// - Returns: nil if it is not worth it.
    package init?(dividing total: Int, among connections: Int) {
        let count = min(total / Self.smallestPiece, max(0, min(connections, Self.largestCount)) * 4, Self.largestCount)
        guard connections > 1, count > 1 else { return nil }
        self.init(total: total, lengths: [Int](repeating: 0, count: count))
    }

    /// - Returns: nil for lengths that no pieces of such a body have.
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

    /// Where a piece lies in the body.
    func range(of piece: Int) -> Range<Int> {
        (total * piece / lengths.count)..<(total * (piece + 1) / lengths.count)
    }

    /// What is missing of a piece; empty if nothing is.
    package func missing(of piece: Int) -> Range<Int> {
        let range = range(of: piece)
        return (range.lowerBound + lengths[piece])..<range.upperBound
    }

    mutating func add(_ count: Int, to piece: Int) {
        lengths[piece] += count
        length += count
    }
}
