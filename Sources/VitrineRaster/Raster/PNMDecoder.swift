import VitrineCore
import VitrineImageCore

/// Decodes the Netpbm formats PBM, PGM, PPM (plain and raw) and PAM, and portable float maps, in Swift alone.
///
/// Samples count as sRGB. Those of a float map are linear light; see ``ToneMap``. A file of several images shows its
/// first. Rows are averaged while they are read.
package struct PNMDecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.pnm]

    package init() {}

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let header = try PNMHeader(reader)
        var info = ImageInfo(format: .pnm, storedSize: header.size)
        info.hasAlpha = header.hasAlpha
        info.colorModel = header.channels <= 2 ? .gray : .rgb
        switch header.packing {
        case .bits, .plainBits: info.bitDepth = 1
        case .float:
            info.bitDepth = 32
            info.orientation = .downMirrored  // the first row stored is the lowest
        case .plain, .raw: info.bitDepth = header.maximum > 255 ? 16 : 8
        }
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let header = try PNMHeader(ByteReader(source))
        try request.limits.check(storedSize: header.size, input: source.name)
        try request.require(header.leastBytes, of: source, at: header.offset)
        var rows = try RowCollector(
            source, request, size: header.size, channels: header.channels, maximum: header.maximum,
            alpha: header.hasAlpha ? .straight : .none)
        var isPartial = false
        do throws(ImageError) {
            try Self.read(source, header, into: &rows)
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        return try rows.finish(isPartial: isPartial)
    }

    private static func read(
        _ source: ByteSource, _ header: PNMHeader, into rows: inout RowCollector
    ) throws(ImageError) {
        var stream = ByteStream(source, from: header.offset)
        let samples = header.size.width * header.channels
        switch header.packing {
        case .raw where header.maximum <= 255:
            while !rows.isComplete {
                let wanted = rows.availableRows
                let read = try stream.read(wanted * samples, into: rows.row)
                try rows.advance(by: read / samples)
                if read < wanted * samples { throw .truncated(input: source.name) }
            }
        case .raw:
            while !rows.isComplete {
                let row = rows.wideRow
                try stream.take(samples * 2, into: row)
                for i in 0..<samples { row[i] = UInt16(bigEndian: row[i]) }
                try rows.advance()
            }
        case .bits:
            let packed = RowBuffer((header.size.width + 7) / 8)
            while !rows.isComplete {
                try stream.take(packed.count, into: packed.bytes)
                let row = rows.row
                for x in 0..<samples { row[x] = packed.bytes[x >> 3] & (0x80 &>> UInt8(x & 7)) == 0 ? 1 : 0 }
                try rows.advance()
            }
        case .plainBits:
            while !rows.isComplete {
                let row = rows.row
                for x in 0..<samples { row[x] = try plainBit(&stream, source.name) }
                try rows.advance()
            }
        case .plain:
            let isWide = header.maximum > 255
            while !rows.isComplete {
                let (row, wide) = (rows.row, rows.wideRow)
                for x in 0..<samples {
                    let value = min(try plainNumber(&stream, source.name), header.maximum)
                    if isWide { wide[x] = UInt16(value) } else { row[x] = UInt8(value) }
                }
                try rows.advance()
            }
        case .float(let isBig):
            let stored = RowBuffer(samples * 4)
            let tones = ToneMap()
            while !rows.isComplete {
                try stream.take(stored.count, into: stored.bytes)
                let row = rows.row
                func light(_ i: Int) -> Float { float(stored.bytes, index: i, isBig: isBig) }
                if header.channels == 3 {
                    for i in stride(from: 0, to: samples, by: 3) {
                        tones.write(red: light(i), green: light(i + 1), blue: light(i + 2), to: row + i)
                    }
                } else {
                    for i in 0..<samples { row[i] = tones.level(light(i)) }
                }
                try rows.advance()
            }
        }
    }

    /// A digit of a plain bitmap: 0 for black in the result.
    private static func plainBit(_ stream: inout ByteStream, _ name: String) throws(ImageError) -> UInt8 {
        while true {
            switch try stream.byte() {
            case UInt8(ascii: "0"): return 1
            case UInt8(ascii: "1"): return 0
            case 9...13, 32: continue
            case UInt8(ascii: "#"): try skipLine(&stream)
            default: throw .corrupt(input: name, reason: "a bit that is neither 0 nor 1")
            }
        }
    }

    private static func plainNumber(_ stream: inout ByteStream, _ name: String) throws(ImageError) -> Int {
        var byte = try stream.byte()
        while byte == 32 || (9...13).contains(byte) || byte == UInt8(ascii: "#") {
            if byte == UInt8(ascii: "#") { try skipLine(&stream) }
            byte = try stream.byte()
        }
        var value = 0
        guard (48...57).contains(byte) else { throw .corrupt(input: name, reason: "a sample that is no number") }
        while (48...57).contains(byte) {
            value = min(value * 10 + Int(byte - 48), 1 << 20)
            // The last number may end with the file.
            if stream.remaining == 0 { break }
            byte = try stream.byte()
        }
        return value
    }

    private static func skipLine(_ stream: inout ByteStream) throws(ImageError) {
        while true {
            let byte = try stream.byte()
            if byte == 10 || byte == 13 { return }
        }
    }

    @inline(__always)
    private static func float(_ bytes: UnsafeMutablePointer<UInt8>, index: Int, isBig: Bool) -> Float {
        let bits = UnsafeRawPointer(bytes + 4 &* index).loadUnaligned(as: UInt32.self)
        return Float(bitPattern: isBig ? UInt32(bigEndian: bits) : UInt32(littleEndian: bits))
    }
}

