import Testing
import VitrineImaging

/// Expected levels are Little CMS 2.19's (relative colorimetric, no black point compensation) for the same files.
struct ColorProfileTests {
    private static let colors: [[UInt8]] = [
        [255, 0, 0], [0, 255, 0], [0, 0, 255], [200, 100, 50], [128, 128, 128], [30, 60, 90], [250, 240, 230],
    ]
    private static let inks: [[UInt8]] = [
        [0, 0, 0, 0], [255, 0, 0, 0], [0, 255, 0, 0], [0, 0, 255, 0], [0, 0, 0, 255], [255, 255, 255, 255],
        [100, 50, 20, 10], [20, 180, 90, 60], [128, 128, 128, 0], [10, 20, 30, 200],
    ]

    private func profile(_ name: String) throws -> ColorProfile {
        try #require(ColorProfile(try Fixture.bytes("render/\(name).icc")))
    }

    private func difference(_ result: [UInt8], _ expected: [[Int]]) -> Int {
        expected.indices.flatMap { i in (0..<3).map { abs(Int(result[4 * i + $0]) - expected[i][$0]) } }.max() ?? 0
    }

    private func convertRGB(_ profile: ColorProfile) -> [UInt8] {
        var pixels: [UInt8] = Self.colors.flatMap { $0 + [255] as [UInt8] }
        pixels.withUnsafeMutableBufferPointer {
            profile.convertRGB($0.baseAddress!, count: Self.colors.count, isPremultiplied: false)
        }
        return pixels
    }

    private func convertCMYK(_ profile: ColorProfile) -> [UInt8] {
        var pixels = Self.inks.flatMap { $0 }
        pixels.withUnsafeMutableBufferPointer { profile.convertCMYK($0.baseAddress!, count: Self.inks.count) }
        return pixels
    }

    @Test func displayP3BecomesSRGB() throws {
        let expected = [
            [255, 0, 0], [0, 255, 0], [0, 0, 255], [215, 93, 31], [128, 128, 128], [17, 61, 93], [252, 240, 229],
        ]
        #expect(difference(convertRGB(try profile("p3")), expected) <= 1)
    }

    @Test func gammaProfileBecomesSRGB() throws {
        let expected = [
            [255, 0, 0], [0, 255, 0], [0, 0, 255], [227, 100, 42], [129, 129, 129], [0, 57, 91], [254, 240, 230],
        ]
        #expect(difference(convertRGB(try profile("adobe")), expected) <= 1)
    }

    @Test func tableOfRGBBecomesSRGB() throws {
        let expected = [
            [89, 237, 237], [237, 89, 237], [237, 237, 89], [141, 196, 216], [182, 182, 182], [233, 222, 210],
            [83, 92, 103],
        ]
        #expect(difference(convertRGB(try profile("rgb-mft2")), expected) <= 1)
    }

    @Test func greyCurveBecomesSRGB() throws {
        let levels = try #require(try profile("gray18").grayLevels)
        for (from, to) in [(0, 0), (10, 10), (64, 81), (128, 146), (200, 210), (255, 255)] {
            #expect(abs(Int(levels[from]) - to) <= 1)
        }
    }

