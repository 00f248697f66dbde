import VitrineImageCore

/// Blocks of four by four pixels in 16 bytes, of colours between endpoints: BC7 for bytes, BC6H for linear light.
///
/// Source: Khronos Data Format Specification 1.3, chapter 20 (BPTC).
enum BPTCBlock {
    /// Decodes a block of BC7 to 16 pixels of RGBA. Blocks of no mode are transparent black.
    static func decodeBC7(_ block: UnsafePointer<UInt8>, into target: UnsafeMutablePointer<UInt8>, bytesPerRow: Int) {
        var bits = BPTCBits(block)
        let number = bits.low.trailingZeroBitCount
        guard number < 8 else {
            for y in 0..<4 { (target + y &* bytesPerRow).update(repeating: 0, count: 16) }
            return
        }
        let mode = BC7Mode.all[number]
        bits.skip(number &+ 1)
        let partition = bits.take(mode.partitionBits)
        let rotation = bits.take(mode.rotationBits)
        let swapsIndices = bits.take(mode.selectorBits) == 1
        let ends = mode.endpoints(&bits)
        let subsets = BPTCPartition(subsets: mode.subsets, partition)
        var indices = BPTCIndices(bits: mode.indexBits, subsets, &bits)
        var second = indices
        if mode.secondIndexBits > 0 {
            second = BPTCIndices(bits: mode.secondIndexBits, BPTCPartition(subsets: 1, 0), &bits)
            if swapsIndices { swap(&indices, &second) }
        }
        for i in 0..<16 {
            let subset = subsets[i]
            let (a, b) = (ends[2 &* subset], ends[2 &* subset &+ 1])
            let (color, alpha) = (indices.weight(i), second.weight(i))
            let weights = SIMD4<Int32>(color, color, color, alpha)
            var pixel = (a &* (64 &- weights) &+ b &* weights &+ 32) &>> 6
            switch rotation {
            case 1: (pixel.x, pixel.w) = (pixel.w, pixel.x)
            case 2: (pixel.y, pixel.w) = (pixel.w, pixel.y)
            case 3: (pixel.z, pixel.w) = (pixel.w, pixel.z)
            default: break
            }
            let row = target + (i / 4) * bytesPerRow
            let to = row + (i % 4) * 4
            for c in 0..<4 { to[c] = UInt8(truncatingIfNeeded: pixel[c]) }
        }
    }

    /// Decodes a block of BC6H to 16 pixels of red, green and blue, as numbers of 16 bits (IEEE 754 binary16). Blocks
    /// of no mode are black.
    static func decodeBC6H(
        _ block: UnsafePointer<UInt8>, isSigned: Bool, into target: UnsafeMutablePointer<UInt16>, samplesPerRow: Int
    ) {
        var bits = BPTCBits(block)
        let short = bits.take(2)
        guard let mode = BC6HMode.all[short < 2 ? short : bits.take(3) << 2 | short] else {
            for y in 0..<4 { (target + y &* samplesPerRow).update(repeating: 0, count: 12) }
            return
        }
        let (ends, shape) = mode.endpoints(&bits, isSigned: isSigned)
        let subsets = BPTCPartition(subsets: mode.subsets, shape)
        let indices = BPTCIndices(bits: mode.subsets == 1 ? 4 : 3, subsets, &bits)
        for i in 0..<16 {
            let (a, b) = (ends[2 &* subsets[i]], ends[2 &* subsets[i] &+ 1])
            let weight = indices.weight(i)
            let light = (a &* (64 &- weight) &+ b &* weight &+ 32) &>> 6
            let row = target + (i / 4) * samplesPerRow
            let to = row + (i % 4) * 3
            for c in 0..<3 { to[c] = half(light[c], isSigned: isSigned) }
        }
    }

