import Foundation
import Synchronization
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

/// A format of one test: its name, then width and height as text, then red, green and blue of each pixel.
private struct TestDecoder: Sendable {
    var format: ImageFormat
    var info: @Sendable (PixelSize) throws -> ImageInfo
    var image: @Sendable (DecodeRequest, PixelImage) throws -> PixelImage = { $1 }
    var recognize: @Sendable ([UInt8]) -> Bool

    init(_ name: String) {
        let format = ImageFormat(name, mediaTypes: ["application/x-\(name)"], fileExtensions: [name])
        self.format = format
        info = { ImageInfo(format: format, storedSize: $0) }
        let signature = Array("\(name)\n".utf8)
        recognize = { $0.starts(with: signature) }
    }

    /// A file whose red and green rise with column and row.
    func file(_ width: Int, _ height: Int) -> [UInt8] {
        var bytes = Array("\(format)\n\(width) \(height)\n".utf8)
        for y in 0..<height {
            for x in 0..<width { bytes += [UInt8(x * 255 / width), UInt8(y * 255 / height), 128] }
        }
        return bytes
    }

    func input(_ width: Int = 40, _ height: Int = 20) -> ImageInput {
        .bytes(file(width, height), name: "\(format) file")
    }

    var codec: Codec {
        Codec(format) { recognize($0) } info: { try info(header($0).size) } decode: { try decode($0, $1) }
    }

    private func header(_ source: ByteSource) throws -> (size: PixelSize, end: Int) {
        let start = try source.bytes(at: 0, count: 100)
        let lines = start.split(separator: 10, maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3 else { throw ImageError.truncated(input: source.name) }
        let numbers = String(decoding: lines[1], as: UTF8.self).split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 2 else { throw ImageError.corrupt(input: source.name, reason: "no size") }
        return (PixelSize(width: numbers[0], height: numbers[1]), lines[2].startIndex)
    }

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws -> PixelImage {
        let (size, end) = try header(source)
        let bytes = try source.bytes(at: end, count: size.width * size.height * 3)
        let image = try PixelImage(width: size.width, height: size.height, layout: .rgb8, alpha: .opaque, bytes: bytes)
        return try self.image(request, image)
    }
}

@Suite struct RegisteredCodecTests {
    /// Registers a codec for the duration of `body`.
    private func registered<R>(_ decoder: TestDecoder, _ body: () async throws -> R) async throws -> R {
        try ImageDecoder.register(decoder.codec)
        defer { ImageDecoder.unregister(decoder.format) }
        return try await body()
    }

    @Test func formatsAreEqualIfTheirNamesAre() {
        let other = ImageFormat("JPEG", mediaTypes: ["image/x-other"])
        #expect(other == .jpeg && Set([other, .jpeg]).count == 1 && other != .png)
    }

    @Test func registeredFormatIsDetectedDescribedAndDecodedAtSize() async throws {
        let decoder = TestDecoder("plain-test")
        try await registered(decoder) {
            #expect(ImageFormat.detect(Array(decoder.file(2, 2).prefix(64))) == decoder.format)
            #expect(ImageDecoder.registeredFormats.contains(decoder.format))
            let info = try ImageInfo(of: decoder.input())
            #expect(info.format == decoder.format)
            #expect(info.format.mediaType == "application/x-plain-test")
            #expect(info.size == PixelSize(width: 40, height: 20))
            let whole = try await ImageDecoder().image(from: decoder.input())
            #expect(whole.size == PixelSize(width: 40, height: 20))
            #expect(whole.alpha == .opaque)
            #expect(whole[20, 10] == PixelColor(red: 127, green: 127, blue: 128))
            let small = try await ImageDecoder().image(from: decoder.input(), at: .fit(10))
            #expect(small.size == PixelSize(width: 10, height: 5))
            #expect(small == (try ImageResizer.fit(10).resize(whole)))
            let crop = try await ImageDecoder().image(from: decoder.input(), at: .crop(width: 8, height: 8))
            #expect(crop.size == PixelSize(8))
        }
    }

