import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePNG

@Suite struct PNGDecoderTests {
    @Test(arguments: ["PNG/digests.txt"])
    func decodesEveryTypeDepthAndInterlacingAsLibpngDoes(file: String) throws {
        let digests = try PNGSupport.digests(file)
        #expect(digests.count == 52)
        for (name, digest) in digests {
            let parts = name.split(separator: "#")
            let bytes = try Fixture.bytes("PNG/\(parts[0])")
            let page = parts.count > 1 ? Int(parts[1])! : 0
            #expect(PNGSupport.digest(try PNGSupport.decode(bytes, page: page)) == digest, "\(name)")
        }
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func decodesPngSuiteAsLibpngDoes() throws {
        let digests = try PNGSupport.digests("PNG/pngsuite-digests.txt")
        #expect(digests.count == 125)
        for (name, digest) in digests {
            let path = try #require(Corpus.file("pngsuite/" + name))
            let bytes = try ByteSource(.file(path)).allBytes()
            #expect(PNGSupport.digest(try PNGSupport.decode(bytes)) == digest, "\(name)")
        }
    }

    @Test func averagesBlocksExactly() throws {
        var random = SeededGenerator(1)
        for (type, channels) in [(UInt8(0), 1), (2, 3)] {
            let (width, height, factor) = (67, 41, 6)
            let pixels = random.bytes(width * height * channels)
            let image = try PNGSupport.decode(
                PNGSupport.file(width, height, type: type, pixels), target: PixelSize(width: 5, height: 3))
            let plane = image.planes[0]
            #expect((plane.width, plane.height, plane.channels) == (12, 7, channels))
            #expect(plane.extentWidth == 67.0 / 6 && plane.extentHeight == 41.0 / 6)
            #expect(PNGSupport.samples(image) == means(pixels, width, height, channels, factor))
        }
    }

    @Test func averagesTallBlocksWithoutOverflow() throws {
        let pixels = [UInt8](repeating: 255, count: 2_000 * 1_300)
        let image = try PNGSupport.decode(PNGSupport.file(1_300, 2_000, type: 0, pixels), target: PixelSize(1))
        #expect(image.planes[0].width == 2 && image.planes[0].height == 4)
        #expect(PNGSupport.samples(image).allSatisfy { $0 == 255 })
    }

    @Test func averagesPremultipliedColour() throws {
        // Invisible red beside visible green: a straight mean would be brown.
        let pixels = (0..<64).flatMap { $0 % 2 == 0 ? [255, 0, 0, 0] : [0, 200, 0, 255] as [UInt8] }
        let image = try PNGSupport.decode(PNGSupport.file(8, 8, type: 6, pixels), target: PixelSize(2))
        #expect(image.alpha == .premultiplied)
        #expect(PNGSupport.samples(image) == [UInt8](repeating: 0, count: 64).indices.map { [0, 100, 0, 128][$0 % 4] })
        let full = try PNGSupport.decode(PNGSupport.file(8, 8, type: 6, pixels))
        #expect(full.alpha == .straight)
        #expect(PNGSupport.samples(full) == pixels)
    }

    @Test func premultipliesEveryPairExactly() throws {
        // 256 alphas by 256 levels, blocks of 2x2 equal pixels: means are the products themselves.
        var doubled: [UInt8] = []
        for y in 0..<512 {
            for x in 0..<512 {
                let level = UInt8(x / 2)
                doubled += [level, level, 255, UInt8(y / 2)]
            }
        }
        let image = try PNGSupport.decode(PNGSupport.file(512, 512, type: 6, doubled), target: PixelSize(128))
        let samples = PNGSupport.samples(image)
        for a in 0..<256 {
            for v in 0..<256 {
                let expected = UInt8((v * a * 2 + 255) / 510)
                #expect(samples[(a * 256 + v) * 4] == expected && samples[(a * 256 + v) * 4 + 2] == UInt8(a))
            }
        }
    }

    @Test func averagesInterlacedFilesLikeOthers() throws {
        for name in ["2-8", "3-4", "6-16", "0-1", "4-8"] {
            let target = PixelSize(width: 4, height: 3)
            let plain = try PNGSupport.decode(Fixture.bytes("PNG/n\(name).png"))
            let woven = try PNGSupport.decode(Fixture.bytes("PNG/i\(name).png"))
            let channels = plain.planes[0].channels
            guard channels & 1 == 1 else { continue }
            for (file, whole) in [("n", plain), ("i", woven)] {
                let reduced = try PNGSupport.decode(Fixture.bytes("PNG/\(file)\(name).png"), target: target)
                #expect(PNGSupport.samples(reduced) == means(PNGSupport.samples(whole), 23, 17, channels, 2))
            }
        }
    }

    @Test func choosesBlocksThatLeaveTwiceTheTarget() throws {
        let file = PNGSupport.file(100, 60, type: 0, [UInt8](repeating: 7, count: 6_000))
        for (target, width) in [(100, 100), (30, 100), (25, 50), (20, 50), (10, 20), (1, 4)] {
            let size = PixelSize(width: target, height: max(1, target * 60 / 100))
            #expect(try PNGSupport.decode(file, target: size).planes[0].width == width)
        }
    }

    @Test func correctsGammaUnlessAProfileSaysMore() throws {
        let linear = PNGSupport.chunk("gAMA", PNGSupport.big(100_000))
        let pixels: [UInt8] = [0, 64, 128, 255]
        #expect(try decoded(pixels, linear) == [0, 136, 186, 255])
        #expect(try decoded(pixels, PNGSupport.chunk("gAMA", PNGSupport.big(45_455))) == pixels)
        #expect(try decoded(pixels, PNGSupport.chunk("gAMA", PNGSupport.big(0))) == pixels)
        #expect(try decoded(pixels, linear + PNGSupport.chunk("sRGB", [0])) == pixels)
        var info = ImageInfo(format: .png, storedSize: PixelSize(width: 4, height: 1))
        info.colorProfile = [1, 2, 3]
        let source = ByteSource(bytes: PNGSupport.file(4, 1, type: 0, pixels, extra: linear), name: "test")
        let image = try PNGDecoder().decode(source, DecodeRequest(info: info, target: nil))
        #expect(PNGSupport.samples(image) == pixels && image.colorProfile == [1, 2, 3])
    }

    private func decoded(_ pixels: [UInt8], _ extra: [UInt8]) throws -> [UInt8] {
        PNGSupport.samples(try PNGSupport.decode(PNGSupport.file(4, 1, type: 0, pixels, extra: extra)))
    }

    /// The plain definition of block means.
    private func means(_ pixels: [UInt8], _ width: Int, _ height: Int, _ channels: Int, _ factor: Int) -> [UInt8] {
        var result: [UInt8] = []
        for top in stride(from: 0, to: height, by: factor) {
            for left in stride(from: 0, to: width, by: factor) {
                for c in 0..<channels {
                    var (sum, count) = (0, 0)
                    for y in top..<min(top + factor, height) {
                        for x in left..<min(left + factor, width) {
                            sum += Int(pixels[(y * width + x) * channels + c])
                            count += 1
                        }
                    }
                    result.append(UInt8((sum + count / 2) / count))
                }
            }
        }
        return result
    }
}
