import Testing
import VitrineCore
import VitrineImaging

struct DecodedImageRendererTests {
    private func render(
        _ decoded: DecodedImage, _ size: PixelSize, region: UnitRect? = nil, _ orientation: Orientation = .up
    ) throws -> PixelImage {
        try DecodedImageRenderer.image(
            from: decoded, size: size, region: region, orientation: orientation, cancellation: CancellationToken(),
            inputName: "test")
    }

    private func solid(
        _ levels: [UInt8], _ model: DecodedImage.Model, alpha: DecodedImage.Alpha = .none
    ) -> DecodedImage {
        DecodedImage(planes: [makePlane(12, 8, levels.count) { _, _, c in levels[c] }], model: model, alpha: alpha)
    }

    @Test func fullRangeYCbCrIsRoundedAsLibjpegDoes() throws {
        // All chroma pairs at a few lumas, against the formula of libjpeg's jdcolor.c.
        for luma in [0, 1, 60, 128, 200, 255] {
            let planes = [
                makePlane(256, 256, 1) { _, _, _ in UInt8(luma) }, makePlane(256, 256, 1) { x, _, _ in UInt8(x) },
                makePlane(256, 256, 1) { _, y, _ in UInt8(y) },
            ]
            let image = try render(
                DecodedImage(planes: planes, model: .yCbCr(.bt601, fullRange: true)), PixelSize(256))
            var wrong = 0
            image.withUnsafeBytes { bytes in
                for cr in 0..<256 {
                    for cb in 0..<256 {
                        let (u, v) = (cb - 128, cr - 128)
                        let red = luma + (91_881 * v + 32_768) >> 16
                        let green = luma + (-22_554 * u - 46_802 * v + 32_768) >> 16
                        let blue = luma + (116_130 * u + 32_768) >> 16
                        let expected = [red, green, blue].map { max(0, min(255, $0)) }
                        let p = (cr * 256 + cb) * 4
                        if [bytes[p], bytes[p + 1], bytes[p + 2]].map(Int.init) != expected { wrong += 1 }
                    }
                }
            }
            #expect(wrong == 0)
        }
    }

    /// HEIC and AVIF code grey as three channels, with the profile of the grey.
    @Test func greyProfileHoldsForGreyInAnyColourModel() throws {
        let profile = try Fixture.bytes("render/gray18.icc")
        let levels = try #require(ColorProfile(profile)?.grayLevels)
        let size = PixelSize(width: 12, height: 8)
        let models: [([UInt8], DecodedImage.Model, DecodedImage.Alpha)] = [
            ([64], .gray, .none), ([64, 64, 64], .rgb, .none), ([64, 64, 64, 255], .rgb, .straight),
            ([65, 64, 62], .rgb, .none),
        ]
        for (pixel, model, alpha) in models {
            var image = solid(pixel, model, alpha: alpha)
            image.colorProfile = profile
            #expect(try render(image, size)[3, 3] == PixelColor(white: levels[64]), "\(pixel)")
        }
        let planes = [64, 128, 128].map { level in makePlane(12, 8, 1) { _, _, _ in level } }
        var coded = DecodedImage(planes: planes, model: .yCbCr(.bt601, fullRange: true))
        coded.colorProfile = profile
        #expect(try render(coded, size)[3, 3] == PixelColor(white: levels[64]))
        var colored = solid([200, 64, 10], .rgb)
        colored.colorProfile = profile
        #expect(try render(colored, size)[3, 3] == PixelColor(red: 200, green: 64, blue: 10))
        var half = solid([64, 64, 64, 128], .rgb, alpha: .straight)
        half.colorProfile = profile
        let pixel = try render(half, size)[3, 3]
        #expect(pixel.alpha == 128 && abs(Int(pixel.green) - Int(levels[64])) <= 2)
    }

