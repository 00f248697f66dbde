import VitrineImageCore

/// Reads the headers of JPEG XL, bare or in its container: the image's, and of animations every frame's.
///
/// Source: ISO/IEC 18181-1 annex D to F, 18181-2 (container). Exif orientation does not count
/// beside the codestream's own.
package enum JXLHeaderReader: HeaderReading {
    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let codestream = try JXLCodestream(reader)
        let image = try codestream.parse(at: 0, first: 512) { bits throws(JXLFault) in try JXLImageHeader(&bits) }
        var header = ImageHeader(info: image.info)
        if image.hasProfile || image.animation != nil, let start = try? JXLFrameStart(codestream) {
            header.setProfile(start.profile, limits)
            JXLFrameWalker(codestream).describe(start, result: &header, limits: limits)
        }
        if let exif = codestream.boxes["Exif"], exif.payload.count > 4,
            let skip = try? reader.u32(at: exif.payload.lowerBound), skip < exif.payload.count - 4
        {
            header.exif = (exif.payload.lowerBound + 4 + skip)..<exif.payload.upperBound
        }
        header.xmp = codestream.boxes["xml "]?.payload
        header.applyExif(reader, orientation: false)
        return header
    }
}

/// The headers before the first frame of a JPEG XL codestream.
///
/// Source: ISO/IEC 18181-1 annex D (SizeHeader, ImageMetadata) and E.2 (ColourEncoding).
struct JXLImageHeader {
    /// How time is counted (D.3.4).
    struct Animation {
        /// Ticks a second.
        var rate: Double
        /// 0 for ever.
        var loopCount: Int
        var hasTimecodes: Bool
    }

    var info: ImageInfo
    var animation: Animation?
    var hasPreview = false
    var extraChannels = 0
    /// Whether colours are stored in the format's own space, in which case they are known without a profile.
    var isXYB = true
    var hasProfile = false
    /// Code points of an enumerated colour space (ITU-T H.273): 1, 1 and 13 are sRGB's. 2: something else.
    var whitePoint = 1
    var primaries = 1
    var transfer = 13
    /// Nits of the brightest white; 255 for images that are not made for brighter screens.
    var intensityTarget: Float = 255
    var hasCustomTransform = false

    /// Whether the enumerated colour space is sRGB.
    var isSRGB: Bool { whitePoint == 1 && primaries == 1 && transfer == 13 }

    private static let ratios = [(1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)]

    /// Reads from the codestream's first bit up to the entropy-coded profile or, without one, the first frame.
    init(_ bits: inout JXLBits) throws(JXLFault) {
        guard bits.bits(16) == 0x0AFF else { throw .corrupt("no JPEG XL codestream") }
        info = ImageInfo(format: .jxl, storedSize: JXLImageHeader.size(&bits))
        try bits.check()
        guard !bits.bool() else {  // all defaults: 8-bit sRGB
            try readTransform(&bits)
            return
        }
        let hasExtras = bits.bool()
        if hasExtras { readExtras(&bits) }
        info.bitDepth = JXLImageHeader.depth(&bits)
        bits.skip(1)  // whether 16-bit buffers suffice
        extraChannels = bits.u32(a: (0, 0), b: (1, 0), c: (2, 4), d: (1, 12))
        for _ in 0..<extraChannels {
            readChannel(&bits)
            try bits.check()
        }
        isXYB = bits.bool()
        readColorEncoding(&bits)
        if hasExtras, !bits.bool() {  // tone mapping
            intensityTarget = try bits.f16()
            bits.skip(33)
        }
        try bits.skipExtensions()
        try readTransform(&bits)
    }

    private static func size(_ bits: inout JXLBits) -> PixelSize {
        let isSmall = bits.bool()
        func side(_ bits: inout JXLBits) -> Int {
            isSmall ? (bits.bits(5) + 1) * 8 : bits.u32(a: (1, 9), b: (1, 13), c: (1, 18), d: (1, 30))
        }
        let height = side(&bits)
        let ratio = bits.bits(3)
        if ratio == 0 { return PixelSize(width: side(&bits), height: height) }
        return PixelSize(width: height * ratios[ratio - 1].0 / ratios[ratio - 1].1, height: height)
    }

    private mutating func readExtras(_ bits: inout JXLBits) {
        info.orientation = Orientation(rawValue: bits.bits(3) + 1) ?? .up
        if bits.bool() { _ = JXLImageHeader.size(&bits) }  // intrinsic size
        hasPreview = bits.bool()
        if hasPreview {
            let isSmall = bits.bool()
            func side(_ bits: inout JXLBits) {
                _ = isSmall
                    ? bits.u32(a: (16, 0), b: (32, 0), c: (1, 5), d: (33, 9))
                    : bits.u32(a: (1, 6), b: (65, 8), c: (321, 10), d: (1345, 12))
            }
            side(&bits)
            if bits.bits(3) == 0 { side(&bits) }
        }
        if bits.bool() {
            let numerator = bits.u32(a: (100, 0), b: (1000, 0), c: (1, 10), d: (1, 30))
            let denominator = bits.u32(a: (1, 0), b: (1001, 0), c: (1, 8), d: (1, 10))
            let loops = bits.u32(a: (0, 0), b: (0, 3), c: (0, 16), d: (0, 32))
            animation = Animation(
                rate: Double(numerator) / Double(denominator), loopCount: loops, hasTimecodes: bits.bool())
        }
    }

