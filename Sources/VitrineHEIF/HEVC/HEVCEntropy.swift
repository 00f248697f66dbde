import VitrineImageCore
import CVitrinePixels

/// The arithmetic decoder of HEVC (CABAC).
///
/// `value` holds the offset of the standard with `spare` further bits of the stream below it, so that a bit is read by
/// a comparison with a shifted range. Most bits that are decoded by a probability cannot be foreseen, so ``bit(_:)``
/// has no branch that depends on one. Bits of equal probability are read many at a time by one division.
///
/// Behind the end it reads zeros, and ``overrun`` counts them.
///
/// Source: ITU-T H.265 §9.3.
struct HEVCEntropy {
    private var range: UInt64 = 510
    private var value: UInt64 = 0
    private var spare: UInt64 = 0
    private var next: UnsafePointer<UInt8>
    private let start: UnsafePointer<UInt8>
    private let end: UnsafePointer<UInt8>
    private let states: UnsafePointer<UInt64>
    private let reciprocals: UnsafePointer<UInt32>
    /// Bytes behind the end that were needed.
    private(set) var overrun = 0

    /// Begins at the first byte of `bytes`, which outlive it, as do the tables.
    init(_ bytes: UnsafeBufferPointer<UInt8>, _ tables: HEVCTables) {
        start = bytes.baseAddress ?? UnsafePointer(bitPattern: 1)!
        next = start
        end = start + bytes.count
        states = UnsafePointer(tables.states)
        reciprocals = UnsafePointer(tables.reciprocals)
        begin()
    }

    /// Begins anew at the next byte (§9.3.2.5).
    private mutating func begin() {
        range = 510
        value = 0
        spare = 0
        refill()
        spare &-= 9
        // No encoder writes such an offset, and the others never grow above the range.
        if value >= range &<< spare {
            value = 0
            overrun &+= 1
        }
    }

    /// Reads four bytes.
    @inline(__always)
    private mutating func refill() {
        if end - next >= 4 {
            let word = UnsafeRawPointer(next).loadUnaligned(as: UInt32.self)
            value = value &<< 32 | UInt64(UInt32(bigEndian: word))
            next += 4
            spare &+= 32
        } else {
            // The function gets a copy, so that the original may be kept in registers. So do others below.
            var copy = self
            copy.refillAtEnd()
            self = copy
        }
    }

    @inline(never)
    private mutating func refillAtEnd() {
        for _ in 0..<4 {
            value = value &<< 8
            if next < end {
                value |= UInt64(next.pointee)
                next += 1
            } else {
                overrun &+= 1
            }
        }
        spare &+= 32
    }

    /// Reads a bit by the probability of its context, and adapts that.
    @inline(__always)
    mutating func bit(_ context: UnsafeMutablePointer<UInt8>) -> Int {
        let state = context.pointee
        let entry = states[Int(state)]
        let low = (entry &>> ((range &>> 3) & 0x18)) & 0xFF
        let high = range &- low
        let scaled = high &<< spare
        let isLow: UInt64 = value >= scaled ? 1 : 0
        let mask = 0 &- isLow
        value &-= scaled & mask
        // A range above 255 is not shifted, and one of the likely bit once at most.
        let lowShift = UInt64(truncatingIfNeeded: (low | 1).leadingZeroBitCount &- 55)
        let highShift = (high &>> 8) ^ 1
        let shift = highShift ^ ((highShift ^ lowShift) & mask)
        range = (high ^ ((high ^ low) & mask)) &<< shift
        spare &-= shift
        context.pointee = UInt8(truncatingIfNeeded: entry &>> (32 &+ (mask & 8)))
        if spare < 16 { refill() }
        return Int(truncatingIfNeeded: (UInt64(state) ^ isLow) & 1)
    }

    /// Reads `n` bits of equal probability, at most 16.
    @inline(__always)
    mutating func equal(_ n: Int) -> Int {
        let ahead = peek(n)
        take(ahead, n)
        return Int(truncatingIfNeeded: ahead)
    }

