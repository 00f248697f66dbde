import Foundation
import Testing
import VitrineCore
import VitrineImaging

/// A plane whose samples a function of place and channel gives.
func makePlane(_ width: Int, _ height: Int, _ channels: Int, _ sample: (Int, Int, Int) -> UInt8) -> PixelPlane {
    let storage = PixelStorage(zeroedByteCount: width * height * channels)
    for y in 0..<height {
        for x in 0..<width {
            for c in 0..<channels { storage.bytes[(y * width + x) * channels + c] = sample(x, y, c) }
        }
    }
    return PixelPlane(width: width, height: height, channels: channels, storage: storage)
}

private func texture(_ x: Int, _ y: Int, _ c: Int) -> UInt8 {
    let wave = 90 * sin(Double(x * (c + 2)) / 7) + 60 * cos(Double(y) / 5 + Double(c)) + Double((x * 31 + y * 17) % 23)
    return UInt8(max(0, min(255, 128 + wave)))
}

/// Lanczos3 in double precision, straight from the definition.
private enum Reference {
    static func kernel(_ x: Double) -> Double {
        let x = abs(x) * Double.pi
        return x < 1e-9 ? 1 : x >= 3 * Double.pi ? 0 : 3 * sin(x) * sin(x / 3) / (x * x)
    }

    static func axis(_ samples: Int, _ extent: Double, _ count: Int) -> [[Double]] {
        let step = extent / Double(count)
        return (0..<count).map { i in
            let all = (0..<samples).map { kernel((Double($0) + 0.5 - (Double(i) + 0.5) * step) / max(1, step)) }
            let sum = all.reduce(0, +)
            return all.map { $0 / sum }
        }
    }

    static func scale(_ plane: PixelPlane, to size: PixelSize) -> [Double] {
        let across = axis(plane.width, plane.extentWidth, size.width)
        let down = axis(plane.height, plane.extentHeight, size.height)
        let channels = plane.channels
        let lines: [[Double]] = (0..<plane.height).map { y in
            (0..<(size.width * channels)).map { i in
                let weights = across[i / channels]
                return weights.indices.reduce(0.0) { sum, x in
                    let sample = plane.storage.bytes[y * plane.bytesPerRow + x * channels + i % channels]
                    return weights[x] == 0 ? sum : sum + weights[x] * Double(sample)
                }
            }
        }
        return (0..<size.height).flatMap { y in
            (0..<(size.width * channels)).map { i in
                max(0, min(255, down[y].indices.reduce(0.0) { $0 + down[y][$1] * lines[$1][i] }))
            }
        }
    }

    static func quality(_ plane: PixelPlane, _ expected: [Double]) -> Double {
        let squares = expected.indices.reduce(0.0) { sum, i in
            let difference = Double(plane.storage.bytes[i]) - expected[i]
            return sum + difference * difference
        }
        return 10 * log10(255 * 255 / (squares / Double(expected.count)))
    }
}

struct ResamplerTests {
    @Test(arguments: [1, 2, 3, 4], [(70, 41), (33, 60), (150, 100), (95, 59), (20, 13)])
    func isCloseToDoublePrecision(channels: Int, size: (Int, Int)) throws {
        let plane = makePlane(97, 61, channels, texture)
        let target = PixelSize(width: size.0, height: size.1)
        let scaled = try #require(Resampler.resample(plane, to: target))
        #expect(scaled.width == size.0 && scaled.height == size.1 && scaled.channels == channels)
        #expect(Reference.quality(scaled, Reference.scale(plane, to: target)) >= 58)
    }

    @Test func largeReductionThroughBoxesStaysClose() throws {
        let plane = makePlane(401, 300, 3) { x, y, c in
            UInt8(128 + 100 * sin(Double(x) / 40 + Double(c)) * cos(Double(y) / 35))
        }
        let target = PixelSize(width: 40, height: 31)
        let scaled = try #require(Resampler.resample(plane, to: target))
        #expect(Reference.quality(scaled, Reference.scale(plane, to: target)) >= 55)
    }

    @Test func sameSizeSharesTheMemory() throws {
        let plane = makePlane(31, 17, 3, texture)
        let scaled = try #require(Resampler.resample(plane, to: PixelSize(width: 31, height: 17)))
        #expect(scaled.storage === plane.storage)
    }

