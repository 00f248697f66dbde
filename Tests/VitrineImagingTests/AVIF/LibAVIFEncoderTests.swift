#if SystemCodecs
import Testing
import VitrineImaging
import VitrineHEIF

struct LibAVIFEncoderTests {
    private func picture(hasAlpha: Bool) -> PixelImage {
        PixelImage(width: 61, height: 43, alpha: hasAlpha ? .straight : .opaque) { bytes in
            for i in 0..<(61 * 43) {
                let (x, y) = (i % 61, i / 61)
                bytes[4 * i] = UInt8(x * 4)
                bytes[4 * i + 1] = UInt8(y * 5)
                bytes[4 * i + 2] = UInt8((x + y) * 2)
                bytes[4 * i + 3] = hasAlpha ? UInt8(x * 4) : 255
            }
        }
    }

    private func decode(_ bytes: [UInt8]) throws -> DecodedImage {
        let info = ImageInfo(format: .avif, storedSize: PixelSize(width: 61, height: 43))
        return try AVIFDecoder().decode(
            ByteSource(bytes: bytes, name: "test"), DecodeRequest(info: info, target: nil))
    }

    @Test func qualityDecidesSizeAndLikeness() throws {
        let image = picture(hasAlpha: false)
        let expected = image.withUnsafeBytes { Array($0) }
        var (lastSize, lastError) = (0, 100.0)
        for quality in [0.1, 0.6, 0.95] {
            let bytes = try LibAVIFEncoder().encode(image, quality: quality, options: EncodeOptions())
            let error = FlatPixels(try decode(bytes)).difference(to: expected).mean
            #expect(bytes.count > lastSize && error < lastError)
            (lastSize, lastError) = (bytes.count, error)
        }
        #expect(lastError < 2)
    }

    @Test func chromaIsFullFromNineTenthsOn() throws {
        let image = picture(hasAlpha: false)
        let low = try decode(LibAVIFEncoder().encode(image, quality: 0.89, options: EncodeOptions()))
        let high = try decode(LibAVIFEncoder().encode(image, quality: 0.9, options: EncodeOptions()))
        #expect(low.planes[1].width == 31 && high.planes[1].width == 61)
    }

    @Test func alphaIsKept() throws {
        let image = picture(hasAlpha: true)
        let bytes = try LibAVIFEncoder().encode(image, quality: 0.95, options: EncodeOptions())
        let decoded = try decode(bytes)
        #expect(decoded.alpha == .straight)
        #expect(FlatPixels(decoded).difference(to: image.withUnsafeBytes { Array($0) }).mean < 2)
    }

    @Test func metadataIsWrittenOnlyWhenAsked() throws {
        let exif: [UInt8] = [0x49, 0x49, 0x2A, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        let xmp = Array("<x:xmpmeta xmlns:x='adobe:ns:meta/'/>".utf8)
        let options = EncodeOptions(metadata: ImageMetadata(exif: exif, xmp: xmp))
        let image = picture(hasAlpha: false)
        let with = try LibAVIFEncoder().encode(image, quality: 0.7, options: options)
        let without = try LibAVIFEncoder().encode(image, quality: 0.7, options: EncodeOptions())
        #expect(with.contains(exif) && with.contains(xmp))
        #expect(!without.contains(exif) && !without.contains(xmp))
    }

    @Test func quantizersSpanTheWholeRange() {
        #expect(LibAVIFEncoder.quantizer(for: 0) == 63)
        #expect(LibAVIFEncoder.quantizer(for: 1) == 0)
        let steps = (0...100).map { LibAVIFEncoder.quantizer(for: Double($0) / 100) }
        #expect(zip(steps, steps.dropFirst()).allSatisfy { $0 >= $1 })
    }
}
#endif
