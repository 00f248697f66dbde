import VitrineCore

/// Inflates a part of a zlib stream whose beginning is not reached yet.
///
/// The part begins with a block that is found by its header. Its matches may copy bytes from before it, which are not
/// known. So it is inflated twice at first, behind two windows that together tell the place of a copied byte, and that
/// differ everywhere. A byte is known where the two agree. When the last 32 KiB are known, one decoder goes on alone.
/// When the bytes before the part are known, those that were copied from them are put in place.
///
/// The idea is that of Kerbiriou and Chikhi, "Parallel decompression of gzip-compressed files and random access to DNA
/// sequences" (2019), with windows of bytes in the place of symbols of 16 bits.
package final class AheadInflater<Source: InflaterSource> {
    private static var history: Int { Inflater<Source>.history }
    /// Bytes of a piece.
    private static var pieceBytes: Int { 64 << 10 }
    /// If bytes from before the part are still copied so far behind its beginning, it ends there.
    private static var markedLimit: Int { 1 << 20 }
    /// Bytes that are searched for a block.
    private static var searchedBytes: Int { 128 << 10 }
    /// In ``marks``: a byte that is known.
    private static var known: UInt16 { 1 << 15 }

    /// Where it begins in the stream, in bits.
    package let start: Int
    /// Whether there is no more to do before the bytes in front of it are known.
    package private(set) var isDone = false
    private var inflater: Inflater<Source>?
    private var other: Inflater<Source>?
    private let memory: Memory
    private var count = 0
    /// For the first bytes, the places before the part that they were copied from.
    private var marks: [UInt16] = []

    /// Room for a part, which several can use in turn.
    package final class Memory {
        fileprivate let capacity: Int
        fileprivate let scratch: ScratchMemory

        /// - Parameter capacity: The most bytes of a part, at least 64 KiB.
        package init(capacity: Int) {
            self.capacity = max(capacity, AheadInflater.pieceBytes)
            scratch = ScratchMemory(
                byteCount: self.capacity + AheadInflater.pieceBytes + Inflater<Source>.slack + 64)
        }
    }

    /// Looks for a block.
    ///
    /// - Parameters:
    ///   - position: Where the search begins in the stream, in bytes.
    ///   - memory: Room for the part, which nothing else uses until this object is gone.
    ///   - source: Returns the stream from a byte on; nil if there is no such byte.
    /// - Returns: nil if none is found.
    package init?(
        from position: Int, in memory: Memory, _ source: (_ byte: Int) throws(ImageError) -> Source?
    ) throws(ImageError) {
        let searched = ScratchMemory(byteCount: Self.searchedBytes + 64)
        guard var bytes = try source(position) else { return nil }
        var filled = 0
        while filled < Self.searchedBytes {
            let room = UnsafeMutableRawBufferPointer(rebasing: searched.bytes[filled..<Self.searchedBytes])
            let got = try bytes.read(into: room)
            if got <= 0 { break }
            filled += got
        }
        var search = DeflateBlockSearch()
        guard let found = search.firstBlock(in: UnsafeRawBufferPointer(rebasing: searched.bytes[..<filled])) else {
            return nil
        }
        start = position * 8 + found
        self.memory = memory
        inflater = try makeInflater(source) { UInt8(truncatingIfNeeded: $0) }
        // The lowest bits differ.
        other = try makeInflater(source) { UInt8(truncatingIfNeeded: $0 >> 8) << 1 | ~UInt8(truncatingIfNeeded: $0) & 1 }
        guard inflater != nil, other != nil else { return nil }
    }

    private func makeInflater(
        _ source: (Int) throws(ImageError) -> Source?, _ history: (Int) -> UInt8
    ) throws(ImageError) -> Inflater<Source>? {
        guard let bytes = try source(start >> 3) else { return nil }
        return Inflater(bytes, chunk: Self.pieceBytes, inputCapacity: 32 << 10, position: start, history: history)
    }

    /// The bytes, right when ``inflater(behind:_:)`` was called.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory.scratch.bytes[..<count]) }

    /// Inflates one more piece.
    package func advance() {
        do throws(InflateError) {
            guard !isDone, let piece = try inflater?.next(), !piece.isEmpty else { return isDone = true }
            UnsafeMutableRawBufferPointer(rebasing: memory.scratch.bytes[count...]).copyMemory(from: piece)
            // It takes the same path, so that its pieces have the same length.
            if let same = try other?.next() { mark(piece, same) }
            count += piece.count
            if count >= memory.capacity { isDone = true }
        } catch {
            // Who goes on with it meets the same error.
            isDone = true
        }
        if other != nil { reviewMarks() }
    }

    private func mark(_ piece: UnsafeRawBufferPointer, _ same: UnsafeRawBufferPointer) {
        let begin = marks.count
        marks.append(contentsOf: repeatElement(Self.known, count: piece.count))
        marks.withUnsafeMutableBufferPointer { marks in
            for i in 0..<piece.count where piece[i] != same[i] {
                marks[begin + i] = UInt16(same[i] >> 1) << 8 | UInt16(piece[i])
            }
        }
    }

    /// Ends the second run if it is not needed any more.
    private func reviewMarks() {
        if marks.count >= Self.history, marks.suffix(Self.history).allSatisfy({ $0 == Self.known }) {
            other = nil
        } else if marks.count >= Self.markedLimit {
            isDone = true
        }
    }

    /// Ends the work when the bytes before it are known.
    ///
    /// - Parameters:
    ///   - past: The 32 KiB in front of it.
    ///   - adler: The checksum of all bytes before it.
    /// - Returns: A decoder for the rest of the stream behind ``bytes``; nil if there are none.
    package func inflater(behind past: UnsafeRawBufferPointer, _ adler: Adler32) -> Inflater<Source>? {
        guard count > 0, past.count == Self.history, var last = inflater.take() else { return nil }
        for (i, mark) in marks.enumerated() where mark != Self.known { memory.scratch.bytes[i] = past[Int(mark)] }
        var adler = adler
        adler.update(bytes)
        last.resume(behind: [past, bytes], adler)
        return last
    }
}