    /// Scales to the finite numbers: 31/64 of the unsigned, and 31/32 of the signed range.
    private static func half(_ value: Int32, isSigned: Bool) -> UInt16 {
        guard isSigned else { return UInt16(truncatingIfNeeded: (value &* 31) &>> 6) }
        let magnitude = UInt16(truncatingIfNeeded: (abs(value) &* 31) &>> 5)
        return value < 0 ? magnitude | 0x8000 : magnitude
    }
}

/// The bits of a block, from the lowest one of the first byte.
private struct BPTCBits {
    private(set) var low: UInt64
    private var high: UInt64

    init(_ block: UnsafePointer<UInt8>) {
        (low, high) = (0, 0)
        for i in 0..<8 {
            low |= UInt64(block[i]) &<< UInt64(8 &* i)
            high |= UInt64(block[8 &+ i]) &<< UInt64(8 &* i)
        }
    }

    /// Takes up to 31 bits.
    @inline(__always)
    mutating func take(_ count: Int) -> Int {
        let value = Int(low & (1 &<< UInt64(count) &- 1))
        skip(count)
        return value
    }

    @inline(__always)
    mutating func skip(_ count: Int) {
        guard count > 0 else { return }
        low = low &>> UInt64(count) | high &<< UInt64(64 &- count)
        high = high &>> UInt64(count)
    }
}

/// Which pixels belong to which pair of endpoints.
private struct BPTCPartition {
    /// Two bits a pixel, the first pixel lowest.
    private let pattern: UInt32
    /// Pixels whose index has one bit less, one in each subset.
    let anchors: UInt16

    init(subsets: Int, _ number: Int) {
        switch subsets {
        case 2:
            let mask = UInt32(BPTCPartition.pairs[number])
            // Bit i of the mask goes to bit 2i.
            var spread = (mask | mask << 8) & 0x00FF_00FF
            spread = (spread | spread << 4) & 0x0F0F_0F0F
            spread = (spread | spread << 2) & 0x3333_3333
            pattern = (spread | spread << 1) & 0x5555_5555
            anchors = 1 | 1 << UInt16(BPTCPartition.pairAnchors[number])
        case 3:
            pattern = BPTCPartition.triples[number]
            anchors =
                1 | 1 << UInt16(BPTCPartition.tripleAnchors[number]) | 1 << UInt16(BPTCPartition.lastAnchors[number])
        default: (pattern, anchors) = (0, 1)
        }
    }

    @inline(__always)
    subscript(pixel: Int) -> Int { Int(pattern &>> UInt32(2 &* pixel) & 3) }

