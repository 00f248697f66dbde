import VitrineImageCore
import CVitrinePixels

/// Reads the coefficients of a block (residual_coding, §7.3.8.11), and scales them (§8.6.4.2).
struct HEVCResidual {
    /// A block, and the properties of its picture that matter here.
    struct Block {
        /// The logarithm of the side.
        var log: Int
        var isLuma: Bool
        /// 0 diagonal, 1 horizontal, 2 vertical.
        var order: Int
        var quantizer: Int
        /// Factors row by row; nil: all 16.
        var factors: UnsafePointer<UInt8>?
        var isBypass: Bool
        var hidesSigns: Bool
        var maySkipTransform: Bool
    }

    /// The coefficients that were read.
    struct Extent {
        /// Rows and columns of the block that have any, in multiples of four; 1 and 1 for the mean alone.
        var rows: Int
        var columns: Int
        var skipsTransform: Bool
    }

    /// Reads one block.
    ///
    /// - Parameter coefficients: The block row by row. All must be 0.
    /// - Returns: Nil for a coefficient that no encoder writes.
    @inline(__always)
    static func read(
        _ shared: inout HEVCEntropy, contexts: UnsafeMutablePointer<UInt8>, scan: HEVCScan, block: Block,
        coefficients: UnsafeMutablePointer<Int16>, positions: UnsafeMutablePointer<UInt8>
    ) -> Extent? {
        // A copy, which is kept in registers.
        var entropy = shared
        defer { shared = entropy }
        let log = block.log, isLuma = block.isLuma, order = block.order
        var skipsTransform = false
        if block.maySkipTransform {
            skipsTransform = entropy.bit(contexts + HEVCContext.skipsTransform + (isLuma ? 0 : 1)) == 1
        }
        var (lastX, lastY) = last(&entropy, contexts: contexts, log: log, isLuma: isLuma)
        if order == 2 { swap(&lastX, &lastY) }

        // Which coefficient of which group is the last.
        let groups = UnsafePointer(scan.groups + ((log &- 2) &* 3 &+ order) &* 64)
        let places = UnsafePointer(scan.places + order &* 16)
        let lastGroup = UInt8(truncatingIfNeeded: (lastY &>> 2) &* 8 &+ lastX &>> 2)
        let lastPlace = UInt8(truncatingIfNeeded: (lastY & 3) &* 4 &+ lastX & 3)
        var group = 0
        while groups[group] != lastGroup { group &+= 1 }
        var n = 0
        while places[n] != lastPlace { n &+= 1 }

        let significant = contexts + HEVCContext.isSignificant
        let inner: UnsafeMutablePointer<UInt8>
        if isLuma {
            inner = significant + (log == 2 ? 0 : log == 3 ? (order == 0 ? 9 : 15) : 21)
        } else {
            inner = significant + 27 + (log == 2 ? 0 : log == 3 ? 9 : 12)
        }
        let significance = UnsafePointer(scan.significance + order &* 80)
        let scaler = HEVCScaler(block)
        let last = group
        var coded: UInt64 = 0
        var (rows, columns) = (0, 0)
        var hadAboveOne = false

        while group >= 0 {
            let at = Int(groups[group])
            let (groupX, groupY) = (at & 7, at &>> 3)
            let right = groupX < 7 ? Int(truncatingIfNeeded: coded &>> UInt64(truncatingIfNeeded: at &+ 1)) & 1 : 0
            let below = groupY < 7 ? Int(truncatingIfNeeded: coded &>> UInt64(truncatingIfNeeded: at &+ 8)) & 1 : 0
            var count = 0
            var isInferred = false
            if group == last {
                positions[0] = UInt8(truncatingIfNeeded: n)
                count = 1
            } else if group > 0 {
                let context = contexts + HEVCContext.hasGroup + (right | below) + (isLuma ? 0 : 2)
                guard entropy.bit(context) == 1 else {
                    group &-= 1
                    continue
                }
                isInferred = true
                n = 16
            } else {
                n = 16
            }
            coded |= 1 &<< UInt64(truncatingIfNeeded: at)
            let pattern = significance + (log == 2 ? 64 : (right | below &<< 1) &* 16)
            let inGroup = inner + (isLuma && log > 2 && group > 0 ? 3 : 0)
            n &-= 1
            while n > 0 {
                let bit = entropy.bit(inGroup + Int(pattern[n]))
                positions[count] = UInt8(truncatingIfNeeded: n)
                count &+= bit
                n &-= 1
            }
            if n == 0 {
                if isInferred, count == 0 {
                    positions[0] = 0
                    count = 1
                } else {
                    let context = group == 0 ? significant + (isLuma ? 0 : 27) : inGroup + Int(pattern[0])
                    positions[count] = 0
                    count &+= entropy.bit(context)
                }
            }
            if count > 0 {
                // Which are above one, and the first of them above two.
                let set = (group == 0 || !isLuma ? 0 : 2) &+ (hadAboveOne ? 1 : 0)
                let aboveOneContexts = contexts + HEVCContext.isAboveOne + (set &* 4 &+ (isLuma ? 0 : 16))
                var step = 1
                var aboveOne = 0
                let flags = min(count, 8)
                var i = 0
                while i < flags {
                    let bit = entropy.bit(aboveOneContexts + step)
                    aboveOne |= bit &<< i
                    // 0 behind a one, and from 1 up to 3 otherwise.
                    step = (0xF8 &>> (2 &* step)) & 3 & (bit &- 1)
                    i &+= 1
                }
                hadAboveOne = step == 0
                var firstAbove = 16
                var aboveTwo = 0
                if aboveOne != 0 {
                    firstAbove = aboveOne.trailingZeroBitCount
                    aboveTwo = entropy.bit(contexts + HEVCContext.isAboveTwo + set + (isLuma ? 0 : 4))
                }
                let isHidden = block.hidesSigns && Int(positions[0]) &- Int(positions[count &- 1]) > 3
                let signCount = count &- (isHidden ? 1 : 0)
                var signs = entropy.equal(signCount) &<< (16 &- signCount)
                var rice = 0
                var sum = 0
                let origin = (groupY &* 4) &<< log &+ groupX &* 4
                let target = coefficients + origin
                i = 0
                while i < count {
                    var level = 1
                    var hasRemainder = true
                    if i < 8 {
                        let above = (aboveOne &>> i) & 1
                        level &+= above
                        hasRemainder = i == firstAbove ? aboveTwo == 1 : above == 1
                        if i == firstAbove { level &+= aboveTwo }
                    }
                    if hasRemainder {
                        let more = entropy.remaining(rice: rice)
                        guard more >= 0 else { return nil }
                        level &+= more
                        if level > 3 &<< rice, rice < 4 { rice &+= 1 }
                    }
                    sum &+= level
                    let place = Int(places[Int(positions[i])])
                    if signs & 0x8000 != 0 { level = 0 &- level }
                    signs = signs &<< 1
                    if isHidden, i == count &- 1, sum & 1 == 1 { level = 0 &- level }
                    let offset = ((place &>> 2) &<< log) &+ place & 3
                    target[offset] = scaler.scaled(level, at: origin &+ offset)
                    i &+= 1
                }
                rows = max(rows, groupY &* 4 &+ 4)
                columns = max(columns, groupX &* 4 &+ 4)
            }
            group &-= 1
        }
        if lastX == 0, lastY == 0 { return Extent(rows: 1, columns: 1, skipsTransform: skipsTransform) }
        return Extent(rows: rows, columns: columns, skipsTransform: skipsTransform)
    }

