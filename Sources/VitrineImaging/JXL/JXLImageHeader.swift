/// What stands before the first frame of a JPEG XL codestream.
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
    /// Nits of the brightest white; 255 for pictures that are not made for brighter screens.
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
        extraChannels = bits.u32((0, 0), (1, 0), (2, 4), (1, 12))
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
            isSmall ? (bits.bits(5) + 1) * 8 : bits.u32((1, 9), (1, 13), (1, 18), (1, 30))
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
                    ? bits.u32((16, 0), (32, 0), (1, 5), (33, 9)) : bits.u32((1, 6), (65, 8), (321, 10), (1345, 12))
            }
            side(&bits)
            if bits.bits(3) == 0 { side(&bits) }
        }
        if bits.bool() {
            let numerator = bits.u32((100, 0), (1000, 0), (1, 10), (1, 30))
            let denominator = bits.u32((1, 0), (1001, 0), (1, 8), (1, 10))
            let loops = bits.u32((0, 0), (0, 3), (0, 16), (0, 32))
            animation = Animation(
                rate: Double(numerator) / Double(denominator), loopCount: loops, hasTimecodes: bits.bool())
        }
    }

    private static func depth(_ bits: inout JXLBits) -> Int {
        if bits.bool() {
            let depth = bits.u32((32, 0), (16, 0), (24, 0), (1, 6))
            bits.skip(4)
            return depth
        }
        return bits.u32((8, 0), (10, 0), (12, 0), (1, 6))
    }

    private mutating func readChannel(_ bits: inout JXLBits) {
        if bits.bool() {  // all defaults: alpha
            info.hasAlpha = true
            return
        }
        let type = bits.enumeration()
        _ = JXLImageHeader.depth(&bits)
        _ = bits.u32((0, 0), (3, 0), (4, 0), (1, 3))
        bits.skipName()
        switch type {
        case 0:
            info.hasAlpha = true
            bits.skip(1)  // premultiplied or not
        case 2: bits.skip(64)  // a spot colour
        case 4: info.colorModel = .cmyk
        case 5: _ = bits.u32((1, 0), (0, 2), (3, 4), (19, 8))
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
            for _ in 0..<2 { _ = bits.u32((0, 19), (524_288, 19), (1_048_576, 20), (2_097_152, 21)) }
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
