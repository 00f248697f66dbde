import Foundation
import TestSupport
import Testing
import VitrineImaging

@Suite struct ArrivingImageTests {
    /// Hands out one piece whenever the consumer asks, so that no picture is missed.
    private struct Chunks: AsyncSequence, Sendable {
        var bytes: [UInt8]
        var size: Int

        struct Iterator: AsyncIteratorProtocol {
            var rest: ArraySlice<UInt8>
            let size: Int
            mutating func next() async -> [UInt8]? {
                guard !rest.isEmpty else { return nil }
                defer { rest = rest.dropFirst(size) }
                return Array(rest.prefix(size))
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(rest: bytes[...], size: size) }
    }

    /// Error against the whole picture, in mean absolute levels.
    private func error(_ a: PixelImage, _ b: PixelImage) -> Double {
        guard a.size == b.size else { return .infinity }
        var sum = 0
        for y in 0..<a.height {
            for x in 0..<a.width { sum += abs(Int(a[x, y].green) - Int(b[x, y].green)) }
        }
        return Double(sum) / Double(a.width * a.height)
    }

    @Test func everyPictureHasTheSizeAskedForAndTheLastIsTheWhole() async throws {
        for name in Samples.names {
            let bytes = try Samples.bytes(name)
            var last: ProgressiveImage?
            var count = 0
            for try await arriving in ImageDecoder().images(arrivingIn: Chunks(bytes: bytes, size: 3000), at: .fit(120))
            {
                #expect(arriving.image.size.longestSide == 120, "\(name)")
                #expect(last.map { $0.stage <= arriving.stage } ?? true)
                last = arriving
                count += 1
            }
            #expect(count >= 1)
            #expect(last?.stage == .complete)
            #expect(last?.byteCount == bytes.count)
            #expect(last?.image == (try await ImageDecoder().image(from: .bytes(bytes), at: .fit(120))), "\(name)")
        }
    }

    @Test func aProgressiveFileIsShownLongBeforeItIsThere() async throws {
        let bytes = try Samples.bytes("lake-progressive.jpg")
        let whole = try await ImageDecoder().image(from: .bytes(bytes), at: .fit(600))
        // Only the first quarter ever arrives: what is shown then came from it alone.
        let quarter = Array(bytes[..<(bytes.count / 4)])
        var best = Double.infinity
        await #expect(throws: ImageError.self) {
            for try await arriving in ImageDecoder().images(
                arrivingIn: Chunks(bytes: quarter, size: 2000), name: "lake", at: .fit(600))
            {
                #expect(arriving.stage == .partial)
                best = min(best, self.error(arriving.image, whole))
            }
        }
        #expect(best < 6, "\(best)")
    }

    @Test func rowsThatHaveNotArrivedAreNotDrawn() async throws {
        let bytes = try Samples.bytes("lake.jpg")
        let whole = try await ImageDecoder().image(from: .bytes(bytes), at: .fit(300))
        var heights: [Int] = []
        for try await arriving in ImageDecoder().images(arrivingIn: Chunks(bytes: bytes, size: 4000), at: .fit(300)) {
            guard arriving.stage == .partial else { continue }
            let image = arriving.image
            let drawn = (0..<image.height).prefix { image[0, $0].alpha == 255 }.count
            #expect((drawn..<image.height).allSatisfy { y in (0..<image.width).allSatisfy { image[$0, y] == .clear } })
            // What is drawn is the picture down to its last row: nothing below has been mixed in.
            for y in 0..<drawn {
                for x in 0..<image.width where abs(Int(image[x, y].green) - Int(whole[x, y].green)) > 48 {
                    Issue.record("\(x), \(y) of \(drawn): \(image[x, y]) for \(whole[x, y])")
                }
            }
            heights.append(drawn)
        }
        #expect(heights.count > 2 && heights == heights.sorted() && heights.allSatisfy { 0 < $0 && $0 < whole.height })
    }

    @Test func whatTheBytesThrowIsThrown() async throws {
        struct Broken: Error {}
        let chunks = AsyncThrowingStream<[UInt8], any Error> { continuation in
            continuation.yield([0xFF, 0xD8, 0xFF])
            continuation.finish(throwing: Broken())
        }
        await #expect(throws: Broken.self) {
            for try await _ in ImageDecoder().images(arrivingIn: chunks, at: .fit(100)) {}
        }
    }

    @Test func moreBytesThanAllowedAreRefused() async throws {
        var limits = ImageLimits.standard
        limits.maximumInputBytes = 10_000
        let bytes = try Samples.bytes("lake.jpg")
        let expected = ImageError.limitExceeded(input: "lake", limit: .inputBytes, actual: 12_000, allowed: 10_000)
        await #expect(throws: expected) {
            for try await _ in ImageDecoder(limits: limits).images(
                arrivingIn: Chunks(bytes: bytes, size: 4000), name: "lake", at: .fit(100)) {}
        }
    }
}
