import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineJPEG

#if SystemCodecs
@Suite struct LibJPEGEncoderTests {
    private let encoder = LibJPEGEncoder()

    private func gradient(_ alpha: PixelImage.Alpha = .opaque) -> PixelImage {
        PixelImage(width: 61, height: 43, alpha: alpha) { pixels in
            for y in 0..<43 {
                for x in 0..<61 {
                    let p = (y * 61 + x) * 4
                    let a = alpha == .opaque ? 255 : x * 4
                    let color = [x * 4, y * 5, 128].map { alpha == .premultiplied ? $0 * a / 255 : $0 }
                    for i in 0..<3 { pixels[p + i] = UInt8(color[i]) }
                    pixels[p + 3] = UInt8(a)
                }
            }
        }
    }

    private func decode(_ bytes: [UInt8]) throws -> DecodedImage {
        try LibJPEGDecoder().decode(ByteSource(bytes: bytes, name: "encoded"), eighths: 8, isPlanar: false)
    }

    /// Offsets of the segments with a marker.
    private func segments(_ marker: UInt8, in bytes: [UInt8]) -> [Int] {
        (0..<bytes.count - 1).filter { bytes[$0] == 0xFF && bytes[$0 + 1] == marker }
    }

    @Test func bestQualityComesBackNearlyEqual() throws {
        let image = gradient()
        let decoded = try decode(encoder.encode(image, quality: 1, options: EncodeOptions()))
        let samples = JPEG.samples(decoded.planes[0])
        for y in 0..<43 {
            for x in 0..<61 {
                let p = (y * 61 + x) * 3
                #expect(abs(Int(samples[p]) - Int(image[x, y].red)) <= 3)
                #expect(abs(Int(samples[p + 1]) - Int(image[x, y].green)) <= 3)
                #expect(abs(Int(samples[p + 2]) - Int(image[x, y].blue)) <= 3)
            }
        }
    }

    @Test func sizeGrowsWithQuality() throws {
        let sizes = try [0, 0.3, 0.6, 0.85, 1].map {
            try encoder.encode(gradient(), quality: $0, options: EncodeOptions()).count
        }
        #expect(sizes == sizes.sorted() && sizes[0] < sizes[4])
        let clamped = try encoder.encode(gradient(), quality: 7, options: EncodeOptions()).count
        #expect(clamped == sizes[4])
        #expect(try encoder.encode(gradient(), quality: .nan, options: EncodeOptions()).count == sizes[0])
    }

    @Test(arguments: [(0.5, 0x22), (0.89, 0x22), (0.9, 0x11), (1, 0x11)] as [(Double, UInt8)])
    func chromaIsHalvedBelowHighQuality(quality: Double, factors: UInt8) throws {
        let bytes = try encoder.encode(gradient(), quality: quality, options: EncodeOptions())
        let frame = try #require(segments(0xC0, in: bytes).first)
        #expect(bytes[frame + 11] == factors)
    }

    @Test(arguments: [PixelImage.Alpha.straight, .premultiplied])
    func alphaIsComposedOverWhite(alpha: PixelImage.Alpha) throws {
        let decoded = try decode(encoder.encode(gradient(alpha), quality: 1, options: EncodeOptions()))
        let samples = JPEG.samples(decoded.planes[0])
        for x in 0..<61 {
            let wanted = (128 * x * 4 + 255 * (255 - x * 4)) / 255
            #expect(abs(Int(samples[x * 3 + 2]) - wanted) <= 4)
        }
    }

    @Test func progressiveOptionMakesSeveralScans() throws {
        let bytes = try encoder.encode(gradient(), quality: 0.8, options: EncodeOptions(isProgressive: true))
        #expect(segments(0xC2, in: bytes).count == 1)
        #expect(segments(0xDA, in: bytes).count > 3)
        #expect(try decode(bytes).planes[0].width == 61)
    }

    @Test func metadataIsWrittenOnlyWhenAskedFor() throws {
        let plain = try encoder.encode(gradient(), quality: 0.8, options: EncodeOptions())
        #expect(segments(0xE1, in: plain).isEmpty)
        let metadata = ImageMetadata(exif: Array("II*\0exif".utf8), xmp: Array("<x:xmpmeta/>".utf8))
        let bytes = try encoder.encode(gradient(), quality: 0.8, options: EncodeOptions(metadata: metadata))
        let found = segments(0xE1, in: bytes)
        try #require(found.count == 2)
        #expect(bytes[(found[0] + 4)...].starts(with: Array("Exif\0\0II*\0exif".utf8)))
        #expect(bytes[(found[1] + 4)...].starts(with: Array("http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>".utf8)))
        #expect(try decode(bytes).planes[0].width == 61)
    }

    @Test func metadataLargerThanASegmentIsRefused() throws {
        for (exif, xmp) in [(65_527, 65_504), (65_528, 0), (0, 65_505)] {
            let metadata = ImageMetadata(
                exif: [UInt8](repeating: 1, count: exif), xmp: [UInt8](repeating: 32, count: xmp))
            let isFitting = exif == 65_527
            let error = JPEG.error {
                _ = try encoder.encode(gradient(), quality: 0.8, options: EncodeOptions(metadata: metadata))
            }
            #expect((error == nil) == isFitting)
            if !isFitting {
                let reason = "metadata does not fit into one segment of 64 KiB"
                #expect(error == .encodingFailed(format: .jpeg, reason: reason))
            }
        }
    }

    @Test func sideBeyondTheFormatIsRefused() {
        let image = PixelImage(size: PixelSize(width: 65_501, height: 1), color: .white)
        let reason = "a side must be from 1 to 65500 pixels"
        #expect(throws: ImageError.encodingFailed(format: .jpeg, reason: reason)) {
            try encoder.encode(image, quality: 0.5, options: EncodeOptions())
        }
    }

    @Test func noiseGrowsTheOutputBuffer() throws {
        var numbers = SeededGenerator(3)
        let image = PixelImage(width: 400, height: 400, alpha: .opaque) { pixels in
            for i in 0..<pixels.count { pixels[i] = i % 4 == 3 ? 255 : UInt8.random(in: 0...255, using: &numbers) }
        }
        let bytes = try encoder.encode(image, quality: 1, options: EncodeOptions())
        #expect(bytes.count > 200_000 && bytes.suffix(2) == [0xFF, 0xD9])
        #expect(try decode(bytes).planes[0].width == 400)
    }
}
#endif