    @Test func rowsWithoutSamplesAreTransparent() throws {
        // Rows below the twenty-fourth hold rubbish that must not reach the picture, nor the rows above.
        var image = DecodedImage(
            planes: [makePlane(40, 40, 3) { x, y, c in y < 24 ? UInt8(6 * x + c) : 255 }], model: .rgb)
        image.filledHeight = 24.0 / 40
        let whole = DecodedImage(planes: [makePlane(40, 24, 3) { x, _, c in UInt8(6 * x + c) }], model: .rgb)
        for (size, rows) in [(PixelSize(40), 24), (PixelSize(20), 12), (PixelSize(13), 7)] {
            let shown = try render(image, size)
            #expect(shown.size == size && shown.alpha == .premultiplied)
            let expected = try render(whole, PixelSize(width: size.width, height: rows))
            for y in 0..<size.height {
                for x in 0..<size.width {
                    guard y < rows else {
                        #expect(shown[x, y] == .clear)
                        continue
                    }
                    #expect(shown[x, y].alpha == 255)
                    #expect(abs(Int(shown[x, y].green) - Int(expected[x, min(y, rows - 1)].green)) <= 1, "\(x), \(y)")
                }
            }
        }
        let turned = try render(image, PixelSize(40), .down)
        #expect(turned[0, 0] == .clear && turned[39, 39].alpha == 255 && turned[39, 17].alpha == 255)
        let lower = try render(
            image, PixelSize(width: 40, height: 20), region: UnitRect(x: 0, y: 0.5, width: 1, height: 0.5))
        #expect(lower[7, 3] == (try render(whole, PixelSize(width: 40, height: 24)))[7, 23])
        #expect(lower[7, 4] == .clear)
        let missing = try render(
            image, PixelSize(width: 40, height: 10), region: UnitRect(x: 0, y: 0.75, width: 1, height: 0.25))
        #expect((0..<10).allSatisfy { y in (0..<40).allSatisfy { missing[$0, y] == .clear } })
        image.filledHeight = 1
        #expect(try render(image, PixelSize(40)).alpha == .opaque)
    }

    @Test func videoRangesReachBlackAndWhite() throws {
        for matrix in [DecodedImage.Matrix.bt601, .bt709, .bt2020] {
            for (luma, level) in [(16, 0), (235, 255), (0, 0), (255, 255)] as [(UInt8, UInt8)] {
                let planes = [luma, 128, 128].map { level in makePlane(11, 4, 1) { _, _, _ in level } }
                let image = try render(
                    DecodedImage(planes: planes, model: .yCbCr(matrix, fullRange: false)),
                    PixelSize(width: 11, height: 4))
                #expect(image[0, 0] == PixelColor(white: level) && image[10, 3] == PixelColor(white: level))
            }
        }
        // BT.709 red, 8 bit (ITU-R BT.709-6 §3.5).
        let planes = ([63, 102, 240] as [UInt8]).map { level in makePlane(9, 1, 1) { _, _, _ in level } }
        let red = try render(
            DecodedImage(planes: planes, model: .yCbCr(.bt709, fullRange: false)), PixelSize(width: 9, height: 1))[0, 0]
        #expect(red.red >= 254 && red.green <= 1 && red.blue <= 1)
    }

