import Testing
import VitrineImaging

struct ICODecoderTests {
    /// Stands for a PNG decoder and answers with the size it is asked for.
    private struct Recorder: ImageDecoding {
        let formats: Set<ImageFormat> = [.png]
        let needsIsolation = false

        func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
            let size = request.info.storedSize
            let head = try source.bytes(at: 1, count: 3)
            guard request.info.format == .png, request.page == 0, head == Array("PNG".utf8) else {
                throw .corrupt(input: source.name, reason: "not the entry")
            }
            let storage = PixelStorage(zeroedByteCount: size.pixelCount * 3)
            return DecodedImage(
                planes: [PixelPlane(width: size.width, height: size.height, channels: 3, storage: storage)], model: .rgb
            )
        }
    }

    private func decode(_ bytes: [UInt8], page: Int = 0, target: PixelSize? = nil) throws(ImageError) -> DecodedImage {
        var limits = ImageLimits.standard
        limits.maximumPixels = 200_000
        let info = ImageInfo(format: .ico, storedSize: PixelSize(32))
        return try ICODecoder(png: Recorder()).decode(
            ByteSource(bytes: bytes, name: "test"),
            DecodeRequest(info: info, target: target, page: page, allowPartial: true, limits: limits))
    }

    @Test func pagesRunFromTheLargestAndDeepest() throws {
        let bytes = try Fixture.bytes("BMP/three.ico")
        let png = try decode(bytes)
        #expect(png.planes[0].width == 32 && png.alpha == .none)
        let deep = try decode(bytes, page: 1)
        #expect(deep.planes[0].storage.withUnsafeBytes { Array($0) } == (try Fixture.bytes("BMP/v4-alpha.rgba")))
        let masked = try decode(bytes, page: 2)
        #expect(masked.planes[0].storage.withUnsafeBytes { Array($0) } == (try Fixture.bytes("BMP/masked.rgba")))
        #expect(masked.alpha == .straight)
        #expect(throws: ImageError.invalidRequest(reason: "page 3 of an icon of 3")) { try decode(bytes, page: 3) }
    }

    @Test func cursorsAreIcons() throws {
        let image = try decode(Fixture.bytes("BMP/masked.cur"))
        #expect(image.planes[0].storage.withUnsafeBytes { Array($0) } == (try Fixture.bytes("BMP/masked.rgba")))
    }

    @Test func reducedIconsArePremultiplied() throws {
        let image = try decode(Fixture.bytes("BMP/masked.cur"), target: PixelSize(width: 5, height: 4))
        #expect(image.alpha == .premultiplied && image.planes[0].width == 12)
        image.planes[0].storage.withUnsafeBytes { bytes in
            #expect(stride(from: 0, to: bytes.count, by: 4).allSatisfy { bytes[$0] <= bytes[$0 + 3] })
            #expect(bytes[3] == 191)  // one of four pixels is transparent
        }
    }

    @Test func anEmptyDirectoryIsCorrupt() {
        #expect(throws: ImageError.corrupt(input: "test", reason: "the icon has no images")) {
            try decode([0, 0, 2, 0, 0, 0])
        }
        #expect(throws: ImageError.truncated(input: "test")) { try decode([0, 0, 1, 0, 9, 0]) }
    }

    @Test func mutatedFilesNeverTrap() throws {
        var noise = Noise(11)
        for name in ["three.ico", "masked.cur"] {
            let bytes = try Fixture.bytes("BMP/\(name)")
            for i in 0..<1_500 {
                let target = i % 2 == 0 ? nil : PixelSize(width: 1 + noise.next(below: 12), height: 5)
                _ = try? decode(noise.mutate(bytes), page: noise.next(below: 3), target: target)
            }
        }
    }
}
