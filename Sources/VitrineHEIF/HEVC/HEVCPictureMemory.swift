import VitrineImageCore

/// Where the coding tree blocks of a picture are.
struct HEVCBlockLayout: Sendable {
    let side: Int
    let columns: Int
    let rows: Int
    /// The block of the picture that is decoded as the i-th.
    let decodingOrder: [Int]
    /// The tile of each block of the picture.
    let tile: [Int]
    let isFirstOfTileRow: [Bool]

    var count: Int { decodingOrder.count }

    init(_ sequence: HEVCSequence, _ parameters: HEVCPictureParameters) throws(HEVCFault) {
        side = 1 << sequence.logCodingTreeBlock
        (columns, rows) = (sequence.widthInTreeBlocks, sequence.heightInTreeBlocks)
        let bounds =
            try parameters.tiles?.bounds(width: columns, height: rows) ?? (columns: [0, columns], rows: [0, rows])
        var order: [Int] = []
        var tile = [Int](repeating: 0, count: columns * rows)
        var isFirst = [Bool](repeating: false, count: columns * rows)
        order.reserveCapacity(columns * rows)
        for (j, (top, bottom)) in zip(bounds.rows, bounds.rows.dropFirst()).enumerated() {
            for (i, (left, right)) in zip(bounds.columns, bounds.columns.dropFirst()).enumerated() {
                for y in top..<bottom {
                    for x in left..<right {
                        tile[y * columns + x] = j * (bounds.columns.count - 1) + i
                        isFirst[y * columns + x] = x == left
                        order.append(y * columns + x)
                    }
                }
            }
        }
        (decodingOrder, self.tile, isFirstOfTileRow) = (order, tile, isFirst)
    }

    /// The block at a place in luma.
    @inline(__always)
    func block(_ x: Int, _ y: Int) -> Int { y / side &* columns &+ x / side }

    /// Whether the contexts behind a block are those that the next row of its tile begins with. A single block counts.
    func isSecondOfTileRow(_ block: Int) -> Bool {
        guard isFirstOfTileRow[block] else { return isFirstOfTileRow[block - 1] }
        return (block + 1) % columns == 0 || tile[block + 1] != tile[block]
    }
}

/// The samples of a picture: Y, and behind them Cb and Cr.
struct HEVCPlanes {
    private let first: UnsafeMutablePointer<UInt8>
    private let lumaStride: Int
    private let lumaCount: Int

    init(width: Int, height: Int) {
        (lumaStride, lumaCount) = (width, width * height)
        first = .allocate(capacity: lumaCount * 3 / 2)
        first.initialize(repeating: 128, count: lumaCount * 3 / 2)
    }

    func deallocate() { first.deallocate() }

    @inline(__always)
    func samples(_ channel: Int) -> UnsafeMutablePointer<UInt8> {
        channel == 0 ? first : first + (lumaCount &+ (channel &- 1) &* (lumaCount / 4))
    }

    @inline(__always)
    func bytesPerRow(_ channel: Int) -> Int { channel == 0 ? lumaStride : lumaStride / 2 }
}

/// The memory of a picture while it is decoded.
final class HEVCPictureMemory {
    let planes: HEVCPlanes
    /// For 4 × 4 samples of luma each: the region if it is decoded, or 0. One column and row in front, and 17 behind,
    /// are of no picture.
    let regions: UnsafeMutablePointer<UInt16>
    let unitsPerRow: Int
    let regionCount: Int
    /// The mode of luma, in units like those of `regions`.
    let modes: UnsafeMutablePointer<UInt8>
    /// For 8 × 8 samples of luma each, with one column and row in front.
    let depths: UnsafeMutablePointer<UInt8>
    let quantizers: UnsafeMutablePointer<Int8>
    let blocksPerRow: Int
    let blockCount: Int
    let contexts: UnsafeMutablePointer<UInt8>
    /// Contexts as they were behind the second block of a row, and behind the last block of a slice segment.
    let rowContexts: UnsafeMutablePointer<UInt8>
    let sliceContexts: UnsafeMutablePointer<UInt8>
    let coefficients: UnsafeMutablePointer<Int16>
    let border: UnsafeMutablePointer<UInt8>
    let positions: UnsafeMutablePointer<UInt8>
    /// 1,024 for each size and channel; nil: all 16.
    let factors: UnsafeMutablePointer<UInt8>?

    init(width: Int, height: Int, factors lists: [[[UInt8]]]?) {
        planes = HEVCPlanes(width: width, height: height)
        unitsPerRow = width / 4 + 18
        regionCount = unitsPerRow * (height / 4 + 18)
        regions = .allocate(capacity: regionCount)
        regions.initialize(repeating: 0, count: regionCount)
        modes = .allocate(capacity: regionCount)
        modes.initialize(repeating: 1, count: regionCount)
        blocksPerRow = width / 8 + 1
        blockCount = blocksPerRow * (height / 8 + 1)
        depths = .allocate(capacity: blockCount)
        depths.initialize(repeating: 0, count: blockCount)
        quantizers = .allocate(capacity: blockCount)
        quantizers.initialize(repeating: 0, count: blockCount)
        contexts = .allocate(capacity: HEVCContext.count)
        rowContexts = .allocate(capacity: HEVCContext.count)
        sliceContexts = .allocate(capacity: HEVCContext.count)
        for pointer in [contexts, rowContexts, sliceContexts] { HEVCContext.begin(pointer, quantizer: 26) }
        coefficients = .allocate(capacity: 32 * 32)
        coefficients.initialize(repeating: 0, count: 32 * 32)
        border = .allocate(capacity: 4 * 32 + 1)
        border.initialize(repeating: 128, count: 4 * 32 + 1)
        positions = .allocate(capacity: 17)
        positions.initialize(repeating: 0, count: 17)
        factors = lists.map { lists in
            let factors = UnsafeMutablePointer<UInt8>.allocate(capacity: 12 * 1024)
            factors.initialize(repeating: 16, count: 12 * 1024)
            for (i, list) in lists.joined().enumerated() {
                list.withUnsafeBufferPointer { (factors + i * 1024).update(from: $0.baseAddress!, count: $0.count) }
            }
            return factors
        }
    }

    deinit {
        planes.deallocate()
        regions.deallocate()
        modes.deallocate()
        depths.deallocate()
        quantizers.deallocate()
        contexts.deallocate()
        rowContexts.deallocate()
        sliceContexts.deallocate()
        coefficients.deallocate()
        border.deallocate()
        positions.deallocate()
        factors?.deallocate()
    }
}
