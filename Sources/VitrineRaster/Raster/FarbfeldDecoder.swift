import VitrineCore
import VitrineImageCore

/// Decodes farbfeld: red, green, blue and straight alpha of 16 bits. In Swift alone; rows are averaged while they are
/// read.
///
/// Source: suckless.org, farbfeld(5).
package struct FarbfeldDecoder: ImageDecoding, HeaderReading {
    package let formats: Set<ImageFormat> = [.farbfeld]
    private static let headerLength = 16

    package init() {}

    package static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader {
        var info = ImageInfo(
            format: .farbfeld, storedSize: PixelSize(width: try reader.u32(at: 8), height: try reader.u32(at: 12)))
        info.hasAlpha = true
        info.bitDepth = 16
        return ImageHeader(info: info)
    }

    package func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try request.requireFirstPage()
        let reader = ByteReader(source)
        guard reader.matches("farbfeld", at: 0) else { throw .notAnImage(input: source.name) }
        let size = try Self.read(reader, request.limits).info.storedSize
        try request.limits.check(storedSize: size, input: source.name)
        try request.require(size.pixelCount * 8, of: source, at: Self.headerLength)
        var rows = try RowCollector(source, request, size: size, channels: 4, maximum: 65_535, alpha: .straight)
        var isPartial = false
        do throws(ImageError) {
            var stream = ByteStream(source, from: Self.headerLength)
            while !rows.isComplete {
                let row = rows.wideRow
                try stream.take(rows.bytesPerRow, into: row)
                for i in 0..<(4 * size.width) { row[i] = UInt16(bigEndian: row[i]) }
                try rows.advance()
            }
        } catch {
            guard rows.excuses(error, request) else { throw error }
            isPartial = true
        }
        return try rows.finish(isPartial: isPartial)
    }
}