    @Test func oneUnchangedAxisIsExact() throws {
        let plane = makePlane(40, 24, 1) { x, _, _ in UInt8(x * 6) }
        let scaled = try #require(Resampler.resample(plane, to: PixelSize(width: 40, height: 9)))
        for y in 0..<9 { for x in 0..<40 { #expect(scaled.storage.bytes[y * 40 + x] == UInt8(x * 6)) } }
    }

    @Test(arguments: [0, 1, 77, 128, 254, 255] as [UInt8], [3, 8, 25, 49, 50, 51, 120])
    func flatColourStaysWhatItIs(level: UInt8, side: Int) throws {
        for kernel in [Resampler.Kernel.lanczos3, .lanczos3ForMeans] {
            let plane = makePlane(100, 90, 1) { _, _, _ in level }
            let scaled = try #require(Resampler.resample(plane, to: PixelSize(side), kernel: kernel))
            #expect(scaled.storage.bytes.allSatisfy { $0 == level })
        }
    }

    @Test func fractionalExtentMovesTheGrid() throws {
        // Means of 8 of a ramp of 1,001 pixels: 126 samples that span 125.125.
        var plane = makePlane(126, 126, 1) { x, _, _ in UInt8(min(1_000, x * 8 + 4) / 4) }
        plane.extentWidth = 125.125
        plane.extentHeight = 125.125
        let scaled = try #require(Resampler.resample(plane, to: PixelSize(50)))
        for x in 2..<48 {
            let expected = (Double(x) + 0.5) * 1_001 / 50 / 4
            #expect(abs(Double(scaled.storage.bytes[25 * 50 + x]) - expected) < 1.2)
        }
    }

    @Test func regionIsTheSameAsCuttingFirst() throws {
        let plane = makePlane(80, 60, 3, texture)
        let region = PixelRegion(x: 16, y: 8, width: 40, height: 32)
        let scaled = try #require(Resampler.resample(plane, to: PixelSize(width: 40, height: 32), region: region))
        for y in 0..<32 {
            for i in 0..<120 {
                #expect(scaled.storage.bytes[y * 120 + i] == plane.storage.bytes[(y + 8) * 240 + 48 + i])
            }
        }
    }

    @Test func invisibleColoursDoNotBleed() throws {
        // Opaque red on the left; invisible green on the right.
        let plane = makePlane(64, 16, 4) { x, _, c in
            x < 32 ? [255, 0, 0, 255][c] : [0, 255, 0, 0][c]
        }
        for size in [(23, 5), (5, 2), (150, 20)].map({ PixelSize(width: $0.0, height: $0.1) }) {
            let scaled = try #require(Resampler.resample(plane, to: size, premultiplying: true))
            for i in 0..<(size.width * size.height) {
                let p = scaled.storage.bytes
                #expect(p[4 * i + 1] == 0)
                #expect(abs(Int(p[4 * i]) - Int(p[4 * i + 3])) <= 1)
            }
        }
    }

    @Test func premultiplyingKeepsSizeAndRounds() throws {
        let plane = makePlane(256, 256, 2) { x, y, c in UInt8(c == 0 ? x : y) }
        let result = try #require(Resampler.resample(plane, to: PixelSize(256), premultiplying: true))
        for y in 0..<256 {
            for x in 0..<256 {
                let exact = Double(x * y) / 255
                #expect(abs(Double(result.storage.bytes[2 * (y * 256 + x)]) - exact) <= 0.51)
            }
        }
    }

    @Test func kernelForMeansIsCloserToTheFullPicture() throws {
        let full = makePlane(800, 400, 1) { x, y, _ in
            UInt8(128 + 60 * sin(Double(x) / 9) + 60 * cos(Double(y + x) / 11))
        }
        let means = makePlane(100, 50, 1) { x, y, _ in
            var sum = 0
            for j in 0..<8 { for i in 0..<8 { sum += Int(full.storage.bytes[(y * 8 + j) * 800 + x * 8 + i]) } }
            return UInt8((sum + 32) / 64)
        }
        let target = PixelSize(width: 60, height: 30)
        let expected = Reference.scale(full, to: target)
        let plain = try #require(Resampler.resample(means, to: target))
        let sharp = try #require(Resampler.resample(means, to: target, kernel: .lanczos3ForMeans))
        #expect(Reference.quality(sharp, expected) > Reference.quality(plain, expected) + 3)
    }

    @Test func extremeShapesAndNumbersAreHarmless() throws {
        let line = makePlane(65_535, 1, 1) { x, _, _ in UInt8(x & 255) }
        let mean = try #require(Resampler.resample(line, to: PixelSize(1)))
        #expect((126...129).contains(mean.storage.bytes[0]))
        let dot = makePlane(1, 1, 4) { _, _, c in UInt8(c * 50) }
        let big = try #require(Resampler.resample(dot, to: PixelSize(width: 300, height: 2)))
        #expect(big.storage.bytes[4 * 599 + 3] == 150)
        for value in [Double.nan, .infinity, -.infinity, -1, 0, 1e300] {
            var odd = makePlane(10, 10, 1, texture)
            odd.extentWidth = value
            let region = PixelRegion(x: value, y: -value, width: value, height: value)
            #expect(Resampler.resample(odd, to: PixelSize(7), region: region)?.width == 7)
        }
    }

    @Test func scalingAgainGivesTheSameWhateverWasScaledBetween() throws {
        let plane = makePlane(150, 90, 3, texture)
        func samples(_ size: PixelSize) throws -> [UInt8] {
            let result = try #require(Resampler.resample(plane, to: size))
            return result.storage.withUnsafeBytes { Array($0) }
        }
        let first = try samples(PixelSize(width: 61, height: 37))
        // More kinds of weights than are kept.
        for side in 20..<40 { _ = try samples(PixelSize(side)) }
        #expect(try samples(PixelSize(width: 61, height: 37)) == first)
        #expect(try samples(PixelSize(width: 61, height: 37)) == first)
    }

    @Test func cancelledRunHasNoResult() {
        let token = CancellationToken()
        token.cancel()
        let plane = makePlane(64, 64, 1, texture)
        #expect(Resampler.resample(plane, to: PixelSize(20), cancellation: token) == nil)
    }
}
