import VitrineImageCore
import CVitrinePixels

/// The loop filters of a picture: deblocking and sample offsets (ITU-T H.265 §8.7).
///
/// It notes the edges of blocks while they are decoded, and filters the picture at its end.
final class HEVCLoopFilters {
    /// The offsets of one channel in a coding tree block.
    struct Offsets {
        enum Kind { case none, bands, edges }

        var kind = Kind.none
        /// The first band, or the direction of edges.
        var position = 0
        var values: (Int8, Int8, Int8, Int8) = (0, 0, 0, 0)
    }

    private let sequence: HEVCSequence
    private let parameters: HEVCPictureParameters
    private let layout: HEVCBlockLayout
    /// For 8 × 8 samples of luma each; see the constants.
    private var marks: [UInt8]
    private let marksPerRow: Int
    private var hasKept = false
    /// Three for each coding tree block.
    private var offsets: [Offsets]
    private var hasOffsets = false
    /// The slices of the picture, and which of them each coding tree block belongs to.
    private var slices: [HEVCSliceHeader] = []
    private var slice: [Int]

    /// A block begins at the left, at the top; samples stay as they are.
    private static let left: UInt8 = 1, top: UInt8 = 2, kept: UInt8 = 4

    init(_ sequence: HEVCSequence, parameters: HEVCPictureParameters, layout: HEVCBlockLayout) {
        (self.sequence, self.parameters, self.layout) = (sequence, parameters, layout)
        marksPerRow = sequence.width / 8
        marks = Array(repeating: 0, count: marksPerRow * (sequence.height / 8))
        offsets = Array(repeating: Offsets(), count: 3 * layout.count)
        slice = Array(repeating: 0, count: layout.count)
    }

    // MARK: Notes

    /// Forgets the picture before.
    func begin() {
        for i in marks.indices { marks[i] = 0 }
        for i in offsets.indices { offsets[i] = Offsets() }
        slices = []
        (hasKept, hasOffsets) = (false, false)
    }

    /// - Parameter header: That of a slice segment. Dependent ones belong to the slice before them.
    func beginSlice(_ header: HEVCSliceHeader) {
        if header.isIndependent || slices.isEmpty { slices.append(header) }
    }

    /// Notes that a coding tree block belongs to the last slice.
    func noteTreeBlock(_ block: Int) { slice[block] = slices.count - 1 }

    /// Notes the edges of a transform block.
    @inline(__always)
    func noteBlock(_ x: Int, _ y: Int, log: Int) {
        // Smaller ones have edges that are not filtered, and those of a block of 8 × 8 that they are parts of.
        guard (x | y) & 7 == 0 else { return }
        let count = max(1, 1 &<< (log &- 3))
        let first = (y &>> 3) &* marksPerRow &+ x &>> 3
        for i in 0..<count {
            marks[first &+ i] |= Self.top
            marks[first &+ i &* marksPerRow] |= Self.left
        }
    }

    /// Notes a coding block whose samples are not to be changed.
    func noteKept(_ x: Int, _ y: Int, log: Int) {
        hasKept = true
        let count = 1 << (log - 3)
        for row in 0..<count {
            for column in 0..<count { marks[(y >> 3 + row) * marksPerRow + x >> 3 + column] |= Self.kept }
        }
    }

    func noteOffsets(_ block: Int, channel: Int, value: Offsets) {
        offsets[3 * block + channel] = value
        if value.kind != .none { hasOffsets = true }
    }

    /// Takes the offsets of another coding tree block.
    func mergeOffsets(_ block: Int, with other: Int) {
        for channel in 0..<3 { noteOffsets(block, channel: channel, value: offsets[3 * other + channel]) }
    }

    // MARK: Filters

    /// - Parameter quantizer: That of the block at a place in luma.
    func filter(_ planes: HEVCPlanes, quantizer: (_ x: Int, _ y: Int) -> Int) {
        if slices.contains(where: { $0.deblocking != nil }) {
            for isVertical in [true, false] { deblock(planes, isVertical: isVertical, quantizer) }
        }
        if hasOffsets {
            for channel in 0..<3 { addOffsets(planes, channel) }
        }
    }