    /// ICC.1:2022 §8.4.4: the curve of a profile that connects by Lab gives lightness.
    @Test func greyLightnessBecomesSRGB() throws {
        let levels = try #require(ColorProfile(Self.grey(connection: "Lab ", curve: [])).flatMap(\.grayLevels))
        // CIE 15: lightness 25.1, 50.2 and 78.4 are luminances 0.0443, 0.1858 and 0.5385.
        for (from, to) in [(0, 0), (64, 60), (128, 119), (200, 194), (255, 255)] {
            #expect(abs(Int(levels[from]) - to) <= 1, "\(from)")
        }
        let image = try ImageDecoder().decode(.bytes(Fixture.bytes("render/gray-icc-lab-pcs.png")))
        for (i, level) in [0, 33, 60, 89, 119, 152, 194, 255].enumerated() {
            #expect(abs(Int(image[16 + 32 * i, 16].green) - level) <= 1, "field \(i)")
        }
        let linear = try #require(ColorProfile(Self.grey(connection: "XYZ ", curve: [])).flatMap(\.grayLevels))
        for (from, to) in [(0, 0), (32, 99), (64, 137), (255, 255)] { #expect(Int(linear[from]) == to) }
    }

    @Test func profilesThatMakeEveryPicturePlainAreIgnored() throws {
        for name in ["p3", "adobe"] {
            let whole = try Fixture.bytes("render/\(name).icc")
            #expect(ColorProfile(whole) != nil)
            let colorants = ["rXYZ", "gXYZ", "bXYZ"].compactMap { Self.place(of: $0, in: whole) }
            try #require(colorants.count == 3)
            var black = whole
            for place in colorants {
                black.replaceSubrange((place + 8)..<(place + 20), with: repeatElement(0, count: 12))
            }
            #expect(ColorProfile(black) == nil, "every pixel is black")
            // The green colorant is -32768, so that every pixel but black is plain green.
            var green = black
            green[colorants[1] + 8] = 0x80
            #expect(ColorProfile(green) == nil, "every pixel is green")
        }
        #expect(ColorProfile(Self.grey(connection: "XYZ ", curve: [40_000, 40_000])) == nil)
        #expect(ColorProfile(Self.grey(connection: "XYZ ", curve: [65_535, 0])) != nil, "a negative")
    }

    /// Where the data of a tag begins.
    private static func place(of tag: String, in profile: [UInt8]) -> Int? {
        let count = Int(profile[131])
        let entry = (0..<count).map { 132 + 12 * $0 }.first { profile[$0..<($0 + 4)].elementsEqual(tag.utf8) }
        return entry.map { profile[($0 + 4)..<($0 + 8)].reduce(0) { $0 << 8 | Int($1) } }
    }

    /// A profile of one curve: a straight line if `curve` is empty.
    private static func grey(connection: String, curve: [UInt16]) -> [UInt8] {
        func big(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
        var header = [UInt8](repeating: 0, count: 128)
        header.replaceSubrange(12..<24, with: "mntrGRAY\(connection)".utf8)
        header.replaceSubrange(36..<40, with: "acsp".utf8)
        let data = Array("curv".utf8) + big(0) + big(curve.count) + curve.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
        return header + big(1) + Array("kTRC".utf8) + big(144) + big(data.count) + data
    }

    @Test func inksBecomeSRGB() throws {
        // Between grid points of so coarse a grid the two ways of interpolating in four dimensions differ a little.
        #expect(
            difference(
                convertCMYK(try profile("cmyk-mft2")),
                [
                    [255, 255, 255], [89, 237, 237], [237, 89, 237], [237, 237, 89], [56, 56, 56], [10, 10, 10],
                    [202, 222, 233], [205, 140, 181], [182, 182, 182], [128, 126, 124],
                ]) <= 3)
        #expect(
            difference(
                convertCMYK(try profile("cmyk-mft1")),
                [
                    [255, 255, 255], [89, 238, 237], [238, 88, 238], [237, 237, 88], [56, 56, 56], [10, 10, 10],
                    [201, 220, 232], [203, 136, 179], [182, 182, 182], [108, 107, 106],
                ]) <= 3)
        #expect(
            difference(
                convertCMYK(try profile("cmyk-mab")),
                [
                    [255, 255, 255], [89, 237, 237], [237, 89, 237], [237, 237, 89], [56, 56, 56], [10, 10, 10],
                    [226, 240, 246], [227, 168, 210], [205, 204, 204], [151, 151, 150],
                ]) <= 3)
    }

    @Test func sRGBIsRecognised() throws {
        #expect(try profile("srgb").isSRGB)
        #expect(try !profile("p3").isSRGB)
        #expect(try !profile("adobe").isSRGB)
        #expect(try !profile("rgb-mft2").isSRGB)
    }

    @Test func nameIsReadInEnglish() throws {
        #expect(ColorProfile.name(of: try Fixture.bytes("render/p3.icc")) == "Display P3")
        #expect(ColorProfile.name(of: try Fixture.bytes("render/adobe.icc")) == "Wide gamut")
        #expect(ColorProfile.name(of: []) == nil)
    }

    @Test(arguments: ["p3", "adobe", "gray18", "cmyk-mft1", "cmyk-mft2", "cmyk-mab", "rgb-mft2"])
    func damageNeverTraps(name: String) throws {
        let whole = try Fixture.bytes("render/\(name).icc")
        var seed: UInt64 = 7
        func random(_ bound: Int) -> Int {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(seed >> 33) % bound
        }
        for round in 0..<1_500 {
            var bytes = whole
            if round % 3 == 0 { bytes.removeLast(random(bytes.count)) }
            for _ in 0..<(1 + random(6)) where !bytes.isEmpty {
                let extreme: [UInt8] = [0, 1, 127, 128, 255, UInt8(random(256))]
                bytes[random(round % 2 == 0 ? bytes.count : min(bytes.count, 420))] = extreme[random(6)]
            }
            _ = ColorProfile.name(of: bytes)
            guard let profile = ColorProfile(bytes) else { continue }
            _ = convertRGB(profile)
            _ = convertCMYK(profile)
        }
    }
}
