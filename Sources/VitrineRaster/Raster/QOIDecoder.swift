import VitrineCore
import VitrineImageCore

/// Decodes the Quite OK Image format, in Swift alone. Rows are averaged while they are read.
///
/// Source: D. Szablewski, "The Quite OK Image Format", specification 1.0 (2022).
package struct QOIDecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.qoi]
    private static let headerLength = 14
    /// The longest run, which one byte stands for.
    private static let longestRun = 62

    package init() {}

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        let size = PixelSize(width: try reader.u32(at: 4), height: try reader.u32(at: 8))
        let channels = try reader.u8(at: 12)
        guard channels == 3 || channels == 4 else { throw reader.corrupt("\(channels) channels") }
        var info = ImageInfo(format: .qoi, storedSize: size)
        info.hasAlpha = channels == 4
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let reader = ByteReader(source)
        guard reader.matches("qoif", at: 0) else { throw .notAnImage(input: source.name) }
        let info = try Self.read(reader, request.limits).info
        try request.limits.check(storedSize: info.storedSize, input: source.name)
        try request.require(info.storedSize.pixelCount / Self.longestRun, of: source, at: Self.headerLength)
        var rows = try RowCollector(
            source, request, size: info.storedSize, channels: info.hasAlpha ? 4 : 3,
            alpha: info.hasAlpha ? .straight : .none)
        var isPartial = false
        do throws(ImageError) {
            var stream = ByteStream(source, from: Self.headerLength)
            var coder = Coder()
            while !rows.isComplete {
                if info.hasAlpha {
                    try coder.row(&stream, target: rows.row, width: info.storedSize.width, channels: 4)
                } else {
                    try coder.row(&stream, target: rows.row, width: info.storedSize.width, channels: 3)
                }
                try rows.advance()
            }
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        return try rows.finish(isPartial: isPartial)
    }

    /// The state that codes refer to: the last pixel, and 64 earlier ones.
    private struct Coder {
        private let seen = RowBuffer(64 * 4)
        private var pixel = SIMD4<UInt8>(0, 0, 0, 255)
        private var run = 0

        @inline(__always)
        mutating func row(
            _ stream: inout ByteStream, target: UnsafeMutablePointer<UInt8>, width: Int, channels: Int
        ) throws(ImageError) {
            var to = target
            var p = pixel
            for _ in 0..<width {
                if run > 0 {
                    run &-= 1
                } else {
                    let tag = try stream.byte()
                    switch tag >> 6 {
                    case 0:
                        let from = seen.bytes + 4 &* Int(tag)
                        p = SIMD4(from[0], from[1], from[2], from[3])
                    case 1:
                        p.x &+= (tag >> 4 & 3) &- 2
                        p.y &+= (tag >> 2 & 3) &- 2
                        p.z &+= (tag & 3) &- 2
                    case 2:
                        let second = try stream.byte()
                        let green = (tag & 63) &- 32
                        p.x &+= green &- 8 &+ second >> 4
                        p.y &+= green
                        p.z &+= green &- 8 &+ second & 15
                    default:
                        if tag == 254 || tag == 255 {
                            p.x = try stream.byte()
                            p.y = try stream.byte()
                            p.z = try stream.byte()
                            if tag == 255 { p.w = try stream.byte() }
                        } else {
                            run = Int(tag & 63)
                        }
                    }
                    let hash: UInt8 = p.x &* 3 &+ p.y &* 5 &+ p.z &* 7 &+ p.w &* 11
                    let place = seen.bytes + 4 &* Int(hash & 63)
                    (place[0], place[1], place[2], place[3]) = (p.x, p.y, p.z, p.w)
                }
                (to[0], to[1], to[2]) = (p.x, p.y, p.z)
                if channels == 4 { to[3] = p.w }
                to += channels
            }
            pixel = p
        }
    }
}
