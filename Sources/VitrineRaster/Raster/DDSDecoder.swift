import VitrineCore
import VitrineImageCore

/// Decodes DirectDraw surfaces: blocks of BC1 to BC7 and uncompressed pixels of 8 to 32 bits, in Swift alone.
///
/// The first surface at its full size is the image; smaller levels, further faces and slices are not read. Rows, or
/// rows of blocks, are averaged while they are read. Light of BC6H becomes sRGB by ``ToneMap``.
package struct DDSDecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.dds]

    package init() {}

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let header = try DDSHeader(reader)
        var info = ImageInfo(format: .dds, storedSize: header.size)
        info.hasAlpha = header.hasAlpha
        info.colorModel = header.channels <= 2 ? .gray : .rgb
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let header = try DDSHeader(ByteReader(source))
        try request.limits.check(storedSize: header.size, input: source.name)
        let (width, height) = (header.size.width, header.size.height)
        var isPartial = false
        var stream = ByteStream(source, from: header.offset)
        switch header.packing {
        case .unknown(let name):
            throw .unsupported(input: source.name, reason: "a surface of \(name) has no decoder here")
        case .masked(let masks, let bytesPerPixel):
            try request.require(width * height * bytesPerPixel, of: source, at: header.offset)
            var rows = try RowCollector(
                source, request, size: header.size, channels: header.channels,
                alpha: header.hasAlpha ? .straight : .none)
            let fields = masks.map(MaskedField.init)
            let stored = RowBuffer(width * bytesPerPixel)
            do throws(ImageError) {
                while !rows.isComplete {
                    try stream.take(stored.count, into: stored.bytes)
                    Self.convert(
                        stored.bytes, fields: fields, bytesPerPixel: bytesPerPixel, channels: header.channels,
                        into: rows.row, width: width)
                    try rows.advance()
                }
            } catch {
                guard rows.excuses(error, request) else { throw error }
                isPartial = true
            }
            return try rows.finish(isPartial: isPartial)
        case .light(let isSigned):
            return try light(source, header: header, isSigned: isSigned, request: request)
        case .blocks(let kind):
            let across = (width + 3) / 4
            try request.require(across * ((height + 3) / 4) * kind.bytes, of: source, at: header.offset)
            var rows = try RowCollector(
                source, request, size: header.size, channels: kind.channels, alpha: header.hasAlpha ? .straight : .none)
            let stored = RowBuffer(across * kind.bytes)
            let pitch = across * 4 * kind.channels
            let pixels = RowBuffer(4 * pitch)
            do throws(ImageError) {
                while !rows.isComplete {
                    try stream.take(stored.count, into: stored.bytes)
                    for block in 0..<across {
                        kind.decode(
                            stored.bytes + block * kind.bytes, into: pixels.bytes + block * 4 * kind.channels,
                            bytesPerRow: pitch)
                    }
                    for y in 0..<min(4, height - rows.count) {
                        rows.row.update(from: pixels.bytes + y * pitch, count: width * kind.channels)
                        try rows.advance()
                    }
                }
            } catch {
                guard rows.excuses(error, request) else { throw error }
                isPartial = true
            }
            return try rows.finish(isPartial: isPartial)
        }
    }

    /// Blocks of linear light.
    private func light(
        _ source: ByteSource, header: DDSHeader, isSigned: Bool, request: DecodeRequest
    ) throws(ImageError) -> DecodedImage {
        let (width, height) = (header.size.width, header.size.height)
        let (across, down) = ((width + 3) / 4, (height + 3) / 4)
        try request.require(across * down * 16, of: source, at: header.offset)
        let stored = RowBuffer(across * 16)
        let pitch = across * 12
        let pixels = RowBuffer(2 * 4 * pitch)
        let samples = UnsafeMutableRawPointer(pixels.bytes).assumingMemoryBound(to: UInt16.self)
        func decodeBlocks() {
            for block in 0..<across {
                BPTCBlock.decodeBC6H(
                    stored.bytes + 16 * block, isSigned: isSigned, into: samples + 12 * block, samplesPerRow: pitch)
            }
        }
        let tones = ToneMap()
        var rows = try RowCollector(source, request, size: header.size, channels: 3)
        var stream = ByteStream(source, from: header.offset)
        var isPartial = false
        do throws(ImageError) {
            while !rows.isComplete {
                try stream.take(stored.count, into: stored.bytes)
                decodeBlocks()
                for y in 0..<min(4, height - rows.count) {
                    for x in 0..<width {
                        let light = samples + y * pitch + 3 * x
                        tones.write(
                            red: ToneMap.light(light[0]), green: ToneMap.light(light[1]), blue: ToneMap.light(light[2]),
                            to: rows.row + 3 * x)
                    }
                    try rows.advance()
                }
            }
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        return try rows.finish(isPartial: isPartial)
    }

    private static func convert(
        _ stored: UnsafeMutablePointer<UInt8>, fields: [MaskedField], bytesPerPixel: Int, channels: Int,
        into target: UnsafeMutablePointer<UInt8>, width: Int
    ) {
        var (from, to) = (stored, target)
        for _ in 0..<width {
            var word: UInt32 = 0
            for i in 0..<bytesPerPixel { word |= UInt32(from[i]) &<< UInt32(8 &* i) }
            for c in 0..<channels { to[c] = fields[c].value(of: word) }
            from += bytesPerPixel
            to += channels
        }
    }
}

