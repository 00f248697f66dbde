import Testing
import VitrineImaging

struct ImageLimitsTests {
    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"), arguments: [
        ("jpg-256MP-progressive.jpg", ImageLimits.Kind.pixels), ("png-1x-10M-tall.png", .side),
        ("png-25000x25000-rgba.png", .pixels), ("tiff-deflate-40000x40000.tif", .pixels),
        ("gif-65535-canvas.gif", .pixels), ("webp-16383x8191-lossy.webp", .pixels),
        ("webp-16383-lossless.webp", .pixels), ("gif-200-frames-16384.gif", .pixels),
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
        for format in [ImageFormat.webp, .gif, .heic, .avif, .jxl, .jp2] {
            #expect(passes(format, 25) && !passes(format, 26))
        }
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

    @Test func boundsTheResult() {
        #expect(throws: ImageError.limitExceeded(input: "x", limit: .outputSide, actual: 8193, allowed: 8192)) {
            try ImageLimits.standard.checkOutput(PixelSize(width: 1, height: 8193), input: "x")
        }
        #expect(throws: ImageError.self) { try ImageLimits.standard.checkOutput(.zero, input: "x") }
        #expect(throws: Never.self) { try ImageLimits.standard.checkOutput(PixelSize(8192), input: "x") }
    }
}