    private static let pairs: [UInt16] = [
        0xCCCC, 0x8888, 0xEEEE, 0xECC8, 0xC880, 0xFEEC, 0xFEC8, 0xEC80, 0xC800, 0xFFEC, 0xFE80, 0xE800, 0xFFE8, 0xFF00,
        0xFFF0, 0xF000, 0xF710, 0x008E, 0x7100, 0x08CE, 0x008C, 0x7310, 0x3100, 0x8CCE, 0x088C, 0x3110, 0x6666, 0x366C,
        0x17E8, 0x0FF0, 0x718E, 0x399C, 0xAAAA, 0xF0F0, 0x5A5A, 0x33CC, 0x3C3C, 0x55AA, 0x9696, 0xA55A, 0x73CE, 0x13C8,
        0x324C, 0x3BDC, 0x6996, 0xC33C, 0x9966, 0x0660, 0x0272, 0x04E4, 0x4E40, 0x2720, 0xC936, 0x936C, 0x39C6, 0x639C,
        0x9336, 0x9CC6, 0x817E, 0xE718, 0xCCF0, 0x0FCC, 0x7744, 0xEE22,
    ]
    private static let triples: [UInt32] = [
        0xAA68_5050, 0x6A5A_5040, 0x5A5A_4200, 0x5450_A0A8, 0xA5A5_0000, 0xA0A0_5050, 0x5555_A0A0, 0x5A5A_5050,
        0xAA55_0000, 0xAA55_5500, 0xAAAA_5500, 0x9090_9090, 0x9494_9494, 0xA4A4_A4A4, 0xA9A5_9450, 0x2A0A_4250,
        0xA594_5040, 0x0A42_5054, 0xA5A5_A500, 0x55A0_A0A0, 0xA8A8_5454, 0x6A6A_4040, 0xA4A4_5000, 0x1A1A_0500,
        0x0050_A4A4, 0xAAA5_9090, 0x1469_6914, 0x6969_1400, 0xA085_85A0, 0xAA82_1414, 0x50A4_A450, 0x6A5A_0200,
        0xA9A5_8000, 0x5090_A0A8, 0xA8A0_9050, 0x2424_2424, 0x00AA_5500, 0x2492_4924, 0x2449_9224, 0x50A5_0A50,
        0x500A_A550, 0xAAAA_4444, 0x6666_0000, 0xA5A0_A5A0, 0x50A0_50A0, 0x6928_6928, 0x44AA_AA44, 0x6666_6600,
        0xAA44_4444, 0x54A8_54A8, 0x9580_9580, 0x9696_9600, 0xA854_54A8, 0x8095_9580, 0xAA14_1414, 0x9696_0000,
        0xAAAA_1414, 0xA050_50A0, 0xA0A5_A5A0, 0x9600_0000, 0x4080_4080, 0xA9A8_A9A8, 0xAAAA_AA44, 0x2A4A_5254,
    ]
    private static let pairAnchors: [UInt8] = [
        15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 2, 8, 2, 2, 8, 8, 15, 2, 8, 2, 2, 8, 8, 2, 2,
        15, 15, 6, 8, 2, 8, 15, 15, 2, 8, 2, 2, 2, 15, 15, 6, 6, 2, 6, 8, 15, 15, 2, 2, 15, 15, 15, 15, 15, 2, 2, 15,
    ]
    private static let tripleAnchors: [UInt8] = [
        3, 3, 15, 15, 8, 3, 15, 15, 8, 8, 6, 6, 6, 5, 3, 3, 3, 3, 8, 15, 3, 3, 6, 10, 5, 8, 8, 6, 8, 5, 15, 15, 8, 15, 3,
        5, 6, 10, 8, 15, 15, 3, 15, 5, 15, 15, 15, 15, 3, 15, 5, 5, 5, 8, 5, 10, 5, 10, 8, 13, 15, 12, 3, 3,
    ]
    private static let lastAnchors: [UInt8] = [
        15, 8, 8, 3, 15, 15, 3, 8, 15, 15, 15, 15, 15, 15, 15, 8, 15, 8, 15, 3, 15, 8, 15, 8, 3, 15, 6, 10, 15, 15, 10, 8,
        15, 3, 15, 10, 10, 8, 9, 10, 6, 15, 8, 15, 3, 6, 6, 8, 15, 3, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 3, 15, 15, 8,
    ]
}

/// The weights of 16 pixels, in 64ths.
private struct BPTCIndices {
    private var packed: UInt64 = 0
    private let weights: [Int32]

    init(bits count: Int, _ subsets: BPTCPartition, _ bits: inout BPTCBits) {
        weights = BPTCIndices.all[count - 2]
        for i in 0..<16 {
            let isShort = subsets.anchors &>> UInt16(i) & 1 == 1
            packed |= UInt64(bits.take(isShort ? count &- 1 : count)) &<< UInt64(4 &* i)
        }
    }

    @inline(__always)
    func weight(_ pixel: Int) -> Int32 { weights[Int(packed &>> UInt64(4 &* pixel) & 15)] }

    /// For indices of 2, 3 and 4 bits.
    private static let all: [[Int32]] = [
        [0, 21, 43, 64], [0, 9, 18, 27, 37, 46, 55, 64],
        [0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64],
    ]
}

/// One of the eight layouts of BC7.
private struct BC7Mode {
    /// How the lowest bits of endpoints are shared.
    enum LowBits {
        case none, each, bySubset
    }