    private static func depth(_ bits: inout JXLBits) -> Int {
        if bits.bool() {
            let depth = bits.u32(a: (32, 0), b: (16, 0), c: (24, 0), d: (1, 6))
            bits.skip(4)
            return depth
        }
        return bits.u32(a: (8, 0), b: (10, 0), c: (12, 0), d: (1, 6))
    }

    private mutating func readChannel(_ bits: inout JXLBits) {
        if bits.bool() {  // all defaults: alpha
            info.hasAlpha = true
            return
        }
        let type = bits.enumeration()
        _ = JXLImageHeader.depth(&bits)
        _ = bits.u32(a: (0, 0), b: (3, 0), c: (4, 0), d: (1, 3))
        bits.skipName()
        switch type {
        case 0:
            info.hasAlpha = true
            bits.skip(1)  // premultiplied or not
        case 2: bits.skip(64)  // a spot colour
        case 4: info.colorModel = .cmyk
        case 5: _ = bits.u32(a: (1, 0), b: (0, 2), c: (3, 4), d: (19, 8))
        default: break
        }
    }

    private mutating func readColorEncoding(_ bits: inout JXLBits) {
        if bits.bool() { return }  // sRGB
        hasProfile = bits.bool()
        let space = bits.enumeration()
        if space == 1, info.colorModel == .rgb { info.colorModel = .gray }
        guard !hasProfile else { return }
        func chromaticity(_ bits: inout JXLBits) {
            for _ in 0..<2 { _ = bits.u32(a: (0, 19), b: (524_288, 19), c: (1_048_576, 20), d: (2_097_152, 21)) }
        }
        if space != 2 {
            whitePoint = bits.enumeration()
            if whitePoint == 2 { chromaticity(&bits) }
            if space != 1 {
                primaries = bits.enumeration()
                if primaries == 2 { for _ in 0..<3 { chromaticity(&bits) } }
            }
            if bits.bool() {
                bits.skip(24)  // a gamma
                transfer = 2
            } else {
                transfer = bits.enumeration()
            }
        } else {
            (primaries, transfer) = (2, 2)
        }
        _ = bits.enumeration()  // rendering intent
    }

    private mutating func readTransform(_ bits: inout JXLBits) throws(JXLFault) {
        if !bits.bool() {
            hasCustomTransform = true
            if isXYB, !bits.bool() { bits.skip(16 * 16) }
            let mask = bits.bits(3)
            for (i, count) in [15, 55, 210].enumerated() where mask >> i & 1 == 1 { bits.skip(16 * count) }
        }
        try bits.check()
    }
}

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
    /// Whether it covers another area than the image's.
    var hasCrop = false
    var width: Int
    var height: Int
    /// 0 replaces the former pixels.
    var blendMode = 0
    /// Ticks it stays; 0 for a layer of the frame that follows.
    var duration = 0
    var isLast = true

    /// Whether viewers show the frame; others are only references of later frames.
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
        if kind == .lowFrequency { level = bits.u32(a: (1, 0), b: (2, 0), c: (3, 0), d: (4, 0)) }
        let isPartial = kind != .lowFrequency && bits.bool() && readCrop(&bits)
        var savedAs = 0
        if kind == .regular || kind == .skipProgressive {
            blendMode = JXLFrameHeader.blending(&bits, extraChannels: image.extraChannels, isPartial: isPartial)
            for _ in 0..<image.extraChannels {
                _ = JXLFrameHeader.blending(&bits, extraChannels: image.extraChannels, isPartial: isPartial)
            }
            if let animation = image.animation {
                duration = bits.u32(a: (0, 0), b: (1, 0), c: (0, 8), d: (0, 32))
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
        passCount = bits.u32(a: (1, 0), b: (2, 0), c: (3, 0), d: (4, 3))
        guard passCount > 1 else { return }
        let steps = bits.u32(a: (0, 0), b: (1, 0), c: (2, 0), d: (3, 1))
        bits.skip(2 * (passCount - 1) + 2 * steps)
        for _ in 0..<steps { _ = bits.u32(a: (0, 0), b: (1, 0), c: (2, 0), d: (0, 3)) }
    }

    /// Returns whether it leaves part of the image out.
    private mutating func readCrop(_ bits: inout JXLBits) -> Bool {
        func number(_ bits: inout JXLBits) -> Int { bits.u32(a: (0, 8), b: (256, 11), c: (2304, 14), d: (18_688, 30)) }
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
        let mode = bits.u32(a: (0, 0), b: (1, 0), c: (2, 0), d: (3, 2))
        if extraChannels > 0 {
            if mode == 2 || mode == 3 { _ = bits.u32(a: (0, 0), b: (1, 0), c: (2, 0), d: (3, 3)) }
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
