import Testing
import VitrineImaging
import VitrinePNG
import VitrineRaster

struct ICODecoderTests {
    /// Stands for a PNG decoder and answers with the size it is asked for.
    private struct Recorder: ImageDecoding {
        let formats: Set<ImageFormat> = [.png]

        func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
            let size = request.info.storedSize
            let head = try source.bytes(at: 1, count: 3)
            guard request.info.format == .png, request.options.page == 0, head == Array("PNG".utf8) else {
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
        var png = Codec.png
        png.decoders = [Recorder()]
        return try ICODecoder(pictures: Codecs([png])).decode(
            ByteSource(bytes: bytes, name: "test"),
            DecodeRequest(
                info: info, target: target, options: DecodeOptions(page: page, allowsPartial: true), limits: limits))
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

    /// Headers of every length; a profile behind the pixels is no mask, which would make everything transparent.
    @Test(arguments: [12, 40, 52, 56, 64, 108, 124], [false, true])
    func iconsWithEveryBitmapHeaderAreShown(_ length: Int, _ hasMask: Bool) throws {
        func little(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 255) } }
        var header = length == 12
            ? little(12, 4) + little(5, 2) + little(6, 2) + little(1, 2) + little(24, 2)
            : little(length, 4) + little(5, 4) + little(6, 4) + little(1, 2) + little(24, 2)
        header += [UInt8](repeating: 0, count: length - header.count)
        var pixels: [UInt8] = []
        for y in (0..<3).reversed() {
            for x in 0..<5 { pixels += [UInt8(10 * y), UInt8(20 * x), 200] }
            pixels.append(0)
        }
        let mask = hasMask ? [UInt8](repeating: 0, count: 12) : []
        if length == 124 {
            header.replaceSubrange(56..<60, with: Array("DEBM".utf8))
            header.replaceSubrange(112..<120, with: little(124 + pixels.count + mask.count, 4) + little(40, 4))
        }
        let profile = length == 124 ? [UInt8](repeating: 0xFF, count: 40) : []
        let entry = header + pixels + mask + profile
        let file = [0, 0, 1, 0, 1, 0, 5, 3, 0, 0, 1, 0, 24, 0] + little(entry.count, 4) + little(22, 4) + entry
        let info = try ImageInfo(of: .bytes(file))
        #expect(info.format == .ico && info.storedSize == PixelSize(width: 5, height: 3))
        let image = try ImageDecoder(isolation: .inProcess).decode(.bytes(file))
        for y in 0..<3 {
            for x in 0..<5 {
                #expect(image[x, y] == PixelColor(red: 200, green: UInt8(20 * x), blue: UInt8(10 * y)))
            }
        }
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
