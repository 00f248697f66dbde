/// Rows of one PNG image, inflated and with their filters undone, in the order of the stream.
struct PNGRowReader: ~Copyable {
    private var inflater: Inflater<PNGDataSource>
    private let header: PNGHeader
    private let scratch: ScratchMemory
    private let capacity: Int
    private var above: UnsafeMutableRawPointer
    private var row: UnsafeMutableRawPointer
    /// For a filtered row that does not lie in one piece of inflated data.
    private let stash: UnsafeMutableRawPointer
    private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
    private var rowBytes = 0

    /// A reader for rows of at most `width` pixels.
    init(_ source: consuming PNGDataSource, _ header: PNGHeader, width: Int) {
        inflater = Inflater(source)
        self.header = header
        capacity = header.rowBytes(width: width) + 1 + 2 * PNGFilter.padding
        scratch = ScratchMemory(byteCount: 3 * capacity)
        let memory = scratch.bytes.baseAddress!
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: 3 * capacity)
        above = memory
        row = memory + capacity
        stash = memory + 2 * capacity
    }

    /// Whether the data ended because the file did.
    var isTruncated: Bool { inflater.source.isTruncated }

    /// Begins an image, or a pass of one, with rows of `width` pixels.
    mutating func begin(width: Int) {
        rowBytes = header.rowBytes(width: width)
        above.initializeMemory(as: UInt8.self, repeating: 0, count: capacity)
    }

    /// The next row, valid until the call after the next. ``PNGFilter/padding`` bytes behind it may be read.
    mutating func next() throws(InflateError) -> UnsafeRawPointer {
        let filtered = try filteredRow()
        let target = row
        guard
            PNGFilter.undo(
                filtered.load(as: UInt8.self), filtered + 1, target, above, count: rowBytes,
                distance: header.filterDistance)
        else { throw .invalid("unknown row filter") }
        row = above
        above = target
        return UnsafeRawPointer(target)
    }

    /// Reads the end of the stream, behind the last row, where its checksum is. Data behind the last row is ignored.
    mutating func finish() throws(InflateError) {
        if piece.isEmpty { piece = try inflater.next() }
    }

    private mutating func filteredRow() throws(InflateError) -> UnsafeRawPointer {
        let count = rowBytes + 1
        if piece.count >= count, let start = piece.baseAddress {
            piece = UnsafeRawBufferPointer(rebasing: piece[count...])
            return start
        }
        var filled = 0
        while filled < count {
            if piece.isEmpty {
                piece = try inflater.next()
                guard !piece.isEmpty else { throw .invalid("the image data ends before the last row") }
            }
            let n = min(count - filled, piece.count)
            UnsafeMutableRawBufferPointer(start: stash + filled, count: n).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: piece[..<n]))
            filled += n
            piece = UnsafeRawBufferPointer(rebasing: piece[n...])
        }
        return UnsafeRawPointer(stash)
    }
}
