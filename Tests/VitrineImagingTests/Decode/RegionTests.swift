import Foundation
import TestSupport
import Testing
import VitrineImaging

/// A region of an image shows what a whole decode has there.
@Suite struct RegionTests {
    private static func difference(_ one: PixelImage, _ other: PixelImage) -> (most: Int, mean: Double) {
        guard one.size == other.size else { return (255, 255) }
        var (most, sum) = (0, 0)
        one.withUnsafeBytes { a in
            other.withUnsafeBytes { b in
                for y in 0..<one.height {
                    for x in 0..<(4 * one.width) {
                        let distance = abs(Int(a[y * one.bytesPerRow + x]) - Int(b[y * other.bytesPerRow + x]))
                        most = max(most, distance)
                        sum += distance
                    }
                }
            }
        }
        return (most, Double(sum) / Double(4 * one.width * one.height))
    }

    private static func regions(of size: PixelSize) -> [PixelRect] {
        let (w, h) = (size.width, size.height)
        return [
            PixelRect(x: 0, y: 0, width: w / 3, height: h / 3),
            PixelRect(x: w / 3, y: h / 4, width: w / 5, height: h / 6),
            PixelRect(x: w - w / 4, y: h - h / 5, width: w / 4, height: h / 5),
            PixelRect(x: 0, y: h / 2, width: w, height: 7), PixelRect(x: w / 2, y: 0, width: 3, height: h),
            PixelRect(x: w - 1, y: h - 1, width: 1, height: 1),
            PixelRect(x: w / 2 + 1, y: h / 2 + 1, width: 40, height: 30),
        ]
    }

    private static func cropped(_ image: PixelImage, _ part: PixelRect) throws -> PixelImage {
        try image.processed(by: [.crop(x: part.x, y: part.y, width: part.size.width, height: part.size.height)])
    }

    /// Formats whose colour is stored in smaller planes may differ by their interpolation.
    @Test(arguments: [
        ("lake.jpg", 0), ("lake-progressive.jpg", 0), ("lake-grey.jpg", 0), ("lake-cmyk.jpg", 0),
        ("orientation-3.jpg", 0), ("orientation-5.jpg", 0), ("orientation-6.jpg", 0), ("orientation-8.jpg", 0),
        ("leaf.png", 0), ("lake-palette.png", 0), ("lake.tif", 0), ("lake.bmp", 0), ("moon.gif", 0), ("leaf.webp", 2),
        ("lake.webp", 2), ("lake.avif", 2), ("lake.heic", 2), ("vitrine.svg", 0),
    ], [Isolation.automatic, .always])
    func regionsHaveThePixelsOfTheWholeImage(_ sample: (name: String, tolerance: Int), isolation: Isolation) throws {
        let input = ImageInput.bytes(try Samples.bytes(sample.name))
        let decoder = ImageDecoder(isolation: isolation)
        let whole = try decoder.decode(input)
        for region in Self.regions(of: whole.size) {
            let part = try decoder.decode(input, options: DecodeOptions(region: region))
            guard let inside = region.clippedForTest(to: whole.size) else { continue }
            let (most, _) = Self.difference(part, try Self.cropped(whole, inside))
            #expect(most <= sample.tolerance, "\(sample.name) \(region)")
        }
    }

    /// A picture with detail in every block.
    private static func detailed(_ width: Int, _ height: Int) -> PixelImage {
        PixelImage(width: width, height: height, alpha: .opaque) { bytes in
            var state: UInt32 = 1
            for at in stride(from: 0, to: 4 * width * height, by: 4) {
                state = state &* 1_664_525 &+ 1_013_904_223
                let (x, y) = (at / 4 % width, at / 4 / width)
                bytes[at] = UInt8((x * 3 + y) & 255)
                bytes[at + 1] = UInt8((x + y * 2) & 127) + UInt8(state >> 26)
                bytes[at + 2] = UInt8((x / 7 * 40 + y / 5 * 30) & 255)
                bytes[at + 3] = 255
            }
        }
    }

    /// Sizes that are no whole blocks, and colour in planes of half the size or of the same.
    @Test(arguments: [OutputFormat.jpeg(quality: 0.7), .jpeg(quality: 0.98), .png], [false, true])
    func regionsOfLargeImagesAreExact(format: OutputFormat, isProgressive: Bool) throws {
        let file = try Self.detailed(1_211, 907).encoded(as: format, isProgressive: isProgressive)
        let whole = try ImageDecoder().decode(.bytes(file))
        for (x, y, width, height) in [
            (0, 0, 100, 100), (97, 83, 301, 215), (1_000, 800, 211, 107), (513, 0, 5, 907), (0, 700, 1_211, 9),
            (600, 450, 1, 1), (1_210, 906, 1, 1), (16, 16, 16, 16), (256, 512, 512, 256),
        ] {
            let region = PixelRect(x: x, y: y, width: width, height: height)
            let part = try ImageDecoder().decode(.bytes(file), options: DecodeOptions(region: region))
            #expect(Self.difference(part, try Self.cropped(whole, region)).most == 0, "\(region)")
        }
    }