    /// The next `n` bits of equal probability.
    @inline(__always)
    private func peek(_ n: Int) -> UInt64 {
        // Below 2²⁵, for which a multiplication by the reciprocal gives the exact quotient.
        let dividend = value &>> (spare &- UInt64(truncatingIfNeeded: n))
        return (dividend &* UInt64(reciprocals[Int(truncatingIfNeeded: range) &- 256])) &>> 39
    }

    @inline(__always)
    private mutating func take(_ bits: UInt64, _ n: Int) {
        spare &-= UInt64(truncatingIfNeeded: n)
        value &-= (bits &* range) &<< spare
        if spare < 16 { refill() }
    }

    /// Reads coeff_abs_level_remaining (§9.3.3.11); -1 for a code that is too long.
    @inline(__always)
    mutating func remaining(rice: Int) -> Int {
        let ahead = peek(16)
        let ones = (~ahead &<< 48).leadingZeroBitCount
        if ones < 4 {
            let length = ones &+ 1 &+ rice
            let bits = ahead &>> UInt64(truncatingIfNeeded: 16 &- length)
            take(bits, length)
            return ones &<< rice | (Int(truncatingIfNeeded: bits) & ((1 &<< rice) &- 1))
        }
        var copy = self
        let value = copy.longRemaining(ones, rice)
        self = copy
        return value
    }

    @inline(never)
    private mutating func longRemaining(_ known: Int, _ rice: Int) -> Int {
        var ones = min(known, 16)
        _ = equal(ones)
        if ones == 16 {
            while ones < 32, equal(1) == 1 { ones += 1 }
        } else {
            _ = equal(1)
        }
        guard ones < 32 else { return -1 }
        let count = ones - 3 + rice
        let high = count > 16 ? equal(count - 16) : 0
        return ((1 << (ones - 3) + 2) << rice) + (high << 16 | equal(min(count, 16)))
    }

    /// Reads a bit that ends something (§9.3.4.3.5).
    mutating func isEnd() -> Bool {
        range &-= 2
        if value >= range &<< spare { return true }
        if range < 256 {
            range = range &<< 1
            spare &-= 1
            if spare < 16 { refill() }
        }
        return false
    }

    /// Where the data behind the bit of ``isEnd()`` begin.
    private var behindEnd: UnsafePointer<UInt8> {
        let bits = (next - start) * 8 - Int(truncatingIfNeeded: spare)
        return start + min((bits + 7) / 8, end - start)
    }

    /// Begins anew behind the bit of ``isEnd()``.
    mutating func beginPart() {
        next = behindEnd
        begin()
    }

    /// Reads numbers of some bits each, as they are, behind the bit of ``isEnd()``, and begins anew behind them.
    mutating func samples(_ counts: [(count: Int, bits: Int)], _ body: (_ part: Int, _ i: Int, _ value: Int) -> Void) {
        next = behindEnd
        var (word, available) = (0, 0)
        for (part, (count, bits)) in counts.enumerated() {
            for i in 0..<count {
                while available < bits {
                    word = (word & 0xFFFF) << 8
                    if next < end {
                        word |= Int(next.pointee)
                        next += 1
                    } else {
                        overrun += 1
                    }
                    available += 8
                }
                available -= bits
                body(part, i, (word >> available) & ((1 << bits) - 1))
            }
        }
        begin()
    }
}

/// The places of the contexts of each syntax element, and their first states in intra slices (§9.3.2.2, tables 9-5 to
/// 9-37, initType 0).
enum HEVCContext {
    static let mergesOffsets = 0
    static let offsetType = 1
    static let splitsCoding = 2
    static let isBypass = 5
    static let partMode = 6
    static let isPredicted = 7
    static let chromaMode = 8
    static let splitsTransform = 9
    static let hasLuma = 12
    static let hasChroma = 14
    static let quantizerStep = 18
    static let skipsTransform = 20
    static let lastX = 22
    static let lastY = 40
    static let hasGroup = 58
    static let isSignificant = 62
    static let isAboveOne = 104
    static let isAboveTwo = 128
    static let count = 134