    let subsets: Int, partitionBits: Int, rotationBits: Int, selectorBits: Int
    let colorBits: Int, alphaBits: Int, lowBits: LowBits
    let indexBits: Int, secondIndexBits: Int

    /// A row of the table, by its columns.
    private typealias Row = (
        subsets: Int, partition: Int, rotation: Int, selector: Int, color: Int, alpha: Int, lowBits: LowBits,
        index: Int, secondIndex: Int
    )

    private init(_ row: Row) {
        (subsets, partitionBits, rotationBits, selectorBits) = (row.subsets, row.partition, row.rotation, row.selector)
        (colorBits, alphaBits, lowBits) = (row.color, row.alpha, row.lowBits)
        (indexBits, secondIndexBits) = (row.index, row.secondIndex)
    }

    /// Table 110 of the specification.
    static let all: [BC7Mode] = {
        let rows: [Row] = [
            (3, 4, 0, 0, 4, 0, .each, 3, 0), (2, 6, 0, 0, 6, 0, .bySubset, 3, 0),
            (3, 6, 0, 0, 5, 0, .none, 2, 0), (2, 6, 0, 0, 7, 0, .each, 2, 0),
            (1, 0, 2, 1, 5, 6, .none, 2, 3), (1, 0, 2, 0, 7, 8, .none, 2, 2),
            (1, 0, 0, 0, 7, 7, .each, 4, 0), (2, 6, 0, 0, 5, 5, .each, 2, 0),
        ]
        return rows.map { BC7Mode($0) }
    }()

    /// Two endpoints of each subset, as bytes. Without alpha, it is 255.
    func endpoints(_ bits: inout BPTCBits) -> [SIMD4<Int32>] {
        var ends = [SIMD4<Int32>](repeating: .zero, count: 2 * subsets)
        for channel in 0..<(alphaBits > 0 ? 4 : 3) {
            let count = channel == 3 ? alphaBits : colorBits
            for i in ends.indices { ends[i][channel] = Int32(bits.take(count)) }
        }
        if lowBits != .none {
            var shared: Int32 = 0
            for i in ends.indices {
                if lowBits == .each || i & 1 == 0 { shared = Int32(bits.take(1)) }
                ends[i] = ends[i] &<< 1 | SIMD4(repeating: shared)
            }
        }
        let extra = lowBits == .none ? 0 : 1
        let (color, alpha) = (Int32(colorBits + extra), Int32(alphaBits + extra))
        let counts = SIMD4(color, color, color, alpha)
        for i in ends.indices {
            // The highest bits fill up the byte.
            let value = ends[i] &<< (8 &- counts)
            ends[i] = value | value &>> counts
            if alphaBits == 0 { ends[i].w = 255 }
        }
        return ends
    }
}

/// One of the fourteen layouts of BC6H.
private struct BC6HMode {
    /// A run of bits of one endpoint's channel, lowest first unless `first` exceeds `last`.
    private struct Run {
        var end: Int, channel: Int, first: Int, last: Int
    }

    let subsets: Int
    private let isTransformed: Bool
    private let bits: Int
    private let deltaBits: SIMD4<Int32>
    private let runs: [Run]

    /// - Parameters:
    ///   - bits: Of the first endpoint.
    ///   - deltas: Bits of the other endpoints' red, green and blue.
    ///   - layout: Fields as the specification names them: `r`, `g` or `b`, then `w`, `x`, `y` or `z` for the endpoint,
    ///     then one bit, or the last and the first one.
    private init(
        subsets: Int, bits: Int, deltas: SIMD4<Int32>, isTransformed: Bool = true, _ layout: String
    ) {
        (self.subsets, self.bits, deltaBits, self.isTransformed) = (subsets, bits, deltas, isTransformed)
        runs = layout.split(separator: " ").map { field in
            let name = Array(field.utf8.prefix(2))
            let numbers = field.dropFirst(2).split(separator: ":").map { Int($0) ?? 0 }
            let channel = name[0] == UInt8(ascii: "r") ? 0 : name[0] == UInt8(ascii: "g") ? 1 : 2
            return Run(
                end: Int(name[1]) - Int(UInt8(ascii: "w")), channel: channel, first: numbers[numbers.count - 1],
                last: numbers[0])
        }
    }