    @Test func unregisteredFormatIsNoImage() async throws {
        let decoder = TestDecoder("passing-test")
        try ImageDecoder.register(decoder.codec)
        let info = try ImageInfo(of: decoder.input())
        #expect(ImageDecoder.unregister(decoder.format))
        #expect(!ImageDecoder.unregister(decoder.format))
        #expect(throws: ImageError.notAnImage(input: "passing-test file")) { try ImageInfo(of: decoder.input()) }
        #expect(ImageFormat.detect(decoder.file(2, 2)) == nil)
        #expect(ImageFormat(rawValue: "passing-test") == nil)
        #expect(!ImageDecoder().canDecode(info.format))
        #expect(ImageDecoder().decoders(for: info.format).isEmpty)
    }

    @Test func laterDecoderOfAFormatReplacesTheEarlierOne() async throws {
        let decoder = TestDecoder("twice-test")
        var second = decoder
        second.image = { _, image in PixelImage(size: image.size, color: .white) }
        try await registered(decoder) {
            #expect(try await ImageDecoder().image(from: decoder.input())[0, 0] != .white)
            try ImageDecoder.register(second.codec)
            #expect(try await ImageDecoder().image(from: decoder.input())[0, 0] == .white)
            #expect(ImageDecoder.registeredFormats.count { $0 == decoder.format } == 1)
        }
    }

    @Test func builtInAndEmptyNamesAreRefused() throws {
        for name in ["jpeg", "SVG", "avif", "epub", ""] {
            let error = #expect(throws: ImageError.self) { try ImageDecoder.register(TestDecoder(name).codec) }
            #expect(error?.caseName == "invalidRequest")
        }
        #expect(ImageFormat.detect(try Samples.bytes("lake.jpg")) == .jpeg)
    }

    @Test func registeredDecoderClaimsAVarietyOfABuiltInContainer() async throws {
        var decoder = TestDecoder("container-test")
        let marker = Array("container-test".utf8)
        decoder.recognize = { $0.starts(with: [0x49, 0x49, 0x2A, 0]) && $0.dropFirst(4).starts(with: marker) }
        try await registered(decoder) {
            #expect(ImageFormat.detect([0x49, 0x49, 0x2A, 0] + marker) == decoder.format)
            #expect(ImageFormat.detect([0x49, 0x49, 0x2A, 0, 8, 0, 0, 0]) == .tiff)
        }
    }

    @Test func formatsAreFoundAndCodedByName() async throws {
        let decoder = TestDecoder("Coded-Test")
        #expect(decoder.format.rawValue == "coded-test")
        try await registered(decoder) {
            for format in [ImageFormat.jpeg, decoder.format] {
                let data = try JSONEncoder().encode([format])
                #expect(data == Data("[\"\(format)\"]".utf8))
                let decoded = try JSONDecoder().decode([ImageFormat].self, from: data)[0]
                #expect(decoded == format)
                #expect(decoded.mediaTypes == format.mediaTypes)
            }
        }
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([ImageFormat].self, from: Data("[\"coded-test\"]".utf8))
        }
    }

