import Testing
import VitrineImaging

/// Expected values: computed apart from this code, in Python, from the published description, and equal to those of the
/// PyPI package `blurhash` 1.1.5.
struct BlurHashTests {
    private let slopes = TestImages.slopes(width: 28, height: 21)

    @Test(arguments: [
        (4, 3, "LoHewi1-V}w~qpN4xYNxZ;k-jHah"), (1, 1, "00Hewi"), (3, 5, "coHewi1-V}qpN4xYZ;k-jHtkVyf8VykUf%"),
        (
            9, 9,
            "|oHewi1-V}w~JC$kNyxHS6qpN4xYNxsoS5n+a#a#Z;k-jHahoKWXodWXoKtkVyf8kBa#j[a#j[a#VykUf%e=fjf7fjf7a|tQW=aOkBa}"
                + "jba}jbbHaPahkTahjabGf7j@azs;XRaOj[bajbbHf8j[aiaOkAbHjHbGjabGja"
        ),
    ])
    func encodesAsTheReference(x: Int, y: Int, expected: String) throws {
        #expect(try BlurHash.encode(slopes, x: x, y: y) == expected)
    }

    @Test func decodesAsTheReference() throws {
        let image = try BlurHash.decode("LEHV6nWB2yk8pyo0adR*.7kCMdnj", size: PixelSize(width: 4, height: 3))
        let expected: [(UInt8, UInt8, UInt8)] = [
            (135, 164, 177), (161, 173, 177), (181, 180, 171), (160, 172, 174), (124, 154, 169), (148, 148, 154),
            (164, 145, 134), (146, 152, 155), (124, 144, 154), (144, 134, 132), (163, 130, 104), (148, 140, 134),
        ]
        #expect(image.alpha == .opaque)
        for (i, color) in expected.enumerated() {
            #expect(image[i % 4, i / 4] == PixelColor(red: color.0, green: color.1, blue: color.2))
        }
    }

    @Test func sampledPicturesGiveNearlyTheSameHash() throws {
        let large = PixelImage(width: 280, height: 210, alpha: .opaque) { pixels in
            for y in 0..<210 {
                for x in 0..<280 {
                    let at = (y * 280 + x) * 4
                    (pixels[at], pixels[at + 1]) = (UInt8(x * 255 / 279), UInt8(y * 255 / 209))
                    (pixels[at + 2], pixels[at + 3]) = (90, 255)
                }
            }
        }
        let size = PixelSize(16)
        let sampled = try BlurHash.decode(BlurHash.encode(large), size: size)
        // From every pixel, by the package named above.
        let exact = try BlurHash.decode("L%HV8|2X$5SfhoazfQf7gcfQfQfQ", size: size)
        for y in 0..<16 {
            for x in 0..<16 {
                let (a, b) = (sampled[x, y], exact[x, y])
                #expect(abs(Int(a.red) - Int(b.red)) <= 8 && abs(Int(a.green) - Int(b.green)) <= 8)
            }
        }
    }

    @Test func readsTheMeanColor() throws {
        #expect(try BlurHash.averageColor(of: "00Hewi") == slopesMean())
        let gray = PixelImage(size: PixelSize(5), color: PixelColor(white: 77))
        #expect(try BlurHash.averageColor(of: BlurHash.encode(gray)) == PixelColor(white: 77))
    }

    /// The mean in linear light, which "00Hewi" states: base 83 digits 17, 40, 58, 44.
    private func slopesMean() -> PixelColor {
        let value = ((17 * 83 + 40) * 83 + 58) * 83 + 44
        return PixelColor(red: UInt8(value >> 16), green: UInt8(value >> 8 & 255), blue: UInt8(value & 255))
    }

    @Test func contrastFollowsPunch() throws {
        let hash = try BlurHash.encode(slopes)
        let flat = try BlurHash.decode(hash, size: PixelSize(8), punch: 0)
        #expect(flat.dominantColors() == [try BlurHash.averageColor(of: hash)])
    }

    @Test func transparentPartsCountAsWhite() throws {
        let white = PixelImage(size: PixelSize(4), color: .white)
        #expect(try BlurHash.encode(PixelImage(size: PixelSize(4))) == BlurHash.encode(white))
    }

    @Test(arguments: [
        "", "L", "LEHV6", "LEHV6nWB2yk8pyo0adR*.7kCMdn", "LEHV6nWB2yk8pyo0adR*.7kCMdnjj",
        "LEHV6nWB2yk8pyo0adR*.7kCMd\"j",
        "~EHV6n", "00~~~~", "LEHV6nWB2yk8pyo0adR*.7kCMd~~", "LEHV6nWB2yk8pyo0adR*.7kCMdñ",
        String(repeating: "0", count: 10_000),
    ])
    func refusesWhatIsNoHash(text: String) {
        let error = #expect(throws: ImageError.self) { try BlurHash.decode(text, size: PixelSize(4)) }
        guard case .corrupt = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func refusesParametersOutOfRange() {
        let hash = "LEHV6nWB2yk8pyo0adR*.7kCMdnj"
        #expect(throws: ImageError.self) { try BlurHash.encode(slopes, x: 0) }
        #expect(throws: ImageError.self) { try BlurHash.encode(slopes, y: 10) }
        #expect(throws: ImageError.self) { try BlurHash.decode(hash, size: .zero) }
        #expect(throws: ImageError.self) { try BlurHash.decode(hash, size: PixelSize(.max)) }
        #expect(throws: ImageError.self) { try BlurHash.decode(hash, size: PixelSize(4), punch: .nan) }
    }
}