    @Test func subsampledChromaIsMappedOnItsOwnExtent() throws {
        var chroma = makePlane(4, 3, 1) { _, _, _ in 128 }
        chroma.extentWidth = 3.5
        chroma.extentHeight = 2.5
        let decoded = DecodedImage(
            planes: [makePlane(7, 5, 1) { x, _, _ in UInt8(x * 30) }, chroma, chroma],
            model: .yCbCr(.bt601, fullRange: true))
        let image = try render(decoded, PixelSize(width: 7, height: 5))
        for x in 0..<7 { #expect(image[x, 4] == PixelColor(white: UInt8(x * 30))) }
    }

    @Test func greyAndInkModelsBecomeSRGB() throws {
        let size = PixelSize(width: 5, height: 4)
        #expect(try render(solid([90], .gray), size)[4, 3] == PixelColor(white: 90))
        #expect(try render(solid([10, 20, 30], .rgb), size)[4, 3] == PixelColor(red: 10, green: 20, blue: 30))
        let ink = try render(solid([255, 0, 51, 0], .cmyk(inverted: false)), size)
        #expect(ink[0, 0] == PixelColor(red: 0, green: 255, blue: 204) && ink.alpha == .opaque)
        let adobe = try render(solid([0, 255, 204, 255], .cmyk(inverted: true)), size)
        #expect(adobe == ink)
        #expect(try render(solid([0, 0, 0, 255], .cmyk(inverted: false)), size)[0, 0] == .black)
    }

    @Test func alphaIsPremultipliedOrStatedOpaque() throws {
        let size = PixelSize(width: 5, height: 4)
        let half = try render(solid([200, 100, 0, 128], .rgb, alpha: .straight), size)
        #expect(half.alpha == .premultiplied)
        half.withUnsafeBytes { #expect(Array($0.prefix(4)) == [100, 50, 0, 128]) }
        #expect(try render(solid([200, 100, 0, 255], .rgb, alpha: .straight), size).alpha == .opaque)
        let gray = try render(solid([200, 51], .gray, alpha: .straight), size)
        gray.withUnsafeBytes { #expect(Array($0.prefix(4)) == [40, 40, 40, 51]) }
        let same = try render(solid([100, 50, 0, 128], .rgb, alpha: .premultiplied), PixelSize(width: 12, height: 8))
        same.withUnsafeBytes { #expect(Array($0.prefix(4)) == [100, 50, 0, 128]) }
    }

    @Test func alphaPlaneOfYCbCrKeepsHiddenColoursHidden() throws {
        // White on the left, invisible black on the right: edges must stay white under their alpha.
        let luma = makePlane(64, 16, 1) { x, _, _ in x < 32 ? 255 : 0 }
        let chroma = makePlane(32, 8, 1) { _, _, _ in 128 }
        let alpha = makePlane(64, 16, 1) { x, _, _ in x < 32 ? 255 : 0 }
        let image = try render(
            DecodedImage(
                planes: [luma, chroma, chroma, alpha], model: .yCbCr(.bt601, fullRange: true), alpha: .straight),
            PixelSize(width: 21, height: 5))
        image.withUnsafeBytes { bytes in
            for i in stride(from: 0, to: bytes.count, by: 4) {
                #expect(abs(Int(bytes[i]) - Int(bytes[i + 3])) <= 1 && bytes[i] <= bytes[i + 3])
            }
        }
    }

    @Test func profileIsAppliedAndMalformedOneIsNot() throws {
        var decoded = solid([200, 100, 50], .rgb)
        decoded.colorProfile = try Fixture.bytes("render/p3.icc")
        let pixel = try render(decoded, PixelSize(4))[0, 0]
        #expect(abs(Int(pixel.red) - 215) <= 1 && abs(Int(pixel.green) - 93) <= 1 && abs(Int(pixel.blue) - 31) <= 1)
        decoded.colorProfile = [UInt8](try Fixture.bytes("render/p3.icc").prefix(200))
        #expect(try render(decoded, PixelSize(4))[0, 0] == PixelColor(red: 200, green: 100, blue: 50))
        decoded.colorProfile = try Fixture.bytes("render/cmyk-mft2.icc")
        #expect(try render(decoded, PixelSize(4))[0, 0] == PixelColor(red: 200, green: 100, blue: 50))
        var ink = solid([255, 0, 0, 0], .cmyk(inverted: false))
        ink.colorProfile = try Fixture.bytes("render/cmyk-mft2.icc")
        #expect(try render(ink, PixelSize(4))[3, 3] == PixelColor(red: 89, green: 237, blue: 237))
    }

    @Test func orientationIsAppliedAfterScaling() throws {
        let decoded = DecodedImage(planes: [makePlane(40, 20, 1) { x, _, _ in x < 20 ? 0 : 255 }], model: .gray)
        let image = try render(decoded, PixelSize(width: 20, height: 10), .right)
        #expect(image.size == PixelSize(width: 10, height: 20))
        #expect(image[5, 2] == .black && image[5, 17] == .white)
    }

    @Test func regionIsInStoredOrientation() throws {
        let decoded = DecodedImage(planes: [makePlane(40, 20, 1) { x, _, _ in x < 20 ? 0 : 255 }], model: .gray)
        let region = UnitRect(x: 0.5, y: 0, width: 0.5, height: 1)
        let image = try render(decoded, PixelSize(20), region: region)
        #expect(image[0, 0] == .white && image[19, 19] == .white)
        #expect(throws: ImageError.invalidRequest(reason: "the region lies outside the image")) {
            try render(decoded, PixelSize(20), region: UnitRect(x: 2, y: 0, width: 1, height: 1))
        }
    }

    @Test func wrongPlanesAndSizesAreErrors() throws {
        #expect(throws: ImageError.self) { try render(solid([1, 2], .rgb), PixelSize(4)) }
        #expect(throws: ImageError.invalidRequest(reason: "an image cannot have the size 0×4")) {
            try render(solid([1, 2, 3], .rgb), PixelSize(width: 0, height: 4))
        }
        let token = CancellationToken()
        token.cancel()
        #expect(throws: ImageError.cancelled(input: "x")) {
            try DecodedImageRenderer.image(
                from: solid([1, 2, 3], .rgb), size: PixelSize(4), orientation: .up, cancellation: token, inputName: "x")
        }
    }
}
