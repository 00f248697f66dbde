#if SystemCodecs
import Testing
import VitrineCore
import VitrineImaging
import VitrineRaster

struct LibWebPEncoderTests {
    private func picture(alpha: PixelImage.Alpha) -> PixelImage {
        PixelImage(width: 61, height: 43, alpha: alpha) { bytes in
            for i in 0..<(61 * 43) {
                let (x, y) = (i % 61, i / 61)
                let a = alpha == .opaque ? 255 : x < 20 ? 0 : x < 40 ? 128 : 255
                let color = [x * 4, y * 5, (x + y) * 2].map { alpha == .premultiplied ? ($0 * a + 127) / 255 : $0 }
                for c in 0..<3 { bytes[4 * i + c] = UInt8(color[c]) }
                bytes[4 * i + 3] = UInt8(a)
            }
        }
    }

    private func decode(_ bytes: [UInt8]) throws -> FlatPixels {
        let info = ImageInfo(format: .webp, storedSize: PixelSize(width: 61, height: 43))
        return FlatPixels(
            try WebPDecoder().decode(ByteSource(bytes: bytes, name: "test"), DecodeRequest(info: info, target: nil)))
    }

    @Test(arguments: [PixelImage.Alpha.opaque, .straight, .premultiplied])
    func losslessKeepsEveryVisiblePixel(alpha: PixelImage.Alpha) throws {
        let image = picture(alpha: alpha)
        let bytes = try LibWebPEncoder(lossless: true).encode(image, quality: 0.5, options: EncodeOptions())
        let expected = (0..<(61 * 43)).flatMap { i -> [UInt8] in
            let color = image[i % 61, i / 61]
            return [color.red, color.green, color.blue, color.alpha]
        }
        #expect(try decode(bytes).difference(to: expected).largest == 0)
    }

    @Test func qualityDecidesSizeAndLikeness() throws {
        let image = picture(alpha: .opaque)
        let expected = image.withUnsafeBytes { Array($0) }
        var (lastSize, lastError) = (0, 100.0)
        for quality in [0.2, 0.75, 1] {
            let bytes = try LibWebPEncoder().encode(image, quality: quality, options: EncodeOptions())
            let error = try decode(bytes).difference(to: expected).mean
            #expect(bytes.count > lastSize && error < lastError)
            (lastSize, lastError) = (bytes.count, error)
        }
        #expect(lastError < 2)
    }

    @Test func lossyKeepsAlphaExactly() throws {
        let image = picture(alpha: .premultiplied)
        let flat = try decode(LibWebPEncoder().encode(image, quality: 0.9, options: EncodeOptions()))
        #expect((0..<(61 * 43)).allSatisfy { flat.bytes[4 * $0 + 3] == image[$0 % 61, $0 / 61].alpha })
    }

    @Test func metadataIsWrittenOnlyWhenAsked() throws {
        let image = picture(alpha: .opaque)
        let exif: [UInt8] = [0x49, 0x49, 0x2A, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        let xmp = Array("<x:xmpmeta xmlns:x='adobe:ns:meta/'/>".utf8)
        let options = EncodeOptions(metadata: ImageMetadata(exif: exif, xmp: xmp))
        let with = try LibWebPEncoder().encode(image, quality: 0.8, options: options)
        let without = try LibWebPEncoder().encode(image, quality: 0.8, options: EncodeOptions())
        #expect(with.contains(Array("EXIF".utf8) + [14, 0, 0, 0] + exif))
        #expect(with.contains(xmp))
        #expect(!without.contains(Array("EXIF".utf8)) && !without.contains(xmp))
        #expect(try decode(with).bytes == decode(without).bytes)
    }

    @Test func sidesBeyondTheFormatAreRefused() {
        let image = PixelImage(size: PixelSize(width: 16_384, height: 1), color: .white)
        #expect(throws: ImageError.encodingFailed(format: .webp, reason: "a side is longer than 16383 pixels")) {
            try LibWebPEncoder().encode(image, quality: 0.8, options: EncodeOptions())
        }
    }
}
#endif