    private static let values: [UInt8] = [
        153, 200, 139, 141, 157, 154, 184, 184, 63, 153, 138, 138, 111, 141, 94, 138, 182, 154, 154, 154, 139, 139,
        110, 110, 124, 125, 140, 153, 125, 127, 140, 109, 111, 143, 127, 111, 79, 108, 123, 63,
        110, 110, 124, 125, 140, 153, 125, 127, 140, 109, 111, 143, 127, 111, 79, 108, 123, 63,
        91, 171, 134, 141,
        111, 111, 125, 110, 110, 94, 124, 108, 124, 107, 125, 141, 179, 153, 125, 107, 125, 141, 179, 153, 125,
        107, 125, 141, 179, 153, 125, 140, 139, 182, 182, 152, 136, 152, 136, 153, 136, 139, 111, 136, 139, 111,
        140, 92, 137, 138, 140, 152, 138, 139, 153, 74, 149, 92, 139, 107, 122, 152, 140, 179, 166, 182, 140, 227, 122,
        197,
        138, 153, 136, 167, 152, 152,
    ]

    /// Sets all contexts to their first states: twice the number of the state, and the bit that is likely.
    static func begin(_ contexts: UnsafeMutablePointer<UInt8>, quantizer: Int) {
        for (i, value) in values.enumerated() {
            let slope = Int(value >> 4) * 5 - 45
            let offset = (Int(value & 15) << 3) - 16
            let state = max(1, min((slope * quantizer) >> 4 + offset, 126))
            contexts[i] = UInt8(state <= 63 ? (63 - state) << 1 : (state - 64) << 1 | 1)
        }
    }
}

/// Tables that all pictures share, those of the loops in C as well.
///
/// Unchecked: nothing is written after `init`.
final class HEVCTables: @unchecked Sendable {
    static let shared = HEVCTables()

    /// For each state, bytes from the lowest on: the range of the unlikely bit for each quarter of the range, the state
    /// behind the likely bit, and that behind the unlikely one.
    let states: UnsafeMutablePointer<UInt64>
    /// 2³⁹ / range, rounded up.
    let reciprocals: UnsafeMutablePointer<UInt32>
    let scans: HEVCScan

    /// Table 9-46.
    private static let unlikely: [UInt8] = [
        128, 176, 208, 240, 128, 167, 197, 227, 128, 158, 187, 216, 123, 150, 178, 205, 116, 142, 169, 195, 111, 135,
        160, 185, 105, 128, 152, 175, 100, 122, 144, 166, 95, 116, 137, 158, 90, 110, 130, 150, 85, 104, 123, 142, 81,
        99, 117, 135, 77, 94, 111, 128, 73, 89, 105, 122, 69, 85, 100, 116, 66, 80, 95, 110, 62, 76, 90, 104, 59, 72,
        86, 99, 56, 69, 81, 94, 53, 65, 77, 89, 51, 62, 73, 85, 48, 59, 69, 80, 46, 56, 66, 76, 43, 53, 63, 72, 41, 50,
        59, 69, 39, 48, 56, 65, 37, 45, 54, 62, 35, 43, 51, 59, 33, 41, 48, 56, 32, 39, 46, 53, 30, 37, 43, 50, 29, 35,
        41, 48, 27, 33, 39, 45, 26, 31, 37, 43, 24, 30, 35, 41, 23, 28, 33, 39, 22, 27, 32, 37, 21, 26, 30, 35, 20, 24,
        29, 33, 19, 23, 27, 31, 18, 22, 26, 30, 17, 21, 25, 28, 16, 20, 23, 27, 15, 19, 22, 25, 14, 18, 21, 24, 14, 17,
        20, 23, 13, 16, 19, 22, 12, 15, 18, 21, 12, 14, 17, 20, 11, 14, 16, 19, 11, 13, 15, 18, 10, 12, 15, 17, 10, 12,
        14, 16, 9, 11, 13, 15, 9, 11, 12, 14, 8, 10, 12, 14, 8, 9, 11, 13, 7, 9, 11, 12, 7, 9, 10, 12, 7, 8, 10, 11, 6,
        8, 9, 11, 6, 7, 9, 10, 6, 7, 8, 9, 2, 2, 2, 2,
    ]
    /// Table 9-47, transIdxLps.
    private static let behindUnlikely: [UInt8] = [
        0, 0, 1, 2, 2, 4, 4, 5, 6, 7, 8, 9, 9, 11, 11, 12, 13, 13, 15, 15, 16, 16, 18, 18, 19, 19, 21, 21, 22, 22, 23,
        24, 24, 25, 26, 26, 27, 27, 28, 29, 29, 30, 30, 30, 31, 32, 32, 33, 33, 33, 34, 34, 35, 35, 35, 36, 36, 36, 37,
        37, 37, 38, 38, 63,
    ]

