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