/// The header of a Netpbm file or a float map.
///
/// Source: Netpbm, pbm(5), pgm(5), ppm(5), pam(5) and pfm(5).
struct PNMHeader {
    enum Packing: Equatable {
        /// One bit a pixel, eight a byte, 1 for black; or digits.
        case bits, plainBits
        /// Numbers in decimal digits, or of one or two bytes.
        case plain, raw
        case float(bigEndian: Bool)
    }

    /// The longest header, with its comments.
    private static let maximumLength = 64 << 10

    var size: PixelSize
    var channels: Int
    var hasAlpha = false
    /// The value of full intensity.
    var maximum = 255
    var packing: Packing
    /// Where samples begin.
    var offset: Int

    /// Whether a file begins as a header does: a magic number, white space, and a number, a comment or a keyword.
    static func looksRight(_ reader: ByteReader) throws(ImageError) -> Bool {
        guard reader.count >= 7, try reader.u8(at: 0) == 0x50 else { return false }
        let (kind, space, next) = (try reader.u8(at: 1), try reader.u8(at: 2), try reader.u8(at: 3))
        guard space == 32 || (9...13).contains(space) else { return false }
        let isNumber = (48...57).contains(next) || next == 35 || next == 32 || (9...13).contains(next)
        switch kind {
        case 0x31...0x36, 0x46, 0x66: return isNumber
        // Other files that begin so are thumbnails of xv.
        case 0x37: return space == 10 && ((65...90).contains(next) || next == 35 || next == 10)
        default: return false
        }
    }

    init(_ reader: ByteReader) throws(ImageError) {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        guard reader.count >= 3, try reader.u8(at: 0) == 0x50 else { throw .notAnImage(input: reader.name) }
        var at = 2
        func token() throws(ImageError) -> String {
            var bytes: [UInt8] = []
            var isComment = false
            while at < PNMHeader.maximumLength {
                let byte = UInt8(try reader.u8(at: at))
                if byte == 35, bytes.isEmpty { isComment = true }
                let isSpace = byte == 32 || (9...13).contains(byte)
                if isSpace, !bytes.isEmpty { break }
                if !isSpace, !isComment { bytes.append(byte) }
                if byte == 10 || byte == 13 { isComment = false }
                at += 1
                guard bytes.count <= 64 else { break }
            }
            return String(decoding: bytes, as: UTF8.self)
        }
        func number() throws(ImageError) -> Int {
            let digits = try token()
            guard let value = Double(digits), value >= 0, value == value.rounded() else {
                throw reader.corrupt("“\(digits)” in its header is no number")
            }
            return Int(min(value, 0x1p40))
        }
        let kind = try reader.u8(at: 1)
        if kind == 0x37 {
            (size, channels, packing, offset) = (.zero, 0, .raw, 0)
            var type = ""
            fields: while true {
                switch try token() {
                case "WIDTH": size.width = try number()
                case "HEIGHT": size.height = try number()
                case "DEPTH": channels = try number()
                case "MAXVAL": maximum = try number()
                case "TUPLTYPE": type = try token()
                case "ENDHDR": break fields
                case let other: throw reader.corrupt("“\(other)” is no field of a header")
                }
            }
            guard (1...4).contains(channels) else {
                throw .unsupported(input: reader.name, reason: "images of \(channels) channels are not read")
            }
            hasAlpha = type.isEmpty ? channels & 1 == 0 : type.hasSuffix("_ALPHA") && channels & 1 == 0
            guard channels & 1 == 1 || hasAlpha else {
                throw .unsupported(input: reader.name, reason: "images of type \(type) are not read")
            }
        } else {
            size = PixelSize(width: try number(), height: try number())
            channels = kind == 0x33 || kind == 0x36 || kind == 0x46 ? 3 : 1
            switch kind {
            case 0x31, 0x34:
                packing = kind == 0x31 ? .plainBits : .bits
                maximum = 1
            case 0x32, 0x33, 0x35, 0x36:
                packing = kind <= 0x33 ? .plain : .raw
                maximum = try number()
            case 0x46, 0x66:
                let scale = Double(try token()) ?? 0
                guard scale.isFinite, scale != 0 else { throw reader.corrupt("a scale of zero") }
                packing = .float(bigEndian: scale > 0)
            default: throw .notAnImage(input: reader.name)
            }
            offset = 0
        }
        guard (1...65_535).contains(maximum) else { throw reader.corrupt("samples up to \(maximum)") }
        guard !size.isEmpty else { throw reader.corrupt("a side of zero pixels") }
        offset = at + 1
    }

    /// Bytes that the samples need at least.
    var leastBytes: Int {
        let samples = size.pixelCount * channels
        switch packing {
        case .bits: return (size.width + 7) / 8 * size.height
        case .plainBits: return samples
        case .plain: return samples * 2 - 1
        case .raw: return samples * (maximum > 255 ? 2 : 1)
        case .float: return samples * 4
        }
    }
}