    private init() {
        cpixels_hevc_start()
        states = .allocate(capacity: 128)
        reciprocals = .allocate(capacity: 256)
        scans = HEVCScan()
        for state in 0..<64 {
            for likely in 0..<2 {
                let behindLikely = min(state + 1, 62) * 2 + likely
                let behindUnlikely = Int(Self.behindUnlikely[state]) * 2 + (state == 0 ? 1 - likely : likely)
                var entry = UInt64(behindLikely) << 32 | UInt64(behindUnlikely) << 40
                for quarter in 0..<4 { entry |= UInt64(Self.unlikely[state * 4 + quarter]) << UInt64(8 * quarter) }
                states[state * 2 + likely] = entry
            }
        }
        for range in 256..<512 { reciprocals[range - 256] = UInt32(((1 << 39) + range - 1) / range) }
    }
}

/// The orders of coefficients (§6.5.3 to 6.5.5), and the contexts that their places have.
struct HEVCScan {
    /// The place of each coefficient of 4 × 4: four times the row, plus the column. Diagonal, horizontal and vertical.
    let places: UnsafeMutablePointer<UInt8>
    /// The places of the groups of 4 × 4 in blocks of 4, 8, 16 and 32 samples: eight times the row, plus the column.
    /// There are 64 for each size and order.
    let groups: UnsafeMutablePointer<UInt8>
    /// The context of each coefficient by its number in the order: 16 for each order and pattern of groups beside it,
    /// and for blocks of 4 as the fifth pattern (§9.3.4.2.5).
    let significance: UnsafeMutablePointer<UInt8>

    fileprivate init() {
        places = .allocate(capacity: 3 * 16)
        groups = .allocate(capacity: 4 * 3 * 64)
        groups.initialize(repeating: 0, count: 4 * 3 * 64)
        significance = .allocate(capacity: 3 * 5 * 16)
        let small: [UInt8] = [0, 1, 4, 5, 2, 3, 4, 5, 6, 6, 8, 8, 7, 7, 8, 8]
        for order in 0..<3 {
            for (i, at) in Self.order(order, side: 4).enumerated() {
                places[order * 16 + i] = UInt8(at.y * 4 + at.x)
                let row = significance + order * 80 + i
                row[0] = at.x + at.y == 0 ? 2 : at.x + at.y < 3 ? 1 : 0
                row[16] = at.y == 0 ? 2 : at.y == 1 ? 1 : 0
                row[32] = at.x == 0 ? 2 : at.x == 1 ? 1 : 0
                row[48] = 2
                row[64] = small[at.y * 4 + at.x]
            }
            for size in 0..<4 {
                for (i, at) in Self.order(order, side: 1 << size).enumerated() {
                    groups[(size * 3 + order) * 64 + i] = UInt8(at.y * 8 + at.x)
                }
            }
        }
    }

    private static func order(_ order: Int, side: Int) -> [(x: Int, y: Int)] {
        let all = 0..<(side * side)
        switch order {
        case 0: return diagonal(side: side)
        case 1: return all.map { ($0 % side, $0 / side) }
        default: return all.map { ($0 / side, $0 % side) }
        }
    }

    static func diagonal(side: Int) -> [(x: Int, y: Int)] {
        (0..<(2 * side - 1)).flatMap { sum in
            (max(0, sum - side + 1)...min(sum, side - 1)).map { ($0, sum - $0) }
        }
    }
}
