import VitrineImageCore
import CVitrinePixels

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
    /// 64 coefficients by zigzag index. Behind the last that counts, a code can pass 16 more.
    let low: UnsafeMutablePointer<Int32>
    /// Progressive AC scans: how many blocks that follow have no coefficients in the scan (T.81 §G.1.2.2, EOBRUN).
    let endRun: UnsafeMutablePointer<Int32>

    enum Outcome {
        case done, needsInput, corrupt
    }

    /// Decodes up to `count` MCUs and subtracts those done from it. Stops early when the reader comes near `end`.
    func blocks(_ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>) -> Outcome {
        var side = slots.pointee.side
        for i in 1..<max(1, slotCount) where slots[i].side != side { side = 0 }
        return switch side {
        case 1: eighths(&count, &reader, until: end)
        case 2: quarters(&count, &reader, until: end)
        default: mixed(&count, &reader, until: end)
        }
    }

    @inline(never)
    private func eighths(
        _ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>
    ) -> Outcome {
        var r = reader
        defer { reader = r }
        while count > 0 {
            guard r.next < end else { return .needsInput }
            for i in 0..<slotCount { guard eighth(&r, slots + i) else { return .corrupt } }
            count &-= 1
        }
        return .done
    }

    @inline(never)
    private func quarters(
        _ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>
    ) -> Outcome {
        var r = reader
        defer { reader = r }
        while count > 0 {
            guard r.next < end else { return .needsInput }
            for i in 0..<slotCount { guard quarter(&r, slots + i) else { return .corrupt } }
            count &-= 1
        }
        return .done
    }

    @inline(never)
    private func mixed(_ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>) -> Outcome {
        var r = reader
        defer { reader = r }
        while count > 0 {
            guard r.next < end else { return .needsInput }
            for i in 0..<slotCount {
                let slot = slots + i
                let isWhole =
                    switch slot.pointee.side {
                    case 1: eighth(&r, slot)
                    case 2: quarter(&r, slot)
                    default: half(&r, slot)
                    }
                guard isWhole else { return .corrupt }
            }
            count &-= 1
        }
        return .done
    }

    /// Decodes up to `count` MCUs like ``blocks(_:_:until:)``, and keeps their coefficients instead of samples. A DC
    /// coefficient that does not fit 16 bits is corrupt.
    ///
    /// A block of four samples has four numbers. One of sixteen has its DC coefficient, the number of AC coefficients
    /// that follow, 0, 8, 16 or 24, and these in the order of the file.
    ///
    /// - Parameter output: Has room for ``largestBlock(side:)`` numbers of each block, and 24 more. Ends behind the last
    ///   whole MCU.
    @inline(never)
    func coefficients(
        _ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>,
        into output: inout UnsafeMutablePointer<Int16>
    ) -> Outcome {
        var r = reader
        var next = output
        defer { reader = r }
        while count > 0 {
            guard r.next < end else { return .needsInput }
            for i in 0..<slotCount {
                let slot = slots + i
                guard let value = takeDC(&r, slot), let exact = Int16(exactly: value) else { return .corrupt }
                next[0] = exact
                switch slot.pointee.side {
                case 1:
                    next += 1
                    guard passAC(&r, from: 0, fitting: 2, slot) else { return .corrupt }
                case 2:
                    low[1] = 0
                    low[2] = 0
                    low[4] = 0
                    guard let k = takeLowAC(&r, to: 4, slot) else { return .corrupt }
                    next[1] = Int16(truncatingIfNeeded: low[1])
                    next[2] = Int16(truncatingIfNeeded: low[2])
                    next[3] = Int16(truncatingIfNeeded: low[4])
                    next += 4
                    guard k >= 63 || passAC(&r, from: UInt64(k), fitting: 0, slot) else { return .corrupt }
                default:
                    guard let k = keepLowAC(r: &r, output: next + 2, slot: slot, kept: &next[1]) else {
                        return .corrupt
                    }
                    next += 2 &+ Int(next[1])
                    guard k >= 63 || passAC(&r, from: UInt64(k), fitting: 0, slot) else { return .corrupt }
                }
            }
            output = next
            count &-= 1
        }
        return .done
    }

    /// The most numbers that ``coefficients(_:_:until:into:)`` keeps of a block with so many samples along a side.
    static func largestBlock(side: Int) -> Int { side == 1 ? 1 : side == 2 ? 4 : 26 }

    /// Makes samples of the coefficients of `count` MCUs.
    ///
    /// - Parameters:
    ///   - input: The coefficients; ends behind them.
    ///   - offsets: Summands for the DC coefficients of each component.
    @inline(never)
    func place(_ input: inout UnsafePointer<Int16>, count: Int, adding offsets: SIMD4<Int32>) {
        var next = input
        defer { input = next }
        for _ in 0..<count {
            for i in 0..<slotCount {
                let slot = slots + i
                let value = Int32(next[0]) &+ offsets[slot.pointee.predictor]
                switch slot.pointee.side {
                case 1:
                    slot.pointee.output.pointee = BlockMeanLoop.mean(value, slot.pointee.steps[0])
                    next += 1
                case 2:
                    BlockMeanLoop.store(SIMD4(value, Int32(next[1]), Int32(next[2]), Int32(next[3])), slot.pointee)
                    next += 4
                default:
                    let kept = Int(next[1])
                    if kept == 0 {
                        BlockMeanLoop.storeFlat(value, slot.pointee)
                    } else {
                        low[0] = value
                        for k in stride(from: 0, to: 24, by: 8) {
                            let numbers = UnsafeRawPointer(next + (2 &+ k)).loadUnaligned(as: SIMD8<Int16>.self)
                            let wide = k < kept ? SIMD8<Int32>(truncatingIfNeeded: numbers) : .zero
                            UnsafeMutableRawPointer(low + (1 &+ k)).storeBytes(of: wide, as: SIMD8<Int32>.self)
                        }
                        BlockMeanLoop.storeSixteen(low, slot.pointee)
                    }
                    next += 2 &+ kept
                }
                slot.pointee.output += slot.pointee.advance
            }
        }
    }

    /// The DC coefficients of an MCU kept by ``coefficients(_:_:until:into:)``, the last of each component.
    func sumsOfDC(_ input: UnsafePointer<Int16>) -> SIMD4<Int32> {
        var sums = SIMD4<Int32>.zero
        var next = input
        for i in 0..<slotCount {
            let slot = slots[i]
            sums[slot.predictor] = Int32(next[0])
            next += slot.side <= 2 ? slot.side * slot.side : 2 + Int(next[1])
        }
        return sums
    }

    /// Reads the AC coefficients of a block up to zigzag index 24, and keeps those up to the last one in the file.
    ///
    /// - Returns: The zigzag index of the last one read, 64 behind the end of the block; nil for a code that does not
    ///   exist.
    @inline(__always)
    private func keepLowAC(
        r: inout JPEGBitReader, output: UnsafeMutablePointer<Int16>,
        slot: UnsafeMutablePointer<BlockMeanSlot>, kept: inout Int16
    ) -> Int? {
        var last = 0
        UnsafeMutableRawPointer(output).storeBytes(of: .zero, as: SIMD16<UInt16>.self)
        UnsafeMutableRawPointer(output + 16).storeBytes(of: .zero, as: SIMD8<UInt16>.self)
        let end = visitLowAC(r: &r, to: 24, slot: slot) { k, value in
            guard k <= 24 else { return }
            output[k &- 1] = Int16(truncatingIfNeeded: value)
            last = k
        }
        kept = Int16(truncatingIfNeeded: (last &+ 7) & ~7)
        return end
    }

    /// Reads the DC coefficient of a block; nil for a code that does not exist.
    @inline(__always)
    private func takeDC(_ r: inout JPEGBitReader, _ slot: UnsafeMutablePointer<BlockMeanSlot>) -> Int32? {
        r.refill()
        let code = UInt64(slot.pointee.dc.symbol(r.next16))
        guard code != 0 else { return nil }
        r.take(code &>> 8)
        let value = predictors[slot.pointee.predictor] &+ r.takeSigned(code & 15)
        predictors[slot.pointee.predictor] = value
        return value
    }

    /// Reads the AC coefficients of a block until one at `last` or behind it.
    ///
    /// - Parameter visit: Given the zigzag index of each that is not zero, less than `last` and 16, and its value.
    /// - Returns: The zigzag index of the last one, 64 behind the end of the block; nil for a code that does not exist.
    @inline(__always)
    private func visitLowAC(
        r: inout JPEGBitReader, to last: Int, slot: UnsafeMutablePointer<BlockMeanSlot>,
        visit: (_ k: Int, _ value: Int32) -> Void
    ) -> Int? {
        var k = 0
        while k < last {
            r.refill()
            let entry = UInt64(slot.pointee.ac.symbol(r.next16))
            guard entry != 0 else { return nil }
            r.take(entry &>> 8)
            let run = Int(truncatingIfNeeded: (entry &>> 4) & 15)
            if entry & 15 == 0 {
                guard run == 15 else { return 64 }
                k &+= 16
            } else {
                k &+= run &+ 1
                visit(k, r.takeSigned(entry & 15))
            }
        }
        return k
    }

    /// Reads the AC coefficients of a block into ``low`` like ``visitLowAC(_:to:_:_:)``.
    @inline(__always)
    private func takeLowAC(
        _ r: inout JPEGBitReader, to last: Int, _ slot: UnsafeMutablePointer<BlockMeanSlot>
    ) -> Int? {
        let low = low
        return visitLowAC(r: &r, to: last, slot: slot) { k, value in low[k & 63] = value }
    }

    /// One sample of a block.
    @inline(__always)
    private func eighth(_ r: inout JPEGBitReader, _ slot: UnsafeMutablePointer<BlockMeanSlot>) -> Bool {
        guard let value = takeDC(&r, slot) else { return false }
        slot.pointee.output.pointee = BlockMeanLoop.mean(value, slot.pointee.steps[0])
        slot.pointee.output += slot.pointee.advance
        return passAC(&r, from: 0, fitting: 2, slot)
    }

    /// Four samples of a block.
    @inline(__always)
    private func quarter(_ r: inout JPEGBitReader, _ slot: UnsafeMutablePointer<BlockMeanSlot>) -> Bool {
        guard let value = takeDC(&r, slot) else { return false }
        low[1] = 0
        low[2] = 0
        low[4] = 0
        guard let k = takeLowAC(&r, to: 4, slot) else { return false }
        BlockMeanLoop.store(SIMD4(value, low[1], low[2], low[4]), slot.pointee)
        slot.pointee.output += slot.pointee.advance
        return k >= 63 || passAC(&r, from: UInt64(k), fitting: 0, slot)
    }

    /// Sixteen samples of a block.
    @inline(__always)
    private func half(_ r: inout JPEGBitReader, _ slot: UnsafeMutablePointer<BlockMeanSlot>) -> Bool {
        guard let value = takeDC(&r, slot) else { return false }
        defer { slot.pointee.output += slot.pointee.advance }
        r.refill()
        let first = UInt64(slot.pointee.ac.symbol(r.next16))
        if first != 0, first & 255 == 0 {
            r.take(first &>> 8)
            BlockMeanLoop.storeFlat(value, slot.pointee)
            return true
        }
        (low + 1).update(repeating: 0, count: 24)
        // (3,3) is the last of the 4 x 4 lowest coefficients.
        guard let k = takeLowAC(&r, to: 24, slot) else { return false }
        low[0] = value
        BlockMeanLoop.storeSixteen(low, slot.pointee)
        return k >= 63 || passAC(&r, from: UInt64(k), fitting: 0, slot)
    }

    /// The first DC scan of a progressive file, which holds nothing but differences: the mean of a block, for all of
    /// its `side` × `side` samples.
    @inline(never)
    func firstDC(
        _ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>
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
                if slot.pointee.side == 2 {
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

    /// The levels of a block's sixteen parts, by its 4 × 4 lowest coefficients.
    ///
    /// A transform of four points, with gains halfway between those of means and one, like ``gains``. The constants
    /// are in 1/1024: half the cosines of the transform by 0.990, 0.962 and 0.916.
    @inline(__always)
    private static func storeSixteen(_ low: UnsafePointer<Int32>, _ slot: BlockMeanSlot) {
        let steps = slot.allSteps
        @inline(__always)
        func line(a: Int, b: Int, c: Int, d: Int) -> SIMD4<Int32> {
            transformed(
                a: SIMD4(repeating: low[a] &* steps[a]), b: SIMD4(repeating: low[b] &* steps[b]),
                c: SIMD4(repeating: low[c] &* steps[c]), d: SIMD4(repeating: low[d] &* steps[d]))
        }
        // The zigzag indices of the four lowest coefficients of the first four rows.
        let first = line(a: 0, b: 1, c: 5, d: 6) &>> 6
        let second = line(a: 2, b: 4, c: 7, d: 13) &>> 6
        let third = line(a: 3, b: 8, c: 12, d: 17) &>> 6
        let fourth = line(a: 9, b: 11, c: 18, d: 24) &>> 6
        let even = first &* 362, odd = third &* 348
        let outer = second &* 468 &+ fourth &* 179, inner = second &* 194 &- fourth &* 433
        let round = SIMD4<Int32>(repeating: 128 << 14 + 1 << 13)
        @inline(__always)
        func store(_ y: Int, _ sums: SIMD4<Int32>) {
            let levels = ((sums &+ round) &>> 14).clamped(
                lowerBound: SIMD4(repeating: 0), upperBound: SIMD4(repeating: 255))
            let output = slot.output + y &* slot.bytesPerRow
            for x in 0..<4 { output[x] = UInt8(truncatingIfNeeded: levels[x]) }
        }
        store(0, even &+ odd &+ outer)
        store(1, even &- odd &+ inner)
        store(2, even &- odd &- inner)
        store(3, even &+ odd &- outer)
    }

    /// The same for a block without AC coefficients.
    @inline(__always)
    private static func storeFlat(_ value: Int32, _ slot: BlockMeanSlot) {
        let sum = ((value &* slot.steps[0] &* 362) &>> 6) &* 362
        let level = UInt8(truncatingIfNeeded: max(0, min(255, (sum &+ (128 << 14 + 1 << 13)) &>> 14)))
        for y in 0..<4 { (slot.output + y &* slot.bytesPerRow).update(repeating: level, count: 4) }
    }

    /// Four samples of a line, by its four lowest coefficients.
    @inline(__always)
    private static func transformed(
        a: SIMD4<Int32>, b: SIMD4<Int32>, c: SIMD4<Int32>, d: SIMD4<Int32>
    ) -> SIMD4<Int32> {
        a &* 362 &+ b &* SIMD4(468, 194, -194, -468) &+ c &* SIMD4(348, -348, -348, 348)
            &+ d &* SIMD4(179, -433, 433, -179)
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
    /// The steps and places of a component's coefficients for ``halves(_:_:until:)``: 64 by zigzag index.
    ///
    /// The low half of an entry is the step. The high half is the place of the coefficient in a block of 4 × 4, column
    /// after column, or 16 for one that does not count.
    static func fillPlaces(_ table: UnsafeMutablePointer<Int32>, steps: [Int32]) {
        table.initialize(repeating: 16 << 16, count: 64)
        // The zigzag indices of the four lowest coefficients of the first four columns.
        for (place, k) in [0, 2, 3, 9, 1, 4, 8, 11, 5, 7, 12, 18, 6, 13, 17, 24].enumerated() {
            table[k] = Int32(place) << 16 | steps[k] & 0xFFFF
        }
    }

    /// Decodes up to `count` MCUs like ``blocks(_:_:until:)``, to sixteen samples a block that are not rounded.
    ///
    /// A level `v` is stored as `(v - 128) * 256`, in 16 bits, as the resampler holds it.
    @inline(never)
    func halves(_ count: inout Int, _ reader: inout JPEGBitReader, until end: UnsafePointer<UInt8>) -> Outcome {
        var r = reader
        defer { reader = r }
        while count > 0 {
            guard r.next < end else { return .needsInput }
            for i in 0..<slotCount { guard wideHalf(&r, slots + i) else { return .corrupt } }
            count &-= 1
        }
        return .done
    }

    @inline(__always)
    private func wideHalf(_ r: inout JPEGBitReader, _ slot: UnsafeMutablePointer<BlockMeanSlot>) -> Bool {
        guard let value = takeDC(&r, slot) else { return false }
        let places = slot.pointee.allSteps
        return withUnsafeTemporaryAllocation(of: SIMD16<Int16>.self, capacity: 2) { memory in
            guard let memory = memory.baseAddress else { return false }
            memory[0] = .zero
            let block = UnsafeMutableRawPointer(memory).assumingMemoryBound(to: Int16.self)
            block[0] = Int16(truncatingIfNeeded: value &* places[0])
            // (3,3) is the last of the 4 x 4 lowest coefficients.
            let end = visitLowAC(r: &r, to: 24, slot: slot) { k, value in
                let place = places[k & 63]
                block[Int(place &>> 16)] = Int16(truncatingIfNeeded: value &* (place & 0xFFFF))
            }
            guard let k = end else { return false }
            cpixels_transform_half(block, slot.pointee.output, slot.pointee.bytesPerRow)
            slot.pointee.output += slot.pointee.advance
            return k >= 63 || passAC(&r, from: UInt64(k), fitting: 0, slot)
        }
    }

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
