import Testing
import VitrineImaging

/// Expected values: computed apart from this code, in Python, from the published description; the opaque hash is equal
/// to that of the PyPI package `thumbhash` 0.1.2 (which fails on alpha).
struct ThumbHashTests {
    private static let opaque: [UInt8] = [
        98, 247, 5, 101, 144, 18, 58, 90, 3, 92, 106, 193, 118, 184, 133, 164, 96, 99, 6, 230, 185,
    ]
    private static let translucent: [UInt8] = [
        223, 39, 134, 35, 10, 40, 148, 124, 8, 137, 169, 160, 163, 37, 73, 250, 112, 119, 114, 120, 135, 119, 119,
    ]
    private static let wide: [UInt8] = [
        160, 231, 9, 81, 138, 194, 96, 108, 132, 119, 121, 120, 0, 102, 247, 230, 136,
    ]

    @Test func encodesAsTheReference() {
        #expect(ThumbHash.encode(TestImages.slopes(width: 28, height: 21)) == Self.opaque)
        #expect(ThumbHash.encode(TestImages.slopes(width: 20, height: 30, alpha: true)) == Self.translucent)
        #expect(ThumbHash.encode(TestImages.slopes(width: 60, height: 9)) == Self.wide)
    }

    @Test func decodesAsTheReference() throws {
        try check(Self.opaque, PixelSize(width: 32, height: 23), [
            [0, 0, 255, 255], [193, 41, 113, 255], [150, 172, 127, 255], [8, 157, 175, 255], [83, 39, 0, 255],
        ])
        try check(Self.translucent, PixelSize(width: 19, height: 32), [
            [127, 90, 164, 0], [170, 92, 132, 145], [123, 162, 145, 133], [113, 62, 121, 109], [215, 57, 63, 217],
        ])
    }

    /// Checks the pixels in three corners, the middle and the last corner.
    private func check(_ hash: [UInt8], _ size: PixelSize, _ expected: [[UInt8]]) throws {
        let image = try ThumbHash.decode(hash)
        #expect(image.size == size)
        let (right, bottom) = (size.width - 1, size.height - 1)
        let points = [(0, 0), (right, 0), (size.width / 2, size.height / 2), (0, bottom), (right, bottom)]
        for ((x, y), channels) in zip(points, expected) {
            let color = image[x, y]
            let found = [color.red, color.green, color.blue, color.alpha]
            // Sums in another order may cross the line between two bytes.
            #expect(zip(found, channels).allSatisfy { abs(Int($0) - Int($1)) <= 1 }, "\(found) \(channels)")
        }
    }

    @Test func tellsShapeAndMeanColor() throws {
        #expect(try ThumbHash.aspectRatio(of: Self.opaque) == 1.4)
        #expect(try ThumbHash.aspectRatio(of: Self.translucent) == 0.6)
        #expect(try ThumbHash.averageColor(of: Self.opaque) == PixelColor(red: 129, green: 133, blue: 151))
        #expect(try ThumbHash.averageColor(of: Self.translucent) == PixelColor(red: 134, green: 114, blue: 128, alpha: 136))
    }

    @Test func reducesLargePictures() throws {
        let large = PixelImage(size: PixelSize(width: 1_000, height: 500), color: PixelColor(red: 200, green: 100, blue: 50))
        let hash = ThumbHash.encode(large)
        #expect(hash == ThumbHash.encode(PixelImage(size: PixelSize(width: 100, height: 50), color: large[0, 0])))
        let image = try ThumbHash.decode(hash, longestSide: 8)
        #expect(image.size == PixelSize(width: 8, height: 5))
        #expect(abs(Int(image[3, 3].red) - 200) < 8 && abs(Int(image[3, 3].blue) - 50) < 8)
    }

    @Test func extremeShapesAndInvisiblePicturesHaveHashes() throws {
        for size in [PixelSize(1), PixelSize(width: 3_000, height: 1), PixelSize(width: 1, height: 101)] {
            #expect(try ThumbHash.decode(ThumbHash.encode(PixelImage(size: size, color: .white))).alpha == .opaque)
        }
        let invisible = try ThumbHash.decode(ThumbHash.encode(PixelImage(size: PixelSize(4))))
        #expect(invisible[0, 0].alpha == 0)
    }

    @Test func refusesEveryDamagedHash() {
        for count in 0..<Self.translucent.count {
            #expect(throws: ImageError.self) { try ThumbHash.decode(Array(Self.translucent.prefix(count))) }
        }
        #expect(throws: ImageError.self) { try ThumbHash.decode(Self.opaque + [0]) }
        var sideless = Self.opaque
        sideless[3] &= 0xf8
        #expect(throws: ImageError.self) { try ThumbHash.aspectRatio(of: sideless) }
        #expect(throws: ImageError.self) { try ThumbHash.decode(Self.opaque, longestSide: 0) }
    }

    @Test func survivesAnyBytes() {
        var state: UInt64 = 1
        for _ in 0..<3_000 {
            let bytes = (0..<Int(state >> 33 & 31)).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(truncatingIfNeeded: state >> 40)
            }
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            if let image = try? ThumbHash.decode(bytes) { #expect(image.size.longestSide == 32) }
        }
    }
}