    /// The column and row of the last coefficient (§9.3.3.12, §7.4.9.11).
    @inline(__always)
    private static func last(
        _ entropy: inout HEVCEntropy, contexts: UnsafeMutablePointer<UInt8>, log: Int, isLuma: Bool
    ) -> (x: Int, y: Int) {
        let offset = isLuma ? 3 &* (log &- 2) &+ (log &- 1) &>> 2 : 15
        let shift = isLuma ? (log &+ 1) &>> 2 : log &- 2
        let most = 2 &* log &- 1
        var (x, y) = (0, 0)
        while x < most, entropy.bit(contexts + HEVCContext.lastX + offset + x &>> shift) == 1 { x &+= 1 }
        while y < most, entropy.bit(contexts + HEVCContext.lastY + offset + y &>> shift) == 1 { y &+= 1 }
        if x > 3 {
            let bits = x &>> 1 &- 1
            x = (2 | x & 1) &<< bits | entropy.equal(bits)
        }
        if y > 3 {
            let bits = y &>> 1 &- 1
            y = (2 | y & 1) &<< bits | entropy.equal(bits)
        }
        return (x, y)
    }
}

/// Scales the levels of a block (§8.6.4.2).
struct HEVCScaler {
    private let factor: Int
    private let shift: Int
    private let half: Int
    private let factors: UnsafePointer<UInt8>?

    init(_ block: HEVCResidual.Block) {
        guard !block.isBypass else {
            (factor, shift, half, factors) = (1, 0, 0, nil)
            return
        }
        let (period, step) = block.quantizer.quotientAndRemainder(dividingBy: 6)
        // 40, 45, 51, 57, 64 and 72.
        let level = (0x48_40_39_33_2D_28 &>> (step &* 8)) & 0xFF
        factors = block.factors
        factor = (level &<< period) &* (factors == nil ? 16 : 1)
        shift = block.log &+ 3
        half = 1 &<< (shift &- 1)
    }

    @inline(__always)
    func scaled(_ level: Int, at place: Int) -> Int16 {
        let level = max(-32_768, min(level, 32_767))
        let product = level &* factor &* (factors.map { Int($0[place]) } ?? 1)
        return Int16(truncatingIfNeeded: max(-32_768, min((product &+ half) &>> shift, 32_767)))
    }
}
