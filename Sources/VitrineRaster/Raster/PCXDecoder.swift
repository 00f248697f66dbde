import VitrineCore
import VitrineImageCore

/// Decodes ZSoft PCX of 1 to 8 bits and 1 to 4 planes, in Swift alone. Rows are averaged while they are read.
///
/// Source: ZSoft, "PCX File Format Technical Reference Manual", revision 5 (1991).
package struct PCXDecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.pcx]

    package init() {}

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let header = try PCXHeader(reader)
        var info = ImageInfo(format: .pcx, storedSize: header.size)
        info.hasAlpha = header.channels == 4
        info.bitDepth = header.bits
        info.colorModel = header.isIndexed ? .palette : .rgb
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let header = try PCXHeader(ByteReader(source))
        try request.limits.check(storedSize: header.size, input: source.name)
        let rowBytes = header.bytesPerLine * header.planes
        // A pair of bytes stands for 63 at most.
        let all = rowBytes.multipliedReportingOverflow(by: header.size.height)
        let least = header.isPacked ? all.partialValue / 32 : all.partialValue
        try request.require(least, of: source, at: PCXHeader.length)
        let palette = header.isIndexed ? try header.palette(source) : []
        var rows = try RowCollector(
            source, request, size: header.size, channels: header.channels,
            alpha: header.channels == 4 ? .straight : .none)
        var isPartial = false
        do throws(ImageError) {
            var stream = ByteStream(source, from: PCXHeader.length)
            let stored = RowBuffer(rowBytes)
            var (run, value) = (0, UInt8(0))
            while !rows.isComplete {
                if header.isPacked {
                    for i in 0..<rowBytes {
                        if run == 0 {
                            value = try stream.byte()
                            run = 1
                            // A run of none is passed over.
                            while value >= 0xC0 {
                                run = Int(value & 63)
                                value = try stream.byte()
                                if run > 0 { break }
                                run = 1
                            }
                        }
                        stored.bytes[i] = value
                        run &-= 1
                    }
                } else {
                    try stream.take(rowBytes, into: stored.bytes)
                }
                header.convert(stored.bytes, palette, into: rows.row)
                try rows.advance()
            }
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        return try rows.finish(isPartial: isPartial)
    }
}

struct PCXHeader {
    static let length = 128

    var size: PixelSize
    var bits: Int
    var planes: Int
    var bytesPerLine: Int
    var isPacked: Bool

    var isIndexed: Bool { bits != 8 || planes == 1 }
    var channels: Int { isIndexed ? 3 : planes }

    /// The first byte is too little to go by: the rest of the header has to make sense.
    static func looksRight(_ reader: ByteReader) -> Bool {
        guard reader.count > length else { return false }
        do {
            return try reader.u8(at: 0) == 10 && [0, 2, 3, 4, 5].contains(reader.u8(at: 1)) && reader.u8(at: 2) <= 1
                && isKnown(bits: reader.u8(at: 3), planes: reader.u8(at: 65))
                && reader.u16(at: 8, bigEndian: false) >= reader.u16(at: 4, bigEndian: false)
                && reader.u16(at: 10, bigEndian: false) >= reader.u16(at: 6, bigEndian: false)
        } catch {
            return false
        }
    }

    private static func isKnown(bits: Int, planes: Int) -> Bool {
        switch bits {
        case 1: (1...4).contains(planes)
        case 2, 4: planes == 1
        case 8: planes == 1 || planes == 3 || planes == 4
        default: false
        }
    }

    init(_ reader: ByteReader) throws(ImageError) {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        func u16(_ at: Int) throws(ImageError) -> Int { try reader.u16(at: at, bigEndian: false) }
        guard try reader.u8(at: 0) == 10 else { throw .notAnImage(input: reader.name) }
        isPacked = try reader.u8(at: 2) == 1
        bits = try reader.u8(at: 3)
        let (left, top) = (try u16(4), try u16(6))
        size = PixelSize(width: try u16(8) - left + 1, height: try u16(10) - top + 1)
        planes = try reader.u8(at: 65)
        bytesPerLine = try u16(66)
        guard PCXHeader.isKnown(bits: bits, planes: planes) else {
            throw .unsupported(input: reader.name, reason: "\(planes) planes of \(bits) bits have no decoder here")
        }
        guard !size.isEmpty else { throw reader.corrupt("a side of zero pixels") }
        guard bytesPerLine >= (size.width * bits + 7) / 8 else { throw reader.corrupt("rows of too few bytes") }
    }

    /// Three bytes an entry: from the end of the file for 256 colours, else from the header. An image of 256 colours
    /// without any is grey.
    func palette(_ source: ByteSource) throws(ImageError) -> [UInt8] {
        if bits == 8 {
            let end = try source.bytes(at: source.count - 769, count: 769)
            if end.count == 769, end[0] == 12 { return Array(end[1...]) }
            return (0..<256).flatMap { [UInt8](repeating: UInt8($0), count: 3) }
        }
        if bits == 1, planes == 1 { return [0, 0, 0, 255, 255, 255] }
        var colors = try source.bytes(at: 16, count: 48)
        colors += [UInt8](repeating: 0, count: 48 - colors.count)
        return colors
    }

    /// One row to red, green, blue and, of four planes, alpha.
    func convert(
        _ stored: UnsafeMutablePointer<UInt8>, _ palette: [UInt8], into target: UnsafeMutablePointer<UInt8>
    ) {
        var to = target
        if !isIndexed {
            for x in 0..<size.width {
                for c in 0..<planes { to[c] = stored[c &* bytesPerLine &+ x] }
                to += planes
            }
            return
        }
        let perByte = 8 / bits
        let mask = 1 &<< bits &- 1
        for x in 0..<size.width {
            var index = 0
            let shift = 8 &- bits &- (x % perByte) &* bits
            for plane in 0..<planes {
                let value = Int(stored[plane &* bytesPerLine &+ x / perByte]) &>> shift & mask
                index |= value &<< plane
            }
            for c in 0..<3 { to[c] = palette[3 &* index &+ c] }
            to += 3
        }
    }
}
