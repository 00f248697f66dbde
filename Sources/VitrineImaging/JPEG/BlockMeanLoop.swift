/// The inner loops of the block-mean decoder: entropy-coded MCUs to samples.
///
/// A block's mean is its DC coefficient. AC coefficients are only passed over, several codes a look-up; nothing is
/// dequantised, transformed or stored that the result does not need. The eighth is bit-exact with libjpeg's.
struct BlockMeanLoop {
    let slots: UnsafeMutablePointer<BlockMeanSlot>
    let slotCount: Int
    /// One a component.
    let predictors: UnsafeMutablePointer<Int32>
    /// Bits of an index into the skip tables.
    let skipBits: UInt64
    /// Progressive scans: the bit position of the least significant bit they carry (Al).
    let lowBit: Int32
    /// 32 coefficients by zigzag index, for the quarter: its first four codes can pass at most 4 + 15.
    let low: UnsafeMutablePointer<Int32>
    /// Progressive AC scans: how many blocks that follow have no coefficients in the scan (T.81 §G.1.2.2, EOBRUN).
    let endRun: UnsafeMutablePointer<Int32>

    enum Outcome {
        case done, needsInput, corrupt
    }

    /// Decodes up to `count` MCUs and subtracts those done from it. Stops early when the reader comes near `end`.
    @inline(never)
    func eighths(_ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>) -> Outcome {
        var r = reader
        defer { reader = r }
        while count > 0 {
            guard r.next < end else { return .needsInput }
            for i in 0..<slotCount {
                let slot = slots + i
                r.refill()
                let code = UInt64(slot.pointee.dc.symbol(r.next16))
                guard code != 0 else { return .corrupt }
                r.take(code &>> 8)
                let value = predictors[slot.pointee.predictor] &+ r.takeSigned(code & 15)
                predictors[slot.pointee.predictor] = value
                slot.pointee.output.pointee = BlockMeanLoop.mean(value, slot.pointee.steps[0])
                slot.pointee.output += slot.pointee.advance
                guard passAC(&r, from: 0, fitting: 2, slot) else { return .corrupt }
            }
            count &-= 1
        }
        return .done
    }

    /// The same for four samples a block.
    @inline(never)
    func quarters(_ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>) -> Outcome {
        var r = reader
        defer { reader = r }
        let low = low
        while count > 0 {
            guard r.next < end else { return .needsInput }
            for i in 0..<slotCount {
                let slot = slots + i
                r.refill()
                let code = UInt64(slot.pointee.dc.symbol(r.next16))
                guard code != 0 else { return .corrupt }
                r.take(code &>> 8)
                let value = predictors[slot.pointee.predictor] &+ r.takeSigned(code & 15)
                predictors[slot.pointee.predictor] = value
                low[1] = 0
                low[2] = 0
                low[4] = 0
                var k = 0
                while k < 4 {
                    r.refill()
                    let entry = UInt64(slot.pointee.ac.symbol(r.next16))
                    guard entry != 0 else { return .corrupt }
                    r.take(entry &>> 8)
                    let run = Int(truncatingIfNeeded: (entry &>> 4) & 15)
                    if entry & 15 == 0 {
                        guard run == 15 else {
                            k = 64
                            break
                        }
                        k &+= 16
                    } else {
                        k &+= run &+ 1
                        low[k & 31] = r.takeSigned(entry & 15)
                    }
                }
                let coefficients = SIMD4(value, low[1], low[2], low[4])
                BlockMeanLoop.store(coefficients, slot.pointee)
                slot.pointee.output += slot.pointee.advance
                if k < 63 {
                    guard passAC(&r, from: UInt64(k), fitting: 0, slot) else { return .corrupt }
                }
            }
            count &-= 1
        }
        return .done
    }

