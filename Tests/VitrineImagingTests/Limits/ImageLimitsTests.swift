import TestSupport
import Testing
import VitrineImaging

struct ImageLimitsTests {
    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"), arguments: [
        ("jpg-256MP-progressive.jpg", ImageLimits.Kind.pixels), ("png-1x-10M-tall.png", .side),
        ("png-25000x25000-rgba.png", .pixels), ("tiff-deflate-40000x40000.tif", .pixels),
        ("gif-65535-canvas.gif", .pixels), ("webp-16383-lossless.webp", .pixels), ("gif-200-frames-16384.gif", .pixels),
    ])
    func refusesBombs(_ name: String, _ kind: ImageLimits.Kind) throws {
        let path = try #require(Corpus.files(in: "hostile/bombs").first { $0.hasSuffix("/" + name) })
        let source = try ByteSource(.file(path))
        let info = try ImageInfo(reading: source)
        #expect {
            try ImageLimits.standard.check(info, source: source)
        } throws: {
            if case ImageError.limitExceeded(path, kind, _, _) = $0 { true } else { false }
        }
    }

    @Test func boundsPixelsByWhatTheDecoderNeeds() throws {
        let source = ByteSource(bytes: [0], name: "x")
        var limits = ImageLimits()
        limits.maximumPixels = 100
        limits.maximumInterlacedPixels = 50
        limits.maximumWholeImagePixels = 25
        func passes(_ format: ImageFormat, _ pixels: Int, interlaced: Bool = false) -> Bool {
            var info = ImageInfo(format: format, storedSize: PixelSize(width: pixels, height: 1))
            info.isProgressive = interlaced
            return (try? limits.check(info, source: source)) != nil
        }
        #expect(passes(.jpeg, 100) && !passes(.jpeg, 101))
        #expect(passes(.png, 100) && !passes(.png, 50 + 1, interlaced: true) && passes(.png, 50, interlaced: true))
        for format in [ImageFormat.gif, .avif, .jp2] {
            #expect(passes(format, 25) && !passes(format, 26))
        }
        // Some of their varieties are decoded in parts.
        for format in [ImageFormat.webp, .heic, .jxl] {
            #expect(passes(format, 100) && !passes(format, 101))
        }
        limits.maximumResultPixels = 40
        #expect(passes(.bmp, 40) && !passes(.bmp, 41))
        // A drawing has the pixels that it is drawn with.
        #expect(passes(.tiff, 100) && passes(.svg, 65_536))
    }

    @Test func boundsBytesFramesAndDocuments() {
        var limits = ImageLimits()
        limits.maximumInputBytes = 10
        limits.maximumDocumentBytes = 5
        let info = ImageInfo(format: .png, storedSize: PixelSize(1))
        let document = ImageInfo(format: .svg, storedSize: PixelSize(1))
        #expect(throws: ImageError.limitExceeded(input: "x", limit: .inputBytes, actual: 11, allowed: 10)) {
            try limits.check(info, source: ByteSource(bytes: Array(repeating: 0, count: 11), name: "x"))
        }
        #expect(throws: ImageError.limitExceeded(input: "x", limit: .documentBytes, actual: 6, allowed: 5)) {
            try limits.check(document, source: ByteSource(bytes: Array(repeating: 0, count: 6), name: "x"))
        }
        #expect(throws: ImageError.limitExceeded(input: "x", limit: .frames, actual: 1001, allowed: 1000)) {
            try limits.check(info, source: ByteSource(bytes: [0], name: "x"), frames: 1001)
        }
    }

    @Test func photosOf200MegapixelsAreDecodedAtASize() throws {
        let input = ImageInput.bytes(try JPEG.large(16_320, 12_240), name: "photo")
        let decoder = ImageDecoder(isolation: .inProcess)
        for side in [200, 1_000] {
            let image = try decoder.decode(input, at: .fit(side))
            #expect(image.size == PixelSize(width: side, height: side * 3 / 4))
            #expect(image[side / 2, side / 3] == PixelColor(red: 128, green: 128, blue: 128))
        }
        let region = DecodeOptions(region: PixelRect(x: 16_000, y: 12_000, width: 100, height: 50))
        #expect(try decoder.decode(input, at: .none, options: region).size == PixelSize(width: 100, height: 50))
        let error = ImageError.limitExceeded(
            input: "photo", limit: .pixels, actual: 16_320 * 12_240, allowed: 110_000_000)
        #expect(throws: error) { try decoder.decode(input) }
    }

    @Test func pixelsThatADecoderKeepsAreBounded() throws {
        var limits = ImageLimits()
        limits.maximumResultPixels = 100_000
        let decoder = ImageDecoder(limits: limits, isolation: .inProcess)
        // More than 100,000 pixels, of which a fourth is kept for the smaller size.
        let path = Samples.path("leaf.png")
        let size = try ImageInfo(of: .file(path)).size
        #expect(size.pixelCount > 100_000 && size.pixelCount < 400_000)
        let quarter = size.longestSide / 4
        #expect(try decoder.decode(.file(path), at: .fit(quarter)).size.longestSide == quarter)
        #expect(throws: ImageError.limitExceeded(
            input: path, limit: .pixels, actual: size.pixelCount, allowed: 100_000)
        ) { try decoder.decode(.file(path), at: .fit(size.longestSide / 3)) }
    }

    /// A grid of tiles, an opaque lossy WebP, and the low frequencies of JPEG XL.
    @Test func picturesThatAreDecodedInPartsMayExceedTheBoundForWholeOnes() throws {
        var limits = ImageLimits()
        let grid = try HEICSample().bytes
        limits.maximumWholeImagePixels = 10_000
        let decoder = ImageDecoder(limits: limits, isolation: .inProcess)
        for (name, bytes) in [
            ("grid.heic", grid), ("lake.webp", try Samples.bytes("lake.webp")),
            ("lake.jxl", try Samples.bytes("lake.jxl")),
        ] {
            let input = ImageInput.bytes(bytes, name: name)
            let size = try ImageInfo(of: input).size
            #expect(size.pixelCount > 10_000, "\(name)")
            let side = max(1, size.longestSide / 13)
            let image = try decoder.decode(input, at: .fit(side))
            #expect(image.size.longestSide == side, "\(name)")
            #expect(image == (try ImageDecoder(isolation: .inProcess).decode(input, at: .fit(side))), "\(name)")
        }
        // Its alpha is decoded as a whole.
        let leaf = ImageInput.file(Samples.path("leaf.webp"))
        #expect { try decoder.decode(leaf, at: .fit(8)) } throws: {
            if case ImageError.limitExceeded(_, .pixels, _, 10_000) = $0 { true } else { false }
        }
    }

    @Test func oneNumberRaisesAllBoundsOfPixels() throws {
        var limits = ImageLimits()
        limits.allow(pixels: 300_000_000)
        let source = ByteSource(bytes: [0], name: "x")
        for format in [ImageFormat.jpeg, .png, .heic, .webp, .bmp, .avif] {
            var info = ImageInfo(format: format, storedSize: PixelSize(width: 30_000, height: 10_000))
            info.isProgressive = format == .png
            try limits.check(info, source: source)
        }
        #expect(limits.maximumResultPixels == 300_000_000 && limits.maximumWorkerMemory == 3_600_000_000)
        limits.allow(pixels: 1_000)
        #expect(limits.maximumWorkerMemory == 3_600_000_000 && limits.maximumPixels == 1_000)
        limits.allow(pixels: .max)
        #expect(limits.maximumWorkerMemory == .max)
    }

}