/// One channel of a word of up to 32 bits, stretched to 0…255 and rounded.
struct MaskedField {
    private let mask: UInt32
    private let shift: UInt32
    private let peak: UInt64

    init(_ mask: UInt32) {
        self.mask = mask
        shift = mask == 0 ? 0 : UInt32(mask.trailingZeroBitCount)
        peak = mask == 0 ? 1 : UInt64(mask >> shift)
    }

    @inline(__always)
    func value(of word: UInt32) -> UInt8 {
        UInt8(truncatingIfNeeded: (UInt64((word & mask) &>> shift) &* 255 &+ peak / 2) / peak)
    }
}

/// The header of a DirectDraw surface.
///
/// Source: Microsoft, "DDS_HEADER", "DDS_PIXELFORMAT" and "DDS_HEADER_DXT10" (2020).
struct DDSHeader {
    enum Packing {
        case blocks(DDSBlock)
        /// Blocks of BC6H.
        case light(isSigned: Bool)
        /// Masks of the channels of the result in a little-endian word of so many bytes.
        case masked([UInt32], bytesPerPixel: Int)
        /// A kind without a decoder, by its name.
        case unknown(String)
    }

    var size: PixelSize
    var packing: Packing
    var channels = 4
    var offset = 128

    var hasAlpha: Bool { channels & 1 == 0 }

    init(_ reader: ByteReader) throws(ImageError) {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        guard reader.matches("DDS ", at: 0) else { throw .notAnImage(input: reader.name) }
        func u32(_ at: Int) throws(ImageError) -> Int { try reader.u32(at: at, bigEndian: false) }
        func mask(_ at: Int) throws(ImageError) -> UInt32 { UInt32(truncatingIfNeeded: try u32(at)) }
        guard try u32(4) == 124, try u32(76) == 32 else { throw reader.corrupt("the length of its header") }
        size = PixelSize(width: try u32(16), height: try u32(12))
        guard !size.isEmpty else { throw reader.corrupt("a side of zero pixels") }
        let flags = try u32(80)
        let bits = try u32(88)
        let code = try reader.fourCC(at: 84)
        if flags & 4 != 0 {
            if code == "DX10" {
                offset = 148
                packing = DDSHeader.packing(dxgi: try u32(128))
            } else {
                packing = DDSHeader.packing(code)
            }
        } else {
            guard [8, 16, 24, 32].contains(bits) else {
                throw .unsupported(input: reader.name, reason: "a surface of \(bits) bits a pixel")
            }
            // Masks of other bits than a pixel has stand in files of some writers.
            let pixel = UInt32.max >> UInt32(32 - bits)
            let alpha = flags & 1 != 0 ? try mask(104) & pixel : 0
            var red = try mask(92) & pixel
            let isGray = flags & 0x2_0000 != 0
            if isGray, red == 0 { red = pixel & ~alpha }
            if !isGray, flags & 0x40 == 0 {
                packing = .unknown("pixels without colours")
            } else {
                let colors = isGray ? [red] : [red, try mask(96) & pixel, try mask(100) & pixel]
                packing = .masked(colors + (alpha == 0 ? [] : [alpha]), bytesPerPixel: bits / 8)
            }
        }
        switch packing {
        case .blocks(let kind): channels = kind.channels
        case .masked(let masks, _): channels = masks.count
        case .light: channels = 3
        case .unknown: break
        }
    }

