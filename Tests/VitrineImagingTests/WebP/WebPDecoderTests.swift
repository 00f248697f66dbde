#if SystemCodecs
import Foundation
import Testing
import VitrineCore
import VitrineImaging
import VitrineRaster

struct WebPDecoderTests {
    private let size = PixelSize(width: 75, height: 53)

    private func request(
        _ size: PixelSize, target: PixelSize? = nil, page: Int = 0, allowsPartial: Bool = false,
        limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) -> DecodeRequest {
        DecodeRequest(
            info: ImageInfo(format: .webp, storedSize: size), target: target,
            options: DecodeOptions(page: page, allowsPartial: allowsPartial),
            limits: limits, cancellation: cancellation)
    }

    private func decode(_ bytes: [UInt8], _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        try WebPDecoder().decode(ByteSource(bytes: bytes, name: "test"), request)
    }

    @Test(arguments: [("lossy.webp", "lossy.rgb", 4.0), ("lossless.webp", "lossless.rgb", 0),
        ("lossy-alpha.webp", "lossy-alpha.rgba", 0), ("lossless-alpha.webp", "lossless-alpha.rgba", 0)])
    func fullSizeEqualsTheReference(name: String, reference: String, tolerance: Double) throws {
        let image = try decode(Fixture.bytes("WebP/\(name)"), request(size))
        let difference = FlatPixels(image).difference(to: try Fixture.bytes("WebP/\(reference)"))
        #expect(difference.largest <= tolerance)
        #expect(!image.isPartial)
    }

    @Test func lossyOpaqueStaysInItsPlanes() throws {
        let image = try decode(Fixture.bytes("WebP/lossy.webp"), request(size))
        #expect(image.model == .yCbCr(.bt601, fullRange: false))
        #expect(image.planes.map(\.width) == [75, 38, 38])
        #expect(image.alpha == .none)
    }