    /// By the number in the first two or five bits; nil for reserved numbers. Tables 117 and 118 of the specification.
    static let all: [BC6HMode?] = {
        var all = [BC6HMode?](repeating: nil, count: 32)
        let three = " rz4:0 bz3"
        all[0x00] = BC6HMode(
            subsets: 2, bits: 10, deltas: SIMD4(5, 5, 5, 0),
            "gy4 by4 bz4 rw9:0 gw9:0 bw9:0 rx4:0 gz4 gy3:0 gx4:0 bz0 gz3:0 bx4:0 bz1 by3:0 ry4:0 bz2" + three)
        all[0x01] = BC6HMode(
            subsets: 2, bits: 7, deltas: SIMD4(6, 6, 6, 0),
            "gy5 gz4 gz5 rw6:0 bz0 bz1 by4 gw6:0 by5 bz2 gy4 bw6:0 bz3 bz5 bz4 rx5:0 gy3:0 gx5:0 gz3:0 bx5:0 by3:0 "
                + "ry5:0 rz5:0")
        all[0x02] = BC6HMode(
            subsets: 2, bits: 11, deltas: SIMD4(5, 4, 4, 0),
            "rw9:0 gw9:0 bw9:0 rx4:0 rw10 gy3:0 gx3:0 gw10 bz0 gz3:0 bx3:0 bw10 bz1 by3:0 ry4:0 bz2" + three)
        all[0x06] = BC6HMode(
            subsets: 2, bits: 11, deltas: SIMD4(4, 5, 4, 0),
            "rw9:0 gw9:0 bw9:0 rx3:0 rw10 gz4 gy3:0 gx4:0 gw10 gz3:0 bx3:0 bw10 bz1 by3:0 ry3:0 bz0 bz2 rz3:0 gy4 bz3")
        all[0x0A] = BC6HMode(
            subsets: 2, bits: 11, deltas: SIMD4(4, 4, 5, 0),
            "rw9:0 gw9:0 bw9:0 rx3:0 rw10 by4 gy3:0 gx3:0 gw10 bz0 gz3:0 bx4:0 bw10 by3:0 ry3:0 bz1 bz2 rz3:0 bz4 bz3")
        all[0x0E] = BC6HMode(
            subsets: 2, bits: 9, deltas: SIMD4(5, 5, 5, 0),
            "rw8:0 by4 gw8:0 gy4 bw8:0 bz4 rx4:0 gz4 gy3:0 gx4:0 bz0 gz3:0 bx4:0 bz1 by3:0 ry4:0 bz2" + three)
        all[0x12] = BC6HMode(
            subsets: 2, bits: 8, deltas: SIMD4(6, 5, 5, 0),
            "rw7:0 gz4 by4 gw7:0 bz2 gy4 bw7:0 bz3 bz4 rx5:0 gy3:0 gx4:0 bz0 gz3:0 bx4:0 bz1 by3:0 ry5:0 rz5:0")
        all[0x16] = BC6HMode(
            subsets: 2, bits: 8, deltas: SIMD4(5, 6, 5, 0),
            "rw7:0 bz0 by4 gw7:0 gy5 gy4 bw7:0 gz5 bz4 rx4:0 gz4 gy3:0 gx5:0 gz3:0 bx4:0 bz1 by3:0 ry4:0 bz2" + three)
        all[0x1A] = BC6HMode(
            subsets: 2, bits: 8, deltas: SIMD4(5, 5, 6, 0),
            "rw7:0 bz1 by4 gw7:0 by5 gy4 bw7:0 bz5 bz4 rx4:0 gz4 gy3:0 gx4:0 bz0 gz3:0 bx5:0 by3:0 ry4:0 bz2" + three)
        all[0x1E] = BC6HMode(
            subsets: 2, bits: 6, deltas: SIMD4(6, 6, 6, 0), isTransformed: false,
            "rw5:0 gz4 bz0 bz1 by4 gw5:0 gy5 by5 bz2 gy4 bw5:0 gz5 bz3 bz5 bz4 rx5:0 gy3:0 gx5:0 gz3:0 bx5:0 by3:0 "
                + "ry5:0 rz5:0")
        all[0x03] = BC6HMode(
            subsets: 1, bits: 10, deltas: SIMD4(10, 10, 10, 0), isTransformed: false,
            "rw9:0 gw9:0 bw9:0 rx9:0 gx9:0 bx9:0")
        all[0x07] = BC6HMode(
            subsets: 1, bits: 11, deltas: SIMD4(9, 9, 9, 0), "rw9:0 gw9:0 bw9:0 rx8:0 rw10 gx8:0 gw10 bx8:0 bw10")
        all[0x0B] = BC6HMode(
            subsets: 1, bits: 12, deltas: SIMD4(8, 8, 8, 0),
            "rw9:0 gw9:0 bw9:0 rx7:0 rw10:11 gx7:0 gw10:11 bx7:0 bw10:11")
        all[0x0F] = BC6HMode(
            subsets: 1, bits: 16, deltas: SIMD4(4, 4, 4, 0),
            "rw9:0 gw9:0 bw9:0 rx3:0 rw10:15 gx3:0 gw10:15 bx3:0 bw10:15")
        return all
    }()