    private static func packing(_ code: FourCC) -> Packing {
        switch code {
        case "DXT1": .blocks(.bc1)
        case "DXT2", "DXT3": .blocks(.bc2)
        case "DXT4", "DXT5": .blocks(.bc3)
        case "ATI1", "BC4U": .blocks(.bc4(isSigned: false))
        case "BC4S": .blocks(.bc4(isSigned: true))
        case "ATI2", "BC5U": .blocks(.bc5(isSigned: false))
        case "BC5S": .blocks(.bc5(isSigned: true))
        default: .unknown("another compression")
        }
    }

    /// Source: Microsoft, "DXGI_FORMAT enumeration".
    private static func packing(dxgi: Int) -> Packing {
        switch dxgi {
        case 70...72: .blocks(.bc1)
        case 73...75: .blocks(.bc2)
        case 76...78: .blocks(.bc3)
        case 79, 80: .blocks(.bc4(isSigned: false))
        case 81: .blocks(.bc4(isSigned: true))
        case 82, 83: .blocks(.bc5(isSigned: false))
        case 84: .blocks(.bc5(isSigned: true))
        case 27...29: .masked([0xFF, 0xFF00, 0xFF_0000, 0xFF00_0000], bytesPerPixel: 4)
        case 87, 90, 91: .masked([0xFF_0000, 0xFF00, 0xFF, 0xFF00_0000], bytesPerPixel: 4)
        case 88, 92, 93: .masked([0xFF_0000, 0xFF00, 0xFF], bytesPerPixel: 4)
        case 85: .masked([0xF800, 0x7E0, 0x1F], bytesPerPixel: 2)
        case 86: .masked([0x7C00, 0x3E0, 0x1F, 0x8000], bytesPerPixel: 2)
        case 61: .masked([0xFF], bytesPerPixel: 1)
        case 94, 95: .light(isSigned: false)
        case 96: .light(isSigned: true)
        case 97...99: .blocks(.bc7)
        default: .unknown("DXGI format \(dxgi)")
        }
    }
}

/// The codings of blocks of four by four pixels.
///
/// Source: Khronos Data Format Specification 1.3, chapters 18 (S3TC), 19 (RGTC) and 20 (BPTC).
enum DDSBlock {
    case bc1, bc2, bc3, bc7
    case bc4(isSigned: Bool), bc5(isSigned: Bool)

    /// Bytes a block.
    var bytes: Int {
        switch self {
        case .bc1, .bc4: 8
        case .bc2, .bc3, .bc5, .bc7: 16
        }
    }

    /// Channels of the result. Of BC5, blue is 0 but in signed surfaces, where 0 is middle grey.
    var channels: Int {
        switch self {
        case .bc1, .bc2, .bc3, .bc7: 4
        case .bc4: 1
        case .bc5: 3
        }
    }