    /// The first DC scan of a progressive file, which holds nothing but differences: the mean of a block, for all of
    /// its `side` × `side` samples.
    @inline(never)
    func firstDC(
        _ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>, side: Int
    ) -> Outcome {
        var r = reader
        defer { reader = r }
        // The bits that later scans would add are unknown: half of what they can amount to, in eighths of a level.
        let missing = ((Int32(1) << lowBit) &- 1)
        while count > 0 {
            guard r.next < end else { return .needsInput }
            for i in 0..<slotCount {
                let slot = slots + i
                r.refill()
                let code = UInt64(slot.pointee.dc.symbol(r.next16))
                guard code != 0 else { return .corrupt }
                r.take(code &>> 8)
                let value = predictors[slot.pointee.predictor] &+ r.takeSigned(code & 15)
                predictors[slot.pointee.predictor] = value
                let step = slot.pointee.steps[0]
                let doubled = (value &<< (lowBit &+ 1)) &+ missing
                let level = ((doubled &* step &+ 8) &>> 4) &+ 128
                let sample = UInt8(truncatingIfNeeded: max(0, min(255, level)))
                slot.pointee.output.pointee = sample
                if side == 2 {
                    slot.pointee.output[1] = sample
                    slot.pointee.output[slot.pointee.bytesPerRow] = sample
                    slot.pointee.output[slot.pointee.bytesPerRow &+ 1] = sample
                }
                slot.pointee.output += slot.pointee.advance
            }
            count &-= 1
        }
        return .done
    }

    /// The mean of a block, as libjpeg's 1×1 inverse transform rounds it.
    @inline(__always)
    private static func mean(_ dc: Int32, _ step: Int32) -> UInt8 {
        let level = ((dc &* step &+ 4) &>> 3) &+ 128
        return UInt8(truncatingIfNeeded: max(0, min(255, level)))
    }

    /// The means of a block's quarters by coefficients (0,0), (0,1), (1,0) and (1,1).
    ///
    /// The mean of the first cosine of the transform over half a block is 0.906 of the constant one, which a box filter
    /// would give; an ideal low-pass would give 1. Halfway between, 0.953, comes nearest to a Lanczos reduction of
    /// every pixel: 0.2 dB better than the box on four photos at reductions of 4 to 12. In 1/256: 244, its square 233.
    @inline(__always)
    static var gains: SIMD4<Int32> { SIMD4(256, 244, 244, 233) }

    /// The levels of a block's four quarters.
    @inline(__always)
    private static func store(_ coefficients: SIMD4<Int32>, _ slot: BlockMeanSlot) {
        let c = coefficients &* slot.steps &* BlockMeanLoop.gains
        let top = c[0] &+ c[2] &+ (128 << 11 + 1 << 10)
        let bottom = c[0] &- c[2] &+ (128 << 11 + 1 << 10)
        let levels = SIMD4(
            top &+ (c[1] &+ c[3]), top &- (c[1] &+ c[3]), bottom &+ (c[1] &- c[3]), bottom &- (c[1] &- c[3]))
        let clamped = (levels &>> 11).clamped(lowerBound: SIMD4(repeating: 0), upperBound: SIMD4(repeating: 255))
        slot.output[0] = UInt8(truncatingIfNeeded: clamped[0])
        slot.output[1] = UInt8(truncatingIfNeeded: clamped[1])
        slot.output[slot.bytesPerRow] = UInt8(truncatingIfNeeded: clamped[2])
        slot.output[slot.bytesPerRow &+ 1] = UInt8(truncatingIfNeeded: clamped[3])
    }

    /// Passes over the AC coefficients of a block behind zigzag index `first`.
    ///
    /// - Parameter fitting: How many look-ups the reader's bits suffice for without a refill.
    /// - Returns: Whether the block ended as it must.
    @inline(__always)
    private func passAC(
        _ r: inout JPEGBitReader, from first: UInt64, fitting: Int, _ slot: UnsafeMutablePointer<BlockMeanSlot>
    ) -> Bool {
        let table = slot.pointee.skip
        let shift = 64 &- skipBits
        let limit: UInt64 = 63 << 6
        var sum = first &<< 6
        var rounds = fitting
        while true {
            var entry: UInt64 = 0
            var before = r.bits
            while rounds > 0 {
                entry = UInt64(table[Int(truncatingIfNeeded: r.bits &>> shift)])
                before = r.bits
                r.bits = r.bits &<< entry  // shifts by its lowest six bits
                sum &+= entry
                if sum >= limit { break }
                rounds &-= 1
            }
            if rounds == 0 {
                r.count &-= sum & 63
                sum &= ~63
                r.refill()
                rounds = 4
                continue
            }
            let passed = sum &- 1 << 12
            if entry & 3 << 12 == 1 << 12, passed < limit {
                r.count &-= sum & 63
                return true
            }
            // Past the last coefficient, or a code that does not fit: take the look-up back and go one code ahead.
            r.bits = before
            sum &-= entry
            r.count &-= sum & 63
            r.refill()
            let code = UInt64(slot.pointee.ac.symbol(r.next16))
            let size = code & 15
            let run = (code &>> 4) & 15
            guard code != 0 else { return false }
            r.take(code &>> 8)
            r.take(size)
            if size == 0 && run != 15 { return true }
            sum = (sum & ~63) &+ (run &+ 1) &<< 6
            if sum >= limit { return sum == limit }
            r.refill()
            rounds = 4
        }
    }
}