    @Test func reductionAveragesBlocks() throws {
        let bytes = try Fixture.bytes("WebP/lossless.webp")
        let reference = try Fixture.bytes("WebP/lossless.rgb")
        let image = try decode(bytes, request(size, target: PixelSize(width: 9, height: 6)))
        let plane = try #require(image.planes.first)
        #expect(plane.width == 19 && plane.height == 14 && plane.extentWidth == 18.75 && plane.extentHeight == 13.25)
        var reducer = BoxReducer(width: 75, height: 53, channels: 3, factor: 4)
        reference.withUnsafeBufferPointer { reducer.add(rows: $0.baseAddress!, count: 53, bytesPerRow: 225) }
        let expected = reducer.finish()
        #expect(
            plane.storage.withUnsafeBytes { Array($0) } == expected.storage.withUnsafeBytes { Array($0) })
    }

    @Test func reducedAlphaIsPremultiplied() throws {
        let image = try decode(
            Fixture.bytes("WebP/lossless-alpha.webp"), request(size, target: PixelSize(width: 15, height: 10)))
        #expect(image.alpha == .premultiplied)
        let plane = try #require(image.planes.first)
        plane.storage.withUnsafeBytes { bytes in
            #expect(bytes[0] == 0 && bytes[3] == 0)
            #expect(stride(from: 0, to: bytes.count, by: 4).allSatisfy { bytes[$0] <= bytes[$0 + 3] })
        }
    }

    @Test func animationFramesAreComposed() throws {
        let bytes = try Fixture.bytes("WebP/animated.webp")
        let reference = try Fixture.bytes("WebP/animated.rgba")
        let frameBytes = 75 * 53 * 4
        for page in 0..<5 {
            let image = try decode(bytes, request(size, page: page))
            let expected = reference[(page * frameBytes)..<((page + 1) * frameBytes)]
            let difference = FlatPixels(image).difference(to: expected)
            #expect(difference.largest <= (page == 4 ? 4 : 2), "frame \(page)")
        }
        // The last frame replaces all others, so it is decoded alone.
        #expect(try decode(bytes, request(size, page: 4)).model == .yCbCr(.bt601, fullRange: false))
        let small = try decode(bytes, request(size, target: PixelSize(width: 9, height: 6), page: 2))
        #expect(small.planes[0].width == 19 && small.alpha == .premultiplied)
    }

    @Test func pagesThatDoNotExistAreRefused() throws {
        let animated = try Fixture.bytes("WebP/animated.webp")
        let still = try Fixture.bytes("WebP/lossy.webp")
        #expect(throws: ImageError.invalidRequest(reason: "frame 5 of an animation of 5")) {
            try decode(animated, request(size, page: 5))
        }
        #expect(throws: ImageError.invalidRequest(reason: "page 1 of a still image")) {
            try decode(still, request(size, page: 1))
        }
        var limits = ImageLimits.standard
        limits.maximumFrames = 3
        #expect(throws: ImageError.limitExceeded(input: "test", limit: .frames, actual: 4, allowed: 3)) {
            try decode(animated, request(size, page: 3, limits: limits))
        }
    }

    @Test func truncatedInputGivesThePartThatIsThere() throws {
        let whole = try Fixture.bytes("WebP/lossy.webp")
        let cut = Array(whole.prefix(whole.count * 3 / 4))
        #expect(throws: ImageError.truncated(input: "test")) { try decode(cut, request(size)) }
        let image = try decode(cut, request(size, allowsPartial: true))
        #expect(image.isPartial)
        let full = try decode(whole, request(size))
        let rows = 75 * 16
        #expect(
            image.planes[0].storage.withUnsafeBytes { Array($0.prefix(rows)) }
                == full.planes[0].storage.withUnsafeBytes { Array($0.prefix(rows)) })
        image.planes[0].storage.withUnsafeBytes { #expect($0[75 * 53 - 1] == 128) }
    }

    @Test func limitsAreCheckedOnTheFilesOwnHeader() throws {
        let bytes = try Fixture.bytes("WebP/lossless.webp")
        var limits = ImageLimits.standard
        limits.maximumWholeImagePixels = 1_000
        #expect(throws: ImageError.limitExceeded(input: "test", limit: .pixels, actual: 75 * 53, allowed: 1_000)) {
            try decode(bytes, request(PixelSize(1), limits: limits))
        }
        limits = .standard
        limits.maximumSide = 74
        #expect(throws: ImageError.limitExceeded(input: "test", limit: .side, actual: 75, allowed: 74)) {
            try decode(bytes, request(PixelSize(1), limits: limits))
        }
    }

    @Test func cancelledWorkStops() throws {
        let token = CancellationToken()
        token.cancel()
        for name in ["lossy.webp", "lossless.webp", "animated.webp"] {
            let bytes = try Fixture.bytes("WebP/\(name)")
            #expect(throws: ImageError.cancelled(input: "test")) {
                try decode(bytes, request(size, page: name == "animated.webp" ? 1 : 0, cancellation: token))
            }
        }
    }

    @Test func mutatedFilesNeverTrap() throws {
        var noise = Noise(7)
        var decoded = 0
        for name in ["lossy.webp", "lossless.webp", "lossy-alpha.webp", "lossless-alpha.webp", "animated.webp"] {
            let bytes = try Fixture.bytes("WebP/\(name)")
            for i in 0..<600 {
                var limits = ImageLimits.standard
                limits.maximumWholeImagePixels = 1_000_000
                let target = i % 2 == 0 ? nil : PixelSize(width: 1 + noise.next(below: 40), height: 20)
                let page = name == "animated.webp" ? noise.next(below: 6) : 0
                let r = request(size, target: target, page: page, allowsPartial: i % 3 == 0, limits: limits)
                if (try? decode(noise.mutate(bytes), r)) != nil { decoded += 1 }
            }
        }
        #expect(decoded > 100)
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func everyPictureOfTheCorpusDecodes() throws {
        for path in Corpus.files(in: "corpus/webp") {
            let r = request(PixelSize(width: 4_000, height: 4_000), target: PixelSize(width: 100, height: 100))
            let image = try WebPDecoder().decode(ByteSource(.file(path)), r)
            #expect(!image.isPartial, "\(path)")
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func hostileFilesEndInAnErrorOrAPicture() throws {
        let folders = ["gofuzz-webp", "bombs", "truncated", "pillow"]
        for path in folders.flatMap({ Corpus.files(in: "hostile/\($0)") }) {
            for allowsPartial in [false, true] {
                let r = request(PixelSize(200), target: PixelSize(50), allowsPartial: allowsPartial)
                _ = try? WebPDecoder().decode(ByteSource(.file(path)), r)
            }
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func bombsAreRefusedByTheirHeader() throws {
        let path = try #require(Corpus.files(in: "hostile/bombs").first { $0.hasSuffix("webp-16383-lossless.webp") })
        let limit = ImageError.limitExceeded(
            input: path, limit: .pixels, actual: 16_383 * 16_383, allowed: ImageLimits.standard.maximumWholeImagePixels)
        #expect(throws: limit) { try WebPDecoder().decode(ByteSource(.file(path)), request(PixelSize(10))) }
    }
}
#endif
