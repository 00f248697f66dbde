import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePNG

@Suite struct PNGFaultTests {
    private let pixels = (0..<(40 * 30 * 3)).map { UInt8(truncatingIfNeeded: $0 * 7) }

    private func kind(_ bytes: [UInt8], page: Int = 0, limits: ImageLimits = .standard) -> String {
        do throws(ImageError) {
            _ = try PNGSupport.decode(bytes, page: page, limits: limits)
            return "decoded"
        } catch {
            return error.caseName
        }
    }

    @Test func refusesWhatBreaksTheRules() {
        let good = PNGSupport.file(40, 30, type: 2, pixels)
        #expect(kind(good) == "decoded")
        #expect(kind([]) == "empty")
        #expect(kind([1, 2, 3, 4, 5, 6, 7, 8, 9]) == "notAnImage")
        #expect(kind(Array(good.prefix(5))) == "truncated")
        let end = PNGSupport.chunk("IEND", [])
        #expect(kind(PNGSupport.signature + PNGSupport.header(4, 4, type: 2) + end) == "corrupt")
        #expect(kind(PNGSupport.signature + PNGSupport.header(0, 4, type: 2) + end) == "corrupt")
        #expect(kind(PNGSupport.signature + PNGSupport.header(4, 4, type: 1) + end) == "corrupt")
        #expect(kind(PNGSupport.signature + PNGSupport.header(4, 4, type: 2, depth: 4) + end) == "corrupt")
        #expect(kind(PNGSupport.file(40, 30, type: 3, Array(pixels.prefix(1_200)))) == "corrupt")
        #expect(kind(PNGSupport.file(40, 30, type: 2, pixels, extra: PNGSupport.chunk("QQQQ", []))) == "unsupported")
        let apple = PNGSupport.signature + PNGSupport.chunk("CgBI", [0, 0, 0, 0]) + good.dropFirst(8)
        #expect(kind(apple) == "unsupported")
        #expect(kind(good, page: 1) == "invalidRequest")
        #expect(kind(good, page: -1) == "invalidRequest")
    }

    @Test func refusesWrongChecksums() {
        var header = PNGSupport.file(40, 30, type: 2, pixels)
        header[30] ^= 1
        #expect(kind(header) == "corrupt")
        // One bit of one pixel: only the Adler-32 of the data can tell.
        var pixel = PNGSupport.file(40, 30, type: 2, pixels)
        pixel[pixel.count / 2] ^= 1
        #expect(kind(pixel) == "corrupt")
    }

    @Test func obeysLimits() {
        let file = PNGSupport.file(40, 30, type: 2, pixels)
        var limits = ImageLimits()
        limits.maximumSide = 39
        #expect(kind(file, limits: limits) == "limitExceeded")
        limits = ImageLimits()
        limits.maximumPixels = 1_199
        #expect(kind(file, limits: limits) == "limitExceeded")
        let huge = PNGSupport.signature + PNGSupport.header(0x7FFF_FFFF, 0x7FFF_FFFF, type: 6, depth: 16)
            + PNGSupport.chunk("IDAT", [])
        limits.maximumSide = .max
        limits.maximumPixels = .max
        #expect(kind(huge, limits: limits) == "limitExceeded")
    }

    @Test func givesThePartThatIsThere() throws {
        let whole = PNGSupport.file(40, 30, type: 2, pixels)
        let row = 40 * 3
        for rows in [1, 7, 29] {
            // Signature, header, chunk, zlib and stored-block headers, then rows of 121 bytes.
            let cut = Array(whole.prefix(8 + 25 + 8 + 2 + 5 + rows * (row + 1) + 3))
            #expect(kind(cut) == "truncated")
            let image = try PNGSupport.decode(cut, allowsPartial: true)
            #expect(image.isPartial)
            let samples = PNGSupport.samples(image)
            #expect(Array(samples.prefix(rows * row)) == Array(pixels.prefix(rows * row)))
            #expect(samples.dropFirst(rows * row).allSatisfy { $0 == 0 })
        }
        #expect(kind(Array(whole.prefix(60))) == "truncated")
        #expect(throws: ImageError.truncated(input: "test")) {
            try PNGSupport.decode(Array(whole.prefix(60)), allowsPartial: true)
        }
    }

    @Test func fillsAnInterlacedPictureFromEarlierPasses() throws {
        let bytes = try Fixture.bytes("PNG/i2-8.png")
        let whole = PNGSupport.samples(try PNGSupport.decode(bytes))
        let partial = try PNGSupport.decode(Array(bytes.prefix(bytes.count / 2)), allowsPartial: true)
        #expect(partial.isPartial)
        let samples = PNGSupport.samples(partial)
        for y in stride(from: 0, to: 17, by: 8) {
            for x in 0..<23 {
                let pixel = Array(samples[((y * 23 + x) * 3)..<((y * 23 + x) * 3 + 3)])
                let own = Array(whole[((y * 23 + x) * 3)..<((y * 23 + x) * 3 + 3)])
                let left = (0...x).contains { from in
                    Array(whole[((y * 23 + from) * 3)..<((y * 23 + from) * 3 + 3)]) == pixel
                }
                #expect(pixel == own || left)
            }
        }
    }

    @Test func stopsWhenCancelled() throws {
        let token = CancellationToken()
        token.cancel()
        #expect(throws: ImageError.cancelled(input: "test")) {
            try PNGSupport.decode(PNGSupport.file(40, 30, type: 2, pixels), cancellation: token)
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func survivesHostileFiles() throws {
        var decoded = 0
        for folder in ["gofuzz-png", "imagetestsuite-png", "pillow", "bombs", "truncated"] {
            for path in Corpus.files(in: "hostile/" + folder) {
                let source = try ByteSource(.file(path))
                guard source.count > 8, try source.bytes(at: 0, count: 8) == PNGSupport.signature else { continue }
                for target in [nil, PixelSize(3)] {
                    let info = ImageInfo(format: .png, storedSize: PixelSize(32))
                    for allowsPartial in [false, true] {
                        let request = DecodeRequest(
                            info: info, target: target, options: DecodeOptions(allowsPartial: allowsPartial))
                        if (try? PNGDecoder().decode(source, request)) != nil { decoded += 1 }
                    }
                }
            }
        }
        #expect(decoded > 200)
    }

    @Test func survivesMutations() throws {
        let names = ["n2-8", "i6-16", "n3-4", "key-rgb16", "animation", "tiny-pieces", "i0-1"]
        var random = SeededGenerator(42)
        let rounds = 700
        var outcomes = [0, 0]
        for name in names {
            let good = try Fixture.bytes("PNG/\(name).png")
            for round in 0..<rounds {
                var bytes = good
                for _ in 0...(round % 4) {
                    let at = Int.random(in: 8..<bytes.count, using: &random)
                    bytes[at] = UInt8.random(in: 0...255, using: &random)
                }
                if round % 5 == 0 { bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random)) }
                let target = round % 3 == 0 ? PixelSize(2) : nil
                let image = try? PNGSupport.decode(
                    bytes, size: PixelSize(23), target: target, page: name == "animation" ? round % 7 : 0,
                    allowsPartial: round % 2 == 0)
                outcomes[image == nil ? 0 : 1] += 1
            }
        }
        #expect(outcomes[0] > 500 && outcomes[1] > 500)
    }
}