extension BlockMeanLoop {
    /// A band of AC coefficients that a scan brings for the first time.
    struct Band {
        /// First and last coefficient, by zigzag index, 1...63.
        let first: Int
        let last: Int
    }

    /// The first scan of a band of AC coefficients, added to the samples that the DC scan left.
    ///
    /// Only coefficients 1, 2 and 4 count; like those of ``quarters(_:_:until:)`` they tell a block's quarters apart.
    @inline(never)
    func firstAC(
        _ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>, band: Band
    ) -> Outcome {
        var r = reader
        defer { reader = r }
        let code = slots.pointee.ac
        let low = low
        var endRun = endRun.pointee
        defer { self.endRun.pointee = endRun }
        while count > 0 {
            guard r.next < end else { return .needsInput }
            if endRun > 0 {
                endRun &-= 1
            } else {
                low[1] = 0
                low[2] = 0
                low[4] = 0
                var k = band.first &- 1
                while k < band.last {
                    r.refill()
                    let entry = UInt64(code.symbol(r.next16))
                    guard entry != 0 else { return .corrupt }
                    r.take(entry &>> 8)
                    let run = Int(truncatingIfNeeded: (entry &>> 4) & 15)
                    let size = entry & 15
                    if size == 0 && run != 15 {
                        let extra = Int32(truncatingIfNeeded: (r.bits &>> 1) &>> UInt64(63 &- run))
                        r.take(UInt64(run))
                        endRun = (Int32(1) &<< Int32(run)) &+ extra &- 1
                        break
                    }
                    k &+= run &+ 1
                    let value = r.takeSigned(size)
                    // A run of zeros may end the band exactly; a coefficient behind it is damage.
                    guard k <= band.last else { return .corrupt }
                    if k <= 4 { low[k] = value }
                }
                if low[1] | low[2] | low[4] != 0 { add(slots.pointee) }
            }
            slots.pointee.output += slots.pointee.advance
            count &-= 1
        }
        return .done
    }

    /// Adds the three coefficients in ``low`` to a block's four samples.
    @inline(__always)
    private func add(_ slot: BlockMeanSlot) {
        // The bits that later scans would add make a coefficient larger: half of what they can amount to.
        let missing = ((Int32(1) &<< lowBit) &- 1) &>> 1
        func whole(_ value: Int32) -> Int32 { (value &<< lowBit) &+ value.signum() &* missing }
        let coefficients = SIMD4(0, whole(low[1]), whole(low[2]), whole(low[4]))
        let c = coefficients &* slot.steps &* BlockMeanLoop.gains
        let differences = SIMD4(
            c[1] &+ c[2] &+ c[3], c[2] &- c[1] &- c[3], c[1] &- c[2] &- c[3], c[3] &- c[1] &- c[2])
        let lower = slot.output + slot.bytesPerRow
        let means = SIMD4(Int32(slot.output[0]), Int32(slot.output[1]), Int32(lower[0]), Int32(lower[1]))
        let levels = means &+ ((differences &+ 1 << 10) &>> 11)
        let clamped = levels.clamped(lowerBound: SIMD4(repeating: 0), upperBound: SIMD4(repeating: 255))
        slot.output[0] = UInt8(truncatingIfNeeded: clamped[0])
        slot.output[1] = UInt8(truncatingIfNeeded: clamped[1])
        lower[0] = UInt8(truncatingIfNeeded: clamped[2])
        lower[1] = UInt8(truncatingIfNeeded: clamped[3])
    }
}