    private func deblock(_ planes: HEVCPlanes, isVertical: Bool, _ quantizer: (Int, Int) -> Int) {
        let mark = isVertical ? Self.left : Self.top
        let before = isVertical ? 1 : marksPerRow
        for row in (isVertical ? 0 : 1)..<(sequence.height / 8) {
            for column in (isVertical ? 1 : 0)..<marksPerRow {
                let at = row &* marksPerRow &+ column
                guard marks[at] & mark != 0 else { continue }
                let (x, y) = (column &* 8, row &* 8)
                let (beforeX, beforeY) = isVertical ? (x &- 8, y) : (x, y &- 8)
                let block = layout.block(x, y)
                guard let deblocking = slices[slice[block]].deblocking else { continue }
                if (isVertical ? x : y) & (layout.side &- 1) == 0 {
                    let other = layout.block(beforeX, beforeY)
                    guard isCrossed(other, from: block, by: block) else { continue }
                }
                let mean = (quantizer(x, y) &+ quantizer(beforeX, beforeY) &+ 1) &>> 1
                let keeps = (marks[at &- before] & Self.kept) &>> 2 | (marks[at] & Self.kept) &>> 1
                let tc = Self.tc[max(0, min(mean &+ 2 &+ deblocking.tc, 53))]
                let beta = Self.beta[max(0, min(mean &+ deblocking.beta, 51))]
                let stride = planes.bytesPerRow(0)
                let edge = planes.samples(0) + (y &* stride &+ x)
                let (across, along) = isVertical ? (1, stride) : (stride, 1)
                for half in 0..<2 {
                    cpixels_hevc_deblock_luma(edge + 4 &* half &* along, across, along, beta, tc, Int32(keeps))
                }
                // Chroma has edges at each eighth of its samples.
                guard (isVertical ? x : y) & 15 == 0 else { continue }
                for channel in 1...2 {
                    let offset = channel == 1 ? parameters.chromaOffsets.blue : parameters.chromaOffsets.red
                    let index = HEVCIntraPicture.chromaQuantizer(mean &+ offset)
                    let stride = planes.bytesPerRow(channel)
                    cpixels_hevc_deblock_chroma(
                        planes.samples(channel) + (y / 2 &* stride &+ x / 2), isVertical ? 1 : stride,
                        isVertical ? stride : 1, Self.tc[max(0, min(index &+ 2 &+ deblocking.tc, 53))], Int32(keeps))
                }
            }
        }
    }

    /// Whether filters of the block at one side of an edge use the samples of `other` at the other side.
    ///
    /// - Parameter decider: Its slice allows it or does not.
    private func isCrossed(_ other: Int, from block: Int, by decider: Int) -> Bool {
        if layout.tile[other] != layout.tile[block], parameters.tiles?.filtersAcross == false { return false }
        return slice[other] == slice[block] || slices[slice[decider]].filtersAcross
    }

    private func addOffsets(_ planes: HEVCPlanes, _ channel: Int) {
        let shift = channel == 0 ? 0 : 1
        let side = layout.side >> shift
        let (width, height) = (sequence.width >> shift, sequence.height >> shift)
        let stride = planes.bytesPerRow(channel)
        let samples = planes.samples(channel)
        // The samples of a row of blocks as they were, with the lines above and below.
        var copy = [UInt8](repeating: 0, count: (side + 2) * stride)
        copy.withUnsafeMutableBufferPointer { buffer in
            guard let copy = buffer.baseAddress else { return }
            for row in 0..<layout.rows {
                let top = row * side, bottom = min(top + side, height)
                // The last line of the row before is still in the copy.
                if row > 0 { copy.update(from: copy + side * stride, count: stride) }
                let lines = min(bottom + 1, height) - top
                (copy + stride).update(from: samples + top * stride, count: lines * stride)
                for column in 0..<layout.columns {
                    let block = row * layout.columns + column
                    let offsets = offsets[3 * block + channel]
                    guard offsets.kind != .none else { continue }
                    let left = column * side, right = min(left + side, width)
                    let values = [offsets.values.0, offsets.values.1, offsets.values.2, offsets.values.3]
                    switch offsets.kind {
                    case .none: break
                    case .bands:
                        for y in top..<bottom {
                            cpixels_hevc_offset_bands(
                                samples + (y * stride + left), copy + ((y - top + 1) * stride + left), right - left,
                                UInt32(offsets.position), values)
                        }
                    case .edges:
                        let edges = EdgeOffsets(
                            direction: offsets.position, values: values, reach: reach(block, row: row, column: column))
                        for y in top..<bottom {
                            let line = y == top ? -1 : y == bottom - 1 ? 1 : 0
                            addEdgeOffsets(
                                to: samples + (y * stride + left), from: copy + ((y - top + 1) * stride + left),
                                count: right - left, stride: stride, line: line, offsets: edges)
                        }
                    }
                    if hasKept {
                        restore(
                            samples, from: copy + stride, bytesPerRow: stride, rows: top..<bottom,
                            columns: left..<right, shift: shift)
                    }
                }
            }
        }
    }