    /// Two endpoints of each subset in 16 bits, and the number of the partition.
    func endpoints(_ source: inout BPTCBits, isSigned: Bool) -> (ends: [SIMD4<Int32>], partition: Int) {
        // The last letters of the four endpoints follow one another from w to z.
        var ends = [SIMD4<Int32>](repeating: .zero, count: 4)
        for run in runs {
            let step = run.first <= run.last ? 1 : -1
            for bit in stride(from: run.first, through: run.last, by: step) {
                ends[run.end][run.channel] |= Int32(source.take(1)) &<< Int32(bit)
            }
        }
        let partition = subsets == 2 ? source.take(5) : 0
        if isSigned { ends[0] = BC6HMode.extended(ends[0], SIMD4(repeating: Int32(bits))) }
        let mask = Int32(truncatingIfNeeded: (1 &<< bits) &- 1)
        for i in 1..<(2 * subsets) {
            if isTransformed {
                ends[i] = (ends[0] &+ BC6HMode.extended(ends[i], deltaBits)) & SIMD4(repeating: mask)
                if isSigned { ends[i] = BC6HMode.extended(ends[i], SIMD4(repeating: Int32(bits))) }
            } else if isSigned {
                ends[i] = BC6HMode.extended(ends[i], deltaBits)
            }
        }
        for i in ends.indices {
            for channel in 0..<3 { ends[i][channel] = unquantized(ends[i][channel], isSigned: isSigned) }
        }
        return (ends, partition)
    }

    /// The numbers of so many bits with signs.
    private static func extended(_ value: SIMD4<Int32>, _ bits: SIMD4<Int32>) -> SIMD4<Int32> {
        let shift = 32 &- bits
        return (value &<< shift) &>> shift
    }

    private func unquantized(_ value: Int32, isSigned: Bool) -> Int32 {
        guard isSigned else {
            let most = Int32(truncatingIfNeeded: (1 &<< bits) &- 1)
            if bits >= 15 || value == 0 { return value }
            return value == most ? 0xFFFF : (value &<< 15 &+ 0x4000) &>> Int32(bits &- 1)
        }
        if bits >= 16 || value == 0 { return value }
        let magnitude = abs(value)
        let most = Int32(1) &<< Int32(bits &- 1) &- 1
        let result = magnitude >= most ? 0x7FFF : (magnitude &<< 15 &+ 0x4000) &>> Int32(bits &- 1)
        return value < 0 ? -result : result
    }
}