    /// A region that is scaled looks like the part of the scaled image.
    @Test(arguments: ["lake.jpg", "lake-progressive.jpg", "leaf.png", "lake.tif", "lake.webp"], [2, 3, 4, 8])
    func scaledRegionsLookLikeTheScaledImage(name: String, factor: Int) throws {
        let input = ImageInput.bytes(try Samples.bytes(name))
        let decoder = ImageDecoder()
        let size = try ImageInfo(of: input).size
        let level = PixelSize(width: size.width / factor, height: size.height / factor)
        let whole = try decoder.decode(input, at: .stretch(width: level.width, height: level.height))
        let tile = PixelRect(x: level.width / 4, y: level.height / 3, width: level.width / 2, height: level.height / 3)
        let region = PixelRect(
            x: tile.x * factor, y: tile.y * factor, width: tile.size.width * factor,
            height: tile.size.height * factor)
        let part = try decoder.decode(
            input, at: .stretch(width: tile.size.width, height: tile.size.height),
            options: DecodeOptions(region: region))
        // The sides of the image are no multiples of the factor.
        #expect(Self.difference(part, try Self.cropped(whole, tile)).mean < 3, "\(name)")
    }

    @Test func regionsAreCutAtTheEdgesAndRefusedOutside() throws {
        let input = ImageInput.bytes(try Samples.bytes("lake.jpg"))
        let decoder = ImageDecoder()
        let size = try ImageInfo(of: input).size
        let huge = PixelRect(x: -10, y: -10, width: .max, height: .max)
        #expect(try decoder.decode(input, options: DecodeOptions(region: huge)).size == size)
        let edge = PixelRect(x: size.width - 10, y: size.height - 5, width: .max, height: 100)
        #expect(try decoder.decode(input, options: DecodeOptions(region: edge)).size == PixelSize(width: 10, height: 5))
        for region in [
            PixelRect(x: size.width, y: 0, width: 1, height: 1), PixelRect(x: 0, y: 0, width: 0, height: 5),
            PixelRect(x: 0, y: .max, width: 1, height: .max), PixelRect(x: -5, y: 0, width: 5, height: 5),
            PixelRect(x: 0, y: 0, width: 5, height: -1), PixelRect(x: .min, y: .min, width: .max, height: .max),
        ] {
            #expect(throws: ImageError.self) { try decoder.decode(input, options: DecodeOptions(region: region)) }
        }
    }

    /// Rows below a region are not decoded.
    @Test(arguments: ["lake.jpg", "leaf.png"])
    func damageBelowARegionIsNoError(name: String) throws {
        let bytes = try Samples.bytes(name)
        let half = ImageInput.bytes(Array(bytes[..<(bytes.count * 3 / 4)]), name: name)
        let whole = try ImageDecoder().decode(.bytes(bytes))
        let (w, h) = (whole.width, whole.height)
        let top = PixelRect(x: w / 4, y: 2, width: w / 4, height: h / 8)
        let part = try ImageDecoder().decode(half, options: DecodeOptions(region: top))
        #expect(Self.difference(part, try Self.cropped(whole, top)).most == 0)
        let bottom = PixelRect(x: 0, y: h - 10, width: w / 4, height: 10)
        #expect(throws: ImageError.truncated(input: name)) {
            try ImageDecoder().decode(half, options: DecodeOptions(region: bottom))
        }
    }

    @Test(arguments: ["lake.jpg", "lake-progressive.jpg", "leaf.png", "lake.tif"])
    func regionsOfDamagedFilesAreTypedErrorsOrPictures(name: String) throws {
        let bytes = try Samples.bytes(name)
        let size = try ImageInfo(of: .bytes(bytes)).size
        let region = PixelRect(x: size.width / 3, y: size.height / 3, width: size.width / 3, height: size.height / 3)
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        for _ in 0..<60 {
            var damaged = bytes
            for _ in 0..<8 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                damaged[Int(state >> 33) % damaged.count] = UInt8(truncatingIfNeeded: state >> 24)
            }
            do throws(ImageError) {
                let part = try ImageDecoder().decode(
                    .bytes(damaged), at: .fit(50), options: DecodeOptions(allowsPartial: true, region: region))
                #expect(part.size.width <= 50 && part.size.height <= 50)
            } catch {
                #expect(!"\(error)".isEmpty)
            }
        }
    }
}

extension PixelRect {
    /// The part inside an image, by other arithmetic than the library's.
    fileprivate func clippedForTest(to whole: PixelSize) -> PixelRect? {
        let columns = (x..<(x + size.width)).clamped(to: 0..<whole.width)
        let rows = (y..<(y + size.height)).clamped(to: 0..<whole.height)
        guard !columns.isEmpty, !rows.isEmpty else { return nil }
        return PixelRect(x: columns.lowerBound, y: rows.lowerBound, width: columns.count, height: rows.count)
    }
}