    func decode(_ block: UnsafePointer<UInt8>, into target: UnsafeMutablePointer<UInt8>, bytesPerRow: Int) {
        switch self {
        case .bc1: DDSBlock.colors(block, hasTransparency: true, into: target, bytesPerRow)
        case .bc2:
            DDSBlock.colors(block + 8, hasTransparency: false, into: target, bytesPerRow)
            for i in 0..<16 {
                let level = block[i / 2] &>> UInt8(4 &* (i & 1)) & 15
                target[i / 4 &* bytesPerRow &+ i % 4 &* 4 &+ 3] = level &* 17
            }
        case .bc3:
            DDSBlock.colors(block + 8, hasTransparency: false, into: target, bytesPerRow)
            DDSBlock.levels(block, isSigned: false, into: target + 3, channels: 4, bytesPerRow)
        case .bc4(let isSigned):
            DDSBlock.levels(block, isSigned: isSigned, into: target, channels: 1, bytesPerRow)
        case .bc5(let isSigned):
            DDSBlock.levels(block, isSigned: isSigned, into: target, channels: 3, bytesPerRow)
            DDSBlock.levels(block + 8, isSigned: isSigned, into: target + 1, channels: 3, bytesPerRow)
            for i in 0..<16 { target[i / 4 &* bytesPerRow &+ i % 4 &* 3 &+ 2] = isSigned ? 128 : 0 }
        case .bc7: BPTCBlock.decodeBC7(block, into: target, bytesPerRow: bytesPerRow)
        }
    }

    /// Two colours of 5, 6 and 5 bits, those between them, and two bits a pixel.
    private static func colors(
        _ block: UnsafePointer<UInt8>, hasTransparency: Bool, into target: UnsafeMutablePointer<UInt8>,
        _ bytesPerRow: Int
    ) {
        let first = UInt32(block[0]) | UInt32(block[1]) << 8
        let second = UInt32(block[2]) | UInt32(block[3]) << 8
        func expanded(_ color: UInt32) -> SIMD4<UInt32> {
            let (r, g, b) = (color >> 11 & 31, color >> 5 & 63, color & 31)
            return SIMD4(r << 3 | r >> 2, g << 2 | g >> 4, b << 3 | b >> 2, 255)
        }
        let (a, b) = (expanded(first), expanded(second))
        var table = (a, b, a, b)
        if first > second || !hasTransparency {
            table.2 = (a &* 2 &+ b &+ 1) / 3
            table.3 = (a &+ b &* 2 &+ 1) / 3
        } else {
            table.2 = (a &+ b) / 2
            table.3 = .zero
        }
        for y in 0..<4 {
            var bits = block[4 &+ y]
            var to = target + y &* bytesPerRow
            for _ in 0..<4 {
                let color: SIMD4<UInt32>
                switch bits & 3 {
                case 0: color = table.0
                case 1: color = table.1
                case 2: color = table.2
                default: color = table.3
                }
                for c in 0..<4 { to[c] = UInt8(truncatingIfNeeded: color[c]) }
                bits >>= 2
                to += 4
            }
        }
    }

    /// Two levels, six or four between them, and three bits a pixel.
    private static func levels(
        _ block: UnsafePointer<UInt8>, isSigned: Bool, into target: UnsafeMutablePointer<UInt8>, channels: Int,
        _ bytesPerRow: Int
    ) {
        func level(_ byte: UInt8) -> Int { isSigned ? max(-127, Int(Int8(bitPattern: byte))) : Int(byte) }
        let (a, b) = (level(block[0]), level(block[1]))
        let (low, high) = isSigned ? (-127, 127) : (0, 255)
        var bits: UInt64 = 0
        for i in 0..<6 { bits |= UInt64(block[2 &+ i]) &<< UInt64(8 &* i) }
        for i in 0..<16 {
            let index = Int(bits & 7)
            bits >>= 3
            let value: Int
            switch index {
            case 0: value = a
            case 1: value = b
            case _ where a > b: value = rounded(a &* (8 &- index) &+ b &* (index &- 1), 7)
            case 6: value = low
            case 7: value = high
            default: value = rounded(a &* (6 &- index) &+ b &* (index &- 1), 5)
            }
            let result = isSigned ? ((value &+ 127) &* 255 &+ 127) / 254 : value
            target[i / 4 &* bytesPerRow &+ i % 4 &* channels] = UInt8(truncatingIfNeeded: result)
        }
    }

    @inline(__always)
    private static func rounded(_ sum: Int, _ count: Int) -> Int {
        sum >= 0 ? (sum &+ count / 2) / count : (sum &- count / 2) / count
    }
}
