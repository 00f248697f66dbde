import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

/// The merged image of Photoshop files, and their previews.
@Suite struct PSDDecoderTests {
    private let picture = RasterPicture(hasAlpha: false)

    private func image(_ file: [UInt8], at resizer: ImageResizer = .none) throws -> PixelImage {
        try ImageDecoder(isolation: .inProcess).decode(.bytes(file, name: "test.psd"), at: resizer)
    }

    private func pixels(_ file: [UInt8]) throws -> [UInt8] {
        let image = try image(file)
        return image.withUnsafeBytes { bytes in
            (0..<image.height).flatMap { bytes[($0 * image.bytesPerRow)..<($0 * image.bytesPerRow + 4 * image.width)] }
        }
    }

    private var planes: [[UInt8]] { (0..<3).map { picture.samples([$0]) } }

    @Test func colourOfEveryDepthAndCoding() throws {
        for (isPacked, isLarge) in [(true, false), (false, false), (true, true), (false, true)] {
            let eight = picture.psd(mode: 3, planes: planes, isPacked: isPacked, isLarge: isLarge)
            #expect(try pixels(eight) == picture.pixels)
            let sixteen = planes.map(RasterPicture.words)
            let deep = picture.psd(mode: 3, depth: 16, planes: sixteen, isPacked: isPacked, isLarge: isLarge)
            #expect(try pixels(deep) == picture.pixels)
            #expect(try ImageInfo(of: .bytes(deep)).bitDepth == 16)
        }
        // Linear light, of which 1 is white.
        let lights = planes.map { plane in RasterPicture.floats(plane.map { Float($0) / 255 }) }
        let linear = try pixels(picture.psd(mode: 3, depth: 32, planes: lights))
        for (value, stored) in zip(linear, picture.pixels) {
            let light = Double(stored) / 255
            let level = light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
            #expect(abs(Double(value) - 255 * level) <= 1)
            #expect(stored > 0 && stored < 255 || value == stored)
        }
        // Light above white is white, and the hue of a bright colour stays.
        func shown(_ light: [Float]) throws -> [UInt8] {
            let planes = light.map { RasterPicture.floats([Float](repeating: $0, count: picture.width * picture.height)) }
            return Array(try pixels(picture.psd(mode: 3, depth: 32, planes: planes)).prefix(3))
        }
        #expect(try shown([1, 1, 1]) == [255, 255, 255] && shown([3, 3, 3]) == [255, 255, 255])
        #expect(try shown([1, 1, 0.5])[0] >= 254)
        let orange = try shown([4, 0.5, 0.25])
        // Cut off channel by channel it would be (255, 188, 137), a yellow.
        #expect(orange[0] >= 254 && orange[1] < 180 && orange[1] > orange[2], "\(orange)")
        // 0.4 of linear light is 170 of sRGB.
        let flat = [Float](repeating: 0.4, count: picture.width * picture.height)
        let gray = picture.psd(mode: 1, depth: 32, planes: [RasterPicture.floats(flat)])
        #expect(try pixels(gray)[0] == 170)
    }

    @Test func greyBitmapsIndicesAndDuotones() throws {
        let gray = picture.samples([0])
        let expected = RasterPicture.grays(gray)
        #expect(try pixels(picture.psd(mode: 1, planes: [gray])) == expected)
        #expect(try pixels(picture.psd(mode: 8, planes: [gray], colors: [1, 2, 3, 4])) == expected)
        let palette = (0..<768).map { UInt8(($0 * 31) % 256) }
        let indexed = picture.psd(mode: 2, planes: [gray], colors: palette)
        var colors: [UInt8] = []
        for index in gray.map(Int.init) { colors += [palette[index], palette[256 + index], palette[512 + index], 255] }
        #expect(try pixels(indexed) == colors)
        let clear = picture.psd(mode: 2, planes: [gray], colors: palette, resources: [(1047, RasterPicture.big16(0))])
        #expect(try pixels(clear)[3] == 0)
        #expect(try ImageInfo(of: .bytes(clear)).hasAlpha)
        let bits = [[UInt8]](repeating: [0b1010_0000, 0, 0b0000_0010], count: picture.height).flatMap { $0 }
        let bitmap = try pixels(picture.psd(mode: 0, depth: 1, planes: [bits]))
        #expect([0, 4, 8, 12].map { bitmap[$0] } == [0, 255, 0, 255])
        #expect(bitmap[4 * 22] == 0)
    }

