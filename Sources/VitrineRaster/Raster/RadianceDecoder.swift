import VitrineCore
import VitrineImageCore

/// Decodes Radiance images (RGBE and XYZE), plain and run-length coded, in Swift alone.
///
/// Light becomes sRGB by ``ToneMap``. Rows are averaged as they are stored, and the resolution line tells which way up.
///
/// Source: G. Ward, "Real Pixels", Graphics Gems II (1991), and the Radiance reference manual, "Picture File Format".
package struct RadianceDecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.hdr]

    package init() {}

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let header = try RadianceHeader(reader)
        var info = ImageInfo(format: .hdr, storedSize: header.size)
        info.orientation = header.orientation
        info.bitDepth = 32
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let header = try RadianceHeader(ByteReader(source))
        try request.limits.check(storedSize: header.size, input: source.name)
        // A row begins with four bytes at least, and runs of the older coding have any length.
        try request.require(header.size.height * 4, of: source, at: header.offset)
        let tones = ToneMap()
        var rows = try RowCollector(source, request, size: header.size, channels: 3)
        let stored = RowBuffer(4 * header.size.width)
        var isPartial = false
        do throws(ImageError) {
            var stream = ByteStream(source, from: header.offset)
            while !rows.isComplete {
                try RadianceRows.read(&stream, into: stored.bytes, width: header.size.width, name: source.name)
                let row = rows.row
                for x in 0..<header.size.width {
                    let light = header.light(stored.bytes + 4 &* x)
                    tones.write(red: light.x, green: light.y, blue: light.z, to: row + 3 &* x)
                }
                try rows.advance()
            }
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        return try rows.finish(isPartial: isPartial)
    }
}

struct RadianceHeader {
    private static let maximumLength = 64 << 10
    /// Light of each exponent on one step of a mantissa.
    private static let scales: [Float] = (0..<256).map {
        $0 == 0 ? 0 : Float(sign: .plus, exponent: $0 - 136, significand: 1)
    }

    var size: PixelSize
    var orientation: Orientation
    var isXYZ = false
    /// Where rows begin.
    var offset: Int

    init(_ reader: ByteReader) throws(ImageError) {
        guard reader.count > 0 else { throw .empty(input: reader.name) }
        guard reader.matches("#?", at: 0) else { throw .notAnImage(input: reader.name) }
        var at = 0
        func line() throws(ImageError) -> String {
            var bytes: [UInt8] = []
            while at < RadianceHeader.maximumLength {
                let byte = UInt8(try reader.u8(at: at))
                at += 1
                if byte == 10 { return String(decoding: bytes, as: UTF8.self) }
                if bytes.count < 256 { bytes.append(byte) }
            }
            throw reader.corrupt("a header without an end")
        }
        while true {
            let text = try line()
            if text.isEmpty || text == "\r" { break }
            if text.hasPrefix("FORMAT=") {
                isXYZ = text.contains("xyze")
                guard isXYZ || text.contains("rgbe") else {
                    throw .unsupported(input: reader.name, reason: "a Radiance image of \(text)")
                }
            }
        }
        let words = try line().split { $0 == " " || $0 == "\r" }
        guard words.count == 4, let first = Int(words[1]), let second = Int(words[3]), first > 0, second > 0 else {
            throw reader.corrupt("the resolution line")
        }
        // Rows run along the axis that is named last. Each sign is the direction in which pixels follow.
        let axes = (String(words[0]), String(words[2]))
        size = PixelSize(width: min(second, 1 << 40), height: min(first, 1 << 40))
        switch axes {
        case ("-Y", "+X"): orientation = .up
        case ("-Y", "-X"): orientation = .upMirrored
        case ("+Y", "-X"): orientation = .down
        case ("+Y", "+X"): orientation = .downMirrored
        case ("+X", "-Y"): orientation = .leftMirrored
        case ("-X", "-Y"): orientation = .right
        case ("-X", "+Y"): orientation = .rightMirrored
        case ("+X", "+Y"): orientation = .left
        default: throw reader.corrupt("the resolution line")
        }
        offset = at
    }

    /// Linear light with the primaries of sRGB.
    @inline(__always)
    func light(_ p: UnsafeMutablePointer<UInt8>) -> SIMD4<Float> {
        // The middle of a step, as Radiance itself has it (ray/src/common/color.c, colr_color).
        let steps = SIMD4<Float>(Float(p[0]), Float(p[1]), Float(p[2]), 0)
        let value = (steps + SIMD4(0.5, 0.5, 0.5, 0)) * RadianceHeader.scales[Int(p[3])]
        guard isXYZ else { return value }
        // ITU-R BT.709 with the white of D65.
        return SIMD4(3.2406, -0.9689, 0.0557, 0) * value.x + SIMD4(-1.5372, 1.8758, -0.2040, 0) * value.y
            + SIMD4(-0.4986, 0.0415, 1.0570, 0) * value.z
    }
}

/// Rows of four bytes a pixel, in each of the three ways of storing them.
enum RadianceRows {
    static func read(
        _ stream: inout ByteStream, into row: UnsafeMutablePointer<UInt8>, width: Int, name: String
    ) throws(ImageError) {
        var first: (UInt8, UInt8, UInt8, UInt8) = (0, 0, 0, 0)
        func four() throws(ImageError) {
            first.0 = try stream.byte()
            first.1 = try stream.byte()
            first.2 = try stream.byte()
            first.3 = try stream.byte()
        }
        try four()
        let isCoded =
            first.0 == 2 && first.1 == 2 && first.2 < 128 && Int(first.2) << 8 | Int(first.3) == width
            && (8...32_767).contains(width)
        if isCoded {
            for channel in 0..<4 { try readChannel(&stream, into: row + channel, width: width, name: name) }
            return
        }
        // Pixels one after the other; (1, 1, 1, n) repeats the last one, more so if there are several.
        var (x, shift) = (0, 0)
        while true {
            if first.0 == 1, first.1 == 1, first.2 == 1 {
                let count = Int(first.3) << shift
                guard x > 0, count <= width - x else { throw .corrupt(input: name, reason: "a run beyond its row") }
                for i in x..<(x + count) { for c in 0..<4 { row[4 * i + c] = row[4 * x - 4 + c] } }
                x += count
                shift += 8
                guard shift <= 24 || x == width else { throw .corrupt(input: name, reason: "too long a run") }
            } else {
                (row[4 &* x], row[4 &* x &+ 1], row[4 &* x &+ 2], row[4 &* x &+ 3]) = first
                x += 1
                shift = 0
            }
            if x == width { return }
            try four()
        }
    }

    private static func readChannel(
        _ stream: inout ByteStream, into target: UnsafeMutablePointer<UInt8>, width: Int, name: String
    ) throws(ImageError) {
        var x = 0
        while x < width {
            let head = Int(try stream.byte())
            let count = head > 128 ? head - 128 : head
            guard count > 0, count <= width - x else { throw .corrupt(input: name, reason: "a run beyond its row") }
            if head > 128 {
                let value = try stream.byte()
                for i in x..<(x + count) { target[4 &* i] = value }
            } else {
                for i in x..<(x + count) { target[4 &* i] = try stream.byte() }
            }
            x += count
        }
    }
}
