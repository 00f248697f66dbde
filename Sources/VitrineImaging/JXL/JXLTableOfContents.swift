/// Where the sections of a frame stand.
///
/// Source: ISO/IEC 18181-1 annex F.3 (TOC) and F.3.2 (permutation).
struct JXLTableOfContents {
    static let maximumEntries = 1 << 18

    /// Side in pixels of a group, and of the area one low-frequency section covers.
    let groupSide: Int
    let lowFrequencyColumns: Int
    let lowFrequencyRows: Int
    /// Of each section in its logical order, the offset behind the table.
    private(set) var offsets: [Int]
    private(set) var sizes: [Int]
    /// Bytes of all sections.
    private(set) var total = 0

    init(_ bits: inout JXLBits, _ frame: JXLFrameHeader) throws(JXLFault) {
        groupSide = 128 << frame.groupSizeShift
        func groups(_ side: Int) -> (Int, Int) { ((frame.width + side - 1) / side, (frame.height + side - 1) / side) }
        let (columns, rows) = groups(groupSide)
        (lowFrequencyColumns, lowFrequencyRows) = groups(groupSide * 8)
        guard columns < 1 << 20, rows < 1 << 20, columns * rows <= JXLTableOfContents.maximumEntries else {
            throw .unsupported("a frame of too many groups")
        }
        let count = columns * rows == 1 && frame.passCount == 1
            ? 1 : 2 + lowFrequencyColumns * lowFrequencyRows + columns * rows * frame.passCount
        guard count <= JXLTableOfContents.maximumEntries else { throw .unsupported("a frame of too many sections") }
        let order = bits.bool() ? try JXLTableOfContents.permutation(&bits, count: count) : nil
        try bits.align()
        offsets = [Int](repeating: 0, count: count)
        sizes = offsets
        for i in 0..<count {
            let size = bits.u32((0, 10), (1024, 14), (17_408, 22), (4_211_712, 30))
            let section = order.map { $0[i] } ?? i
            offsets[section] = total
            sizes[section] = size
            total += size
        }
        try bits.align()
        try bits.check()
    }

    /// Which section stands at each place: a Lehmer code, entropy-coded.
    private static func permutation(_ bits: inout JXLBits, count: Int) throws(JXLFault) -> [Int] {
        func context(_ value: Int) -> Int { min(7, JXLEntropyCode.ceilLog2(value + 1)) }
        let code = try JXLEntropyCode(&bits, contexts: 8)
        var reader = JXLEntropyReader(code, &bits)
        let end = try reader.read(&bits, context(count))
        guard end <= count, count <= 1 << 16 else { throw .corrupt("order of sections") }
        var rest = Array(0..<count)
        var order: [Int] = []
        var last = 0
        for i in 0..<end {
            last = try reader.read(&bits, context(last))
            guard last < count - i else { throw .corrupt("order of sections") }
            order.append(rest.remove(at: last))
        }
        try reader.finish(bits)
        return order + rest
    }
}
