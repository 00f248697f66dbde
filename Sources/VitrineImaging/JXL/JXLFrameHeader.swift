/// The header of one frame.
///
/// Source: ISO/IEC 18181-1 annex F.2 to F.4 (FrameHeader, Passes, BlendingInfo, RestorationFilter).
struct JXLFrameHeader {
    enum Kind: Int { case regular, lowFrequency, referenceOnly, skipProgressive }

    /// Bits of ``flags``.
    enum Flag {
        static let noise: UInt64 = 1
        static let patches: UInt64 = 2
        static let splines: UInt64 = 16
        static let usesLowFrequencyFrame: UInt64 = 32
        static let skipsSmoothing: UInt64 = 128
    }

    var kind = Kind.regular
    var isModular = false
    var flags: UInt64 = 0
    var isYCbCr = false
    /// How each of Cb, Y, Cr is sampled: 0 like the coarsest, 1 twice as fine both ways, 2 across, 3 down.
    var sampling = [0, 0, 0]
    var upsampling = 1
    var groupSizeShift = 1
    var passCount = 1
    /// Whether it covers another area than the picture's.
    var hasCrop = false
    var width: Int
    var height: Int
    /// 0 replaces what was there before.
    var blendMode = 0
    /// Ticks it stays; 0 for a layer of the frame that follows.
    var duration = 0
    var isLast = true

    /// Whether viewers show it, other than what later frames build upon.
    var isShown: Bool { (kind == .regular || kind == .skipProgressive) && (isLast || duration > 0) }

    init(_ bits: inout JXLBits, _ image: JXLImageHeader) throws(JXLFault) {
        width = image.info.storedSize.width
        height = image.info.storedSize.height
        try bits.check()
        if bits.bool() { return }
        kind = Kind(rawValue: bits.bits(2)) ?? .regular
        isModular = bits.bool()
        flags = bits.u64()
        try readSampling(&bits, image)
        if isModular { groupSizeShift = bits.bits(2) } else if image.isXYB { bits.skip(6) }
        if kind != .referenceOnly { try readPasses(&bits) }
        var level = 0
        if kind == .lowFrequency { level = bits.u32((1, 0), (2, 0), (3, 0), (4, 0)) }
        let isPartial = kind != .lowFrequency && bits.bool() && readCrop(&bits)
        var savedAs = 0
        if kind == .regular || kind == .skipProgressive {
            blendMode = JXLFrameHeader.blending(&bits, extraChannels: image.extraChannels, isPartial: isPartial)
            for _ in 0..<image.extraChannels {
                _ = JXLFrameHeader.blending(&bits, extraChannels: image.extraChannels, isPartial: isPartial)
            }
            if let animation = image.animation {
                duration = bits.u32((0, 0), (1, 0), (0, 8), (0, 32))
                if animation.hasTimecodes { bits.skip(32) }
            }
            isLast = bits.bool()
        } else {
            isLast = false
        }
        if kind != .lowFrequency, !isLast { savedAs = bits.bits(2) }
        if kind == .referenceOnly {
            bits.skip(1)
        } else if kind != .lowFrequency, !isLast, duration == 0 || savedAs != 0, blendMode == 0, !isPartial {
            bits.skip(1)  // whether saved before the colour transform
        }
        bits.skipName()
        try skipRestoration(&bits)
        try bits.skipExtensions()
        try bits.check()
        let divisor = upsampling << (3 * level)
        width = max(1, (width + divisor - 1) / divisor)
        height = max(1, (height + divisor - 1) / divisor)
    }

    private mutating func readSampling(_ bits: inout JXLBits, _ image: JXLImageHeader) throws(JXLFault) {
        let usesLowFrequencyFrame = flags & Flag.usesLowFrequencyFrame != 0
        if !image.isXYB { isYCbCr = bits.bool() }
        if isYCbCr, !usesLowFrequencyFrame { sampling = [bits.bits(2), bits.bits(2), bits.bits(2)] }
        if !usesLowFrequencyFrame {
            upsampling = 1 << bits.bits(2)
            for _ in 0..<image.extraChannels { bits.skip(2) }
        }
        try bits.check()
    }

    private mutating func readPasses(_ bits: inout JXLBits) throws(JXLFault) {
        passCount = bits.u32((1, 0), (2, 0), (3, 0), (4, 3))
        guard passCount > 1 else { return }
        let steps = bits.u32((0, 0), (1, 0), (2, 0), (3, 1))
        bits.skip(2 * (passCount - 1) + 2 * steps)
        for _ in 0..<steps { _ = bits.u32((0, 0), (1, 0), (2, 0), (0, 3)) }
    }

    /// Returns whether it leaves part of the picture out.
    private mutating func readCrop(_ bits: inout JXLBits) -> Bool {
        func number(_ bits: inout JXLBits) -> Int { bits.u32((0, 8), (256, 11), (2304, 14), (18_688, 30)) }
        func signed(_ value: Int) -> Int { value & 1 == 1 ? -((value + 1) / 2) : value / 2 }
        hasCrop = true
        var (x, y) = (0, 0)
        if kind != .referenceOnly { (x, y) = (signed(number(&bits)), signed(number(&bits))) }
        let (fullWidth, fullHeight) = (width, height)
        width = number(&bits)
        height = number(&bits)
        return kind != .referenceOnly && (x > 0 || y > 0 || x + width < fullWidth || y + height < fullHeight)
    }

    private static func blending(_ bits: inout JXLBits, extraChannels: Int, isPartial: Bool) -> Int {
        let mode = bits.u32((0, 0), (1, 0), (2, 0), (3, 2))
        if extraChannels > 0 {
            if mode == 2 || mode == 3 { _ = bits.u32((0, 0), (1, 0), (2, 0), (3, 3)) }
            if mode >= 2 { bits.skip(1) }
        } else if mode == 4 {
            bits.skip(1)
        }
        if mode != 0 || isPartial { bits.skip(2) }
        return mode
    }

    private func skipRestoration(_ bits: inout JXLBits) throws(JXLFault) {
        if bits.bool() { return }
        if bits.bool(), bits.bool() { bits.skip(6 * 16) }  // the smoothing's own weights
        let iterations = bits.bits(2)
        if iterations > 0 {
            if !isModular, bits.bool() { bits.skip(8 * 16) }
            if bits.bool() { bits.skip(5 * 16) }
            if bits.bool() { bits.skip((isModular ? 3 : 4) * 16) }
            if isModular { bits.skip(16) }
        }
        try bits.skipExtensions()
    }
}