    @Test func inksAreStoredInverted() throws {
        // No ink but cyan: 255 is none.
        let full = [UInt8](repeating: 255, count: picture.width * picture.height)
        let none = [UInt8](repeating: 0, count: full.count)
        #expect(try pixels(picture.psd(mode: 4, planes: [none, full, full, full])).prefix(4) == [0, 255, 255, 255])
        #expect(try pixels(picture.psd(mode: 4, planes: [full, full, full, full])).prefix(4) == [255, 255, 255, 255])
        #expect(try pixels(picture.psd(mode: 4, planes: [full, full, full, none])).prefix(4) == [0, 0, 0, 255])
    }

    @Test func labIsConvertedFromD50() throws {
        // sRGB (200, 100, 50) is L 54.3, a 37.4, b 46.2 relative to D50 (Lindbloom's calculator).
        let count = picture.width * picture.height
        let lab = ([138, 165, 174] as [UInt8]).map { [UInt8](repeating: $0, count: count) }
        let result = try pixels(picture.psd(mode: 9, planes: lab))
        for (value, expected) in zip(result.prefix(3), [200, 100, 50]) { #expect(abs(Int(value) - expected) <= 3) }
        let white = ([255, 128, 128] as [UInt8]).map { [UInt8](repeating: $0, count: count) }
        #expect(try pixels(picture.psd(mode: 9, planes: white)).prefix(4).allSatisfy { $0 >= 254 })
    }

    @Test func transparencyIsTakenOutOfTheWhite() throws {
        let count = picture.width * picture.height
        // Half of (200, 100, 0) over white is stored as (228, 178, 128).
        let stored = ([228, 178, 127, 128] as [UInt8]).map { [UInt8](repeating: $0, count: count) }
        let file = picture.psd(mode: 3, planes: stored, layers: -1)
        #expect(try ImageInfo(of: .bytes(file)).hasAlpha)
        let first = Array(try pixels(file).prefix(4))
        #expect(first == [101, 51, 0, 128])  // premultiplied
        // Without a negative number of layers, the fourth channel is a stored selection.
        let opaque = picture.psd(mode: 3, planes: stored, layers: 1)
        #expect(try pixels(opaque).prefix(4) == [228, 178, 127, 255])
        #expect(try !ImageInfo(of: .bytes(opaque)).hasAlpha)
    }

    /// Each kind of picture has half of a colour over white; the same over nothing is expected.
    @Test func transparencyOfInksAndLabIsTakenOutOfTheirWhite() throws {
        let count = picture.width * picture.height
        func file(_ mode: Int, _ samples: [UInt8], _ depth: Int) throws -> [UInt8] {
            let planes = samples.map { [UInt8](repeating: $0, count: count) }
            let stored = depth == 8 ? planes : planes.map(RasterPicture.words)
            return picture.psd(mode: mode, depth: depth, planes: stored, layers: -1)
        }
        for depth in [8, 16] {
            // Half of full cyan.
            let inks = try file(4, [127, 255, 255, 255, 128], depth)
            #expect(try ImageInfo(of: .bytes(inks)).hasAlpha)
            let cyan = Array(try pixels(inks).prefix(4))
            #expect(cyan[0] <= 1 && cyan[1...] == [128, 128, 128])
            let clear = try file(4, [255, 255, 255, 255, 0], depth)
            #expect(try pixels(clear).prefix(4) == [0, 0, 0, 0])
            // Half of (138, 165, 174), which is sRGB (200, 100, 50), over (255, 128, 128).
            let lab = try file(9, [196, 147, 151, 128], depth)
            #expect(try ImageInfo(of: .bytes(lab)).hasAlpha)
            let brown = Array(try pixels(lab).prefix(4))
            for (value, expected) in zip(brown, [100, 50, 25, 128]) { #expect(abs(Int(value) - expected) <= 3) }
            let nothing = try file(9, [255, 128, 128, 0], depth)
            #expect(try pixels(nothing).prefix(4) == [0, 0, 0, 0])
            #expect(try pixels(file(9, [138, 165, 174, 255], depth)).prefix(4).last == 255)
        }
        let small = try image(file(4, [127, 255, 255, 255, 128], 8), at: .fit(4))
        #expect(small[1, 1].alpha == 128 && small[1, 1].red <= 1)
    }

    /// Their rows would have too few samples for the channels of the result.
    @Test func modesAndDepthsThatPhotoshopDoesNotWriteAreRefused() throws {
        let palette = [UInt8](repeating: 7, count: 768)
        let count = picture.width * picture.height
        for depth in [1, 16, 32] {
            let plane = [UInt8](repeating: 0, count: count * depth / 8 + picture.height * 3)
            let file = picture.psd(mode: 2, depth: depth, planes: [plane], isPacked: false, colors: palette)
            #expect(throws: ImageError.self) { try image(file) }
        }
        for mode in [1, 3, 4, 8, 9] {
            let planes = [[UInt8]](repeating: [UInt8](repeating: 0, count: picture.height * 3), count: 4)
            #expect(throws: ImageError.self) {
                try image(picture.psd(mode: mode, depth: 1, planes: planes, isPacked: false))
            }
        }
    }

    /// Bitmaps have no transparency; a second channel is a stored selection.
    @Test func aBitmapWithASecondChannelIsShownWithoutIt() throws {
        let bits = [[UInt8]](repeating: [0b1010_0000, 0, 0b0000_0010], count: picture.height).flatMap { $0 }
        let plain = try pixels(picture.psd(mode: 0, depth: 1, planes: [bits]))
        let file = picture.psd(mode: 0, depth: 1, planes: [bits, bits.map { ~$0 }], layers: -1)
        #expect(try pixels(file) == plain)
        #expect(try !ImageInfo(of: .bytes(file)).hasAlpha)
    }

    private func preview() throws -> [UInt8] {
        let flat = PixelImage(size: PixelSize(width: 30, height: 20), color: PixelColor(red: 220, green: 60, blue: 20))
        let jpeg = try flat.encoded(as: .jpeg(quality: 0.95))
        return RasterPicture.big32(1) + RasterPicture.big32(30) + RasterPicture.big32(20)
            + [UInt8](repeating: 0, count: 16) + jpeg
    }

    @Test func previewsAreFoundAndReplaceAMissingMergedImage() throws {
        let shown = RasterPicture(width: 60, height: 40)
        let white = (0..<3).map { _ in [UInt8](repeating: 255, count: 2_400) }
        let resource = try preview()
        let usual = shown.psd(mode: 3, planes: white, resources: [(1036, resource)])
        let info = try ImageInfo(of: .bytes(usual))
        #expect(info.embeddedPreviews.map(\.size) == [PixelSize(width: 30, height: 20)])
        #expect(try image(usual, at: .fit(30))[5, 5].red == 255)
        let quick = try ImageDecoder(isolation: .inProcess).decode(
            .bytes(usual), at: .fit(30), options: DecodeOptions(allowsEmbeddedPreview: true))
        #expect(abs(Int(quick[5, 5].green) - 60) < 6)
        // Saved without compatibility, the merged image is white.
        let version: (Int, [UInt8]) = (1057, RasterPicture.big32(1) + [0])
        let hidden = shown.psd(mode: 3, planes: white, resources: [(1036, resource), version])
        let small = try image(hidden, at: .fit(60))
        #expect(small.size == PixelSize(width: 60, height: 40))
        #expect(abs(Int(small[30, 20].red) - 220) < 6 && abs(Int(small[30, 20].blue) - 20) < 8)
        // The older kind has red and blue exchanged.
        let swapped = try image(shown.psd(mode: 3, planes: white, resources: [(1033, resource), version]), at: .fit(60))
        #expect(abs(Int(swapped[30, 20].blue) - 220) < 6 && abs(Int(swapped[30, 20].red) - 20) < 8)
        #expect(throws: ImageError.self) { try image(shown.psd(mode: 3, planes: white, resources: [version])) }
        // Too small for more than twice its size.
        let large = RasterPicture(width: 90, height: 60)
        let more = (0..<3).map { _ in [UInt8](repeating: 255, count: 5_400) }
        #expect(throws: ImageError.self) {
            try image(large.psd(mode: 3, planes: more, resources: [(1036, resource), version]))
        }
    }

    @Test func damageIsATypedError() throws {
        let file = picture.psd(mode: 3, planes: planes)
        #expect(throws: ImageError.truncated(input: "test.psd")) { try image(Array(file.dropLast(40))) }
        for at in [4, 12, 22, 24, 26, 30] {
            var damaged = file
            damaged[at] = 0xFF
            #expect(throws: ImageError.self, "\(at)") { try image(damaged) }
        }
    }
}