    /// From a sample to one of its two neighbours, which are opposite to each other.
    private static let directions = [(1, 0), (0, 1), (1, 1), (-1, 1)]

    /// The offsets of edges in one block.
    private struct EdgeOffsets {
        /// The index of the direction.
        let direction: Int
        let values: [Int8]
        /// Whether the filter may look into each of the nine blocks around.
        let reach: [Bool]
    }

    /// Adds the offsets of edges to a line of a block.
    ///
    /// - Parameter line: -1 for the first line of the block, and 1 for the last. No block has one line alone.
    private func addEdgeOffsets(
        to: UnsafeMutablePointer<UInt8>, from: UnsafePointer<UInt8>, count: Int, stride: Int, line: Int,
        offsets: EdgeOffsets
    ) {
        let step = Self.directions[offsets.direction]
        let neighbor = step.1 * stride + step.0
        func isReached(_ x: Int) -> Bool {
            for sign in [-1, 1] {
                let (nx, ny) = (x + sign * step.0, sign * step.1)
                let column = nx < 0 ? 0 : nx >= count ? 2 : 1
                let row = ny != 0 && ny == line ? 1 + line : 1
                guard offsets.reach[3 * row + column] else { return false }
            }
            return true
        }
        if isReached(1) {
            cpixels_hevc_offset_edges(to + 1, from + 1, count - 2, neighbor, offsets.values)
        }
        for x in [0, count - 1] where isReached(x) {
            cpixels_hevc_offset_edges(to + x, from + x, 1, neighbor, offsets.values)
        }
    }

    /// Which of the nine blocks around a block its filter may look into.
    private func reach(_ block: Int, row: Int, column: Int) -> [Bool] {
        var reach: [Bool] = []
        for y in (row - 1)...(row + 1) {
            for x in (column - 1)...(column + 1) {
                guard y >= 0, y < layout.rows, x >= 0, x < layout.columns else {
                    reach.append(false)
                    continue
                }
                let other = y * layout.columns + x
                // The slice that comes later decides.
                let decider = slice[other] > slice[block] ? other : block
                reach.append(isCrossed(other, from: block, by: decider))
            }
        }
        return reach
    }

    /// Restores samples that are not to be changed.
    private func restore(
        _ samples: UnsafeMutablePointer<UInt8>, from copy: UnsafePointer<UInt8>, bytesPerRow: Int, rows: Range<Int>,
        columns: Range<Int>, shift: Int
    ) {
        let side = 8 >> shift
        for y in stride(from: rows.lowerBound, to: rows.upperBound, by: side) {
            for x in stride(from: columns.lowerBound, to: columns.upperBound, by: side)
            where marks[(y / side) * marksPerRow + x / side] & Self.kept != 0 {
                for line in 0..<side {
                    (samples + ((y + line) * bytesPerRow + x)).update(
                        from: copy + ((y - rows.lowerBound + line) * bytesPerRow + x), count: side)
                }
            }
        }
    }

    /// Table 8-12.
    private static let beta: [Int32] = (0...51).map { $0 < 16 ? 0 : $0 < 29 ? $0 - 10 : 2 * $0 - 38 }
    private static let tc: [Int32] = Array(repeating: 0, count: 18) + [
        1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10, 11, 13, 14, 16, 18, 20, 22,
        24,
    ]
}