    @Test func orientationAndFramesOfTheHeaderAreApplied() async throws {
        var decoder = TestDecoder("turned-test")
        decoder.info = { [format = decoder.format] size in
            var info = ImageInfo(format: format, storedSize: size)
            info.orientation = .right
            info.frameCount = 3
            return info
        }
        decoder.image = { request, image in
            request.options.page == 2 ? PixelImage(size: image.size, color: .white) : image
        }
        try await registered(decoder) {
            let image = try await ImageDecoder().image(from: decoder.input())
            #expect(image.size == PixelSize(width: 20, height: 40))
            let stored = try decoder.decode(
                ByteSource(decoder.input()), DecodeRequest(info: ImageInfo(of: decoder.input()), target: nil))
            #expect(image == stored.oriented(.right))
            let last = try await ImageDecoder().image(from: decoder.input(), options: DecodeOptions(page: 2))
            #expect(last[3, 3] == .white)
            await #expect(throws: ImageError.self) {
                try await ImageDecoder().image(from: decoder.input(), options: DecodeOptions(page: 3))
            }
        }
    }

    // MARK: Decoders that lie

    @Test(arguments: [
        (10, 10, 5_000, 5_000), (5_000, 5_000, 10, 10), (40, 20, 20, 40), (40, 20, 41, 20), (40, 20, 30, 20),
        (40, 20, 19, 10),
    ])
    func imageOfAnotherSizeThanAnnouncedIsATypedError(_ w: Int, _ h: Int, _ width: Int, _ height: Int) async throws {
        var decoder = TestDecoder("lying-\(w)-\(h)-\(width)-\(height)")
        decoder.info = { [format = decoder.format] _ in
            ImageInfo(format: format, storedSize: PixelSize(width: w, height: h))
        }
        decoder.image = { _, _ in PixelImage(size: PixelSize(width: width, height: height), color: .white) }
        try await registered(decoder) {
            for resizer in [ImageResizer.none, .fit(w == 40 ? 20 : 100)] {
                let error = await #expect(throws: ImageError.self) {
                    try await ImageDecoder().image(from: decoder.input(), at: resizer)
                }
                #expect(error?.caseName == "decoderFailed", "\(resizer)")
            }
        }
    }

    @Test func smallerImageOfTheSameShapeServesASmallerTarget() async throws {
        var decoder = TestDecoder("scaling-test")
        decoder.image = { request, image in
            guard let target = request.target, target.width <= 25 else { return image }
            return PixelImage(size: PixelSize(width: 21, height: 11), color: .white)
        }
        try await registered(decoder) {
            let small = try await ImageDecoder().image(from: decoder.input(41, 21), at: .fit(20))
            #expect(small.size == PixelSize(width: 20, height: 11))
            #expect(small[0, 0] == .white)
            let whole = try await ImageDecoder().image(from: decoder.input(41, 21))
            #expect(whole.size == PixelSize(width: 41, height: 21))
        }
    }

    @Test(arguments: [(0, 10), (-1, 5), (Int.max, Int.max), (Int.min, 1), (5_000_000_000, 1)])
    func sizeThatNoImageHasIsRefusedByTheHeader(_ width: Int, _ height: Int) async throws {
        var decoder = TestDecoder("absurd-\(width)-\(height)")
        decoder.info = { [format = decoder.format] _ in
            ImageInfo(format: format, storedSize: PixelSize(width: width, height: height))
        }
        try await registered(decoder) {
            let error = #expect(throws: ImageError.self) { try ImageInfo(of: decoder.input()) }
            #expect(error?.caseName == "decoderFailed")
        }
    }

    @Test(arguments: [(70_000, 10), (20_000, 20_000), (9_000, 9_000)])
    func announcementBeyondTheLimitsIsRefusedBeforeDecoding(_ width: Int, _ height: Int) async throws {
        var decoder = TestDecoder("huge-\(width)-\(height)")
        let decodes = Counter()
        decoder.info = { [format = decoder.format] _ in
            ImageInfo(format: format, storedSize: PixelSize(width: width, height: height))
        }
        decoder.image = { _, image in
            _ = decodes.add(1)
            return image
        }
        try await registered(decoder) {
            let error = await #expect(throws: ImageError.self) {
                try await ImageDecoder().image(from: decoder.input(), at: .fit(10))
            }
            #expect(error?.caseName == "limitExceeded")
            #expect(decodes.add(0) == 0)
        }
    }

    @Test func impossibleHeaderValuesAreDropped() async throws {
        var decoder = TestDecoder("nonsense-test")
        decoder.info = { size in
            var info = ImageInfo(format: .jpeg, storedSize: size)
            info.frameCount = -4
            info.duration = .nan
            info.loopCount = -1
            info.bitDepth = .max
            info.colorProfile = [1, 2, 3]
            info.embeddedPreviews = [
                .init(offset: .max, count: .max, size: nil), .init(offset: -1, count: 10, size: nil),
                .init(offset: 0, count: 10, size: PixelSize(width: .max, height: .max)),
            ]
            return info
        }
        try await registered(decoder) {
            let info = try ImageInfo(of: decoder.input())
            #expect(info.format == decoder.format)
            #expect(info.frameCount == 1)
            #expect(info.duration == nil)
            #expect(info.loopCount == nil)
            #expect(info.bitDepth == 64)
            #expect(info.colorProfile == nil)
            #expect(info.embeddedPreviews.map(\.offset) == [0])
            let options = DecodeOptions(allowsEmbeddedPreview: true)
            let image = try await ImageDecoder().image(from: decoder.input(), at: .fit(10), options: options)
            #expect(image.size == PixelSize(width: 10, height: 5))
            #expect(try ImageDecoder().embeddedPreview(of: decoder.input(), at: .fit(10)) == nil)
        }
    }

    // MARK: Errors, cancellation, isolation

    private struct Failure: Error {}

    @Test func errorsOfTheDecoderBecomeImageErrors() async throws {
        for (error, name) in [
            (Failure(), "decoderFailed"), (ImageError.truncated(input: "a"), "truncated"),
            (CancellationError(), "cancelled"),
        ] as [(any Error, String)] {
            var decoder = TestDecoder("failing-\(name)".lowercased())
            decoder.image = { _, _ in throw error }
            try await registered(decoder) {
                let caught = #expect(throws: ImageError.self) { try ImageDecoder().decode(decoder.input()) }
                #expect(caught?.caseName == name)
            }
            decoder.info = { _ in throw error }
            try await registered(decoder) {
                let caught = #expect(throws: ImageError.self) { try ImageInfo(of: decoder.input()) }
                #expect(caught?.caseName == name)
            }
        }
    }

    @Test func deadlineAndCancellationReachTheDecoder() async throws {
        var decoder = TestDecoder("endless-test")
        let begun = Gate()
        decoder.image = { request, _ in
            begun.open()
            while !request.cancellation.isCancelled {}
            throw CancellationError()
        }
        try await registered(decoder) {
            var limits = ImageLimits()
            limits.deadline = 0.05
            let error = #expect(throws: ImageError.self) { try ImageDecoder(limits: limits).decode(decoder.input()) }
            #expect(error?.caseName == "timedOut")
            let input = decoder.input()
            let task = Task { try await ImageDecoder().image(from: input) }
            await begun.wait()
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func isolationAlwaysRefusesRegisteredCodecs() async throws {
        let decoder = TestDecoder("isolated-test")
        try await registered(decoder) {
            #expect(ImageDecoder(isolation: .automatic).canDecode(decoder.format))
            #expect(!ImageDecoder(isolation: .always).canDecode(decoder.format))
            let error = #expect(throws: ImageError.self) {
                try ImageDecoder(isolation: .always).decode(decoder.input())
            }
            #expect(error?.caseName == "unsupported")
            let image = try ImageDecoder(isolation: .inProcess).decode(decoder.input())
            #expect(image.width == 40)
        }
    }

    // MARK: Threads

    @Test func decodersMayUseTheRegistryThemselves() async throws {
        var decoder = TestDecoder("reentrant-test")
        let inner = TestDecoder("inner-test")
        let recognize = decoder.recognize
        decoder.recognize = { prefix in
            guard recognize(prefix) else { return false }
            try? ImageDecoder.register(inner.codec)
            return ImageDecoder.registeredFormats.contains(inner.format)
        }
        decoder.image = { _, image in
            ImageDecoder.unregister(inner.format)
            return image
        }
        try await registered(decoder) {
            let image = try await ImageDecoder().image(from: decoder.input())
            #expect(image.width == 40)
        }
    }

    @Test func decodersComeAndGoWhileOthersDecode() async throws {
        let steady = TestDecoder("steady-test")
        try await registered(steady) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        let passing = TestDecoder("racing-test-\(number)")
                        for _ in 0..<25 {
                            try ImageDecoder.register(passing.codec)
                            #expect(try await ImageDecoder().image(from: passing.input(), at: .fit(4)).width == 4)
                            #expect(try await ImageDecoder().image(from: steady.input(), at: .fit(4)).width == 4)
                            #expect(ImageDecoder.unregister(passing.format))
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func arrivingFileOfARegisteredFormatEndsWithTheCompleteImage() async throws {
        let decoder = TestDecoder("arriving-test")
        try await registered(decoder) {
            let file = decoder.file(64, 32)
            let chunks = AsyncStream<[UInt8]> { continuation in
                for start in stride(from: 0, to: file.count, by: 600) {
                    continuation.yield(Array(file[start..<min(file.count, start + 600)]))
                }
                continuation.finish()
            }
            var last: ProgressiveImage?
            for try await image in ImageDecoder().images(arrivingIn: chunks, at: .fit(16)) { last = image }
            #expect(last?.stage == .complete)
            #expect(last?.image.size == PixelSize(width: 16, height: 8))
        }
    }
}
