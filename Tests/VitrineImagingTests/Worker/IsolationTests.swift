import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

/// `Isolation.always`: no picture is decoded in this process.
@Suite struct IsolationTests {
    /// Stands for every decoder of this process, and remembers that it was asked.
    private struct Spy: ImageDecoding {
        let formats = Set(ImageFormat.pictures)
        let asked: Counter

        func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
            asked.add(1)
            throw .corrupt(input: source.name, reason: "decoded in this process")
        }
    }

    @Test func theSamplesAreOfEveryFormat() throws {
        let formats = try Samples.names.map { try ImageInfo(of: .file(Samples.path($0))).format }
        #expect(Set(formats) == Set(ImageFormat.pictures))
    }

    @Test(arguments: Samples.names)
    func everyFormatIsDecodedInAWorker(_ name: String) throws {
        let path = Samples.path(name)
        let asked = Counter()
        let pool = WorkerFixture.pool(1)
        let decoder = ImageDecoder(
            limits: .standard, isolation: .always, codecs: .standard(decoding: [Spy(asked: asked)]), pool: pool)
        for resizer in [ImageResizer.none, .fit(20)] {
            for preview in [false, true] {
                let image = try decoder.decode(
                    .file(path), at: resizer, options: DecodeOptions(allowsEmbeddedPreview: preview))
                #expect(!image.size.isEmpty)
            }
        }
        _ = try decoder.embeddedPreview(of: .file(path), at: .fit(20))
        #expect(asked.value == 0)
        #expect(pool.idleIdentifiers.count == 1)
    }

    @Test(arguments: Samples.names)
    func onlyFiveFormatsAreReadInThisProcess(_ name: String) throws {
        let input = ImageInput.file(Samples.path(name))
        let (asked, pool) = (Counter(), WorkerFixture.pool(1))
        let decoder = ImageDecoder(
            limits: .standard, isolation: .automatic, codecs: .standard(decoding: [Spy(asked: asked)]),
            pool: pool)
        let format = try decoder.header(of: ByteSource(input)).info.format
        let isCommon = [.jpeg, .png, .gif, .bmp, .webp].contains(format)
        #expect(pool.idleIdentifiers.count == (isCommon ? 0 : 1))
        let image = try? decoder.decode(input, at: .fit(20))
        #expect((image == nil) == isCommon)
        #expect(asked.value == (isCommon ? 1 : 0))
    }

    private static let files = ["corpus", "anything/corpus", "hostile"].flatMap { Corpus.files(in: $0) }

    @Test(.enabled(if: !files.isEmpty, "the shared corpus is absent"))
    func headersFromAWorkerAreThoseOfThisProcess() throws {
        let pool = WorkerFixture.pool(1)
        func header(_ path: String, _ isolation: Isolation) throws -> Result<ImageHeader, ImageError> {
            let source = try ByteSource(.file(path))
            let decoder = ImageDecoder(limits: .standard, isolation: isolation, codecs: .standard, pool: pool)
            return Result { () throws(ImageError) in try decoder.header(of: source) }
        }
        for path in Self.files {
            switch (try header(path, .inProcess), try header(path, .always)) {
            case (.success(let here), .success(let there)):
                #expect(here.info == there.info, "\(path)")
                #expect(here.exif == there.exif && here.xmp == there.xmp, "\(path)")
                #expect(here.convertedExif == there.convertedExif, "\(path)")
                #expect(here.frameSeconds == there.frameSeconds, "\(path)")
            case (.failure(let here), .failure(let there)):
                // Only the worker opens archives.
                let opens = here.reason.contains("vitrine-worker opens archives")
                #expect(here.caseName == there.caseName || opens, "\(path): \(here), \(there)")
            case (.failure(let here), .success):
                #expect(here.reason.contains("vitrine-worker opens archives"), "\(path): \(here)")
            case (.success, .failure(let there)): Issue.record("\(path): \(there)")
            }
        }
    }

    @Test(.enabled(if: !files.isEmpty, "the shared corpus is absent"))
    func coversFromAWorkerAreThoseOfThisProcess() throws {
        let pool = WorkerFixture.pool(1)
        var found = 0
        for path in Self.files where path.contains("/anything/") {
            func cover(_ isolation: Isolation) throws(ImageError) -> RecordingCover? {
                let decoder = ImageDecoder(limits: .standard, isolation: isolation, codecs: .standard, pool: pool)
                return try decoder.cover(
                    of: ByteSource(.file(path)), preferring: .front, cancellation: CancellationToken())
            }
            let (here, there) = (try cover(.inProcess), try cover(.always))
            #expect(here?.bytes == there?.bytes && here?.kind == there?.kind, "\(path)")
            if here != nil { found += 1 }
        }
        #expect(found > 5)
    }

    @Test func sidesBeyondAllNumbersAreRefusedAlike() throws {
        let source = ByteSource(bytes: Array("P5 200000000000 1 255\n".utf8) + [0], name: "wide.pgm")
        let error = ImageError.limitExceeded(
            input: "wide.pgm", limit: .side, actual: 200_000_000_000, allowed: ImageLimits.standard.maximumSide)
        for isolation in [Isolation.inProcess, .always] {
            let decoder = ImageDecoder(
                limits: .standard, isolation: isolation, codecs: .standard, pool: WorkerFixture.pool(1))
            #expect(throws: error) { try decoder.header(of: source) }
        }
    }

    @Test func headersThatCannotBeAreRefused() throws {
        let source = ByteSource(bytes: [UInt8](repeating: 0, count: 100), name: "any")
        func isAccepted(_ change: (inout ImageHeader) -> Void) -> Bool {
            var info = ImageInfo(format: .heic, storedSize: PixelSize(width: 30, height: 20))
            info.embeddedPreviews = [.init(offset: 10, count: 90, size: PixelSize(4))]
            var header = ImageHeader(info: info)
            (header.exif, header.frameSeconds) = (0..<100, [0.1, 0])
            change(&header)
            return ImageHeader(header.encoded(), of: source, format: .heic, limits: .standard) != nil
        }
        #expect(isAccepted { _ in })
        #expect(!isAccepted { $0.exif = 0..<101 })
        #expect(!isAccepted { $0.info.storedSize = .zero })
        #expect(!isAccepted { $0.info.storedSize = PixelSize(width: .max, height: 1) })
        #expect(!isAccepted { $0.info.format = .avif })
        #expect(!isAccepted { $0.info.frameCount = 0 })
        #expect(!isAccepted { $0.info.frameCount = .max })
        #expect(!isAccepted { $0.info.duration = .infinity })
        #expect(!isAccepted { $0.info.pictureIndex = -1 })
        #expect(!isAccepted { $0.info.embeddedPreviews[0].count = 91 })
        #expect(!isAccepted { $0.info.embeddedPreviews[0].offset = .max })
        #expect(!isAccepted { $0.info.colorProfile = [1, 2, 3] })
        #expect(!isAccepted { $0.frameSeconds = [.nan] })
        #expect(!isAccepted { $0.frameSeconds = Array(repeating: 0, count: ImageLimits.standard.maximumFrames + 1) })
        #expect(ImageHeader([], of: source, format: .heic, limits: .standard) == nil)
    }

    @Test(
        arguments: [
            "lake.jpg", "lake-cmyk.jpg", "lake-grey.jpg", "lake-progressive.jpg", "lake.bmp", "lake-palette.png",
            "leaf.png", "orientation-6.jpg",
        ],
        [
            ImageResizer.fit(100), .fit(20), .fill(width: 90, height: 90), .stretch(width: 64, height: 100),
            .crop(width: 80, height: 40), .crop(width: 80, height: 40, gravity: .attention), .fit(2_000),
        ])
    func scalingInAWorkerGivesTheSamePixels(name: String, resizer: ImageResizer) throws {
        func pixels(_ isolation: Isolation) throws -> (PixelSize, [UInt8]) {
            let decoder = ImageDecoder(
                limits: .standard, isolation: isolation, codecs: .standard, pool: WorkerFixture.pool(1))
            let image = try decoder.decode(.file(Samples.path(name)), at: resizer)
            return (image.size, image.withUnsafeBytes { Array($0) })
        }
        let (here, there) = (try pixels(.inProcess), try pixels(.always))
        #expect(here.0 == there.0)
        #expect(here.1 == there.1)
    }

    @Test func aWorkerSendsOnlyTheSamplesOfTheResult() throws {
        let input = ImageInput.file(Samples.path("lake.jpg"))
        let (source, info) = (try ByteSource(input), try ImageInfo(of: input))
        let target = PixelSize(width: info.size.width / 3, height: info.size.height / 3)
        var request = DecodeRequest(info: info, target: target)
        let pool = WorkerFixture.pool(1)
        #expect(try pool.decode(source, request).planes.allSatisfy { $0.width != target.width })
        request.allowsScaling = true
        let scaled = try pool.decode(source, request)
        #expect(scaled.planes.allSatisfy { $0.width == target.width && $0.height == target.height })
        #expect(!scaled.samplesAreMeans)
    }

    @Test func anArrivingFileGivesNoPicturesOfThisProcess() async throws {
        let bytes = try Samples.bytes("lake.jpg")
        let half = bytes.count / 2
        func stages(_ isolation: Isolation) async throws -> [ProgressiveImage.Stage] {
            let decoder = ImageDecoder(
                limits: .standard, isolation: isolation, codecs: .standard, pool: WorkerFixture.pool(1))
            let (chunks, feed) = AsyncStream<[UInt8]>.makeStream()
            var stages: [ProgressiveImage.Stage] = []
            var pictures = decoder.images(arrivingIn: chunks, at: .fit(100)).makeAsyncIterator()
            feed.yield(Array(bytes[..<half]))
            // The next picture may be the upper half, which has to be seen before the rest comes in its place.
            if isolation != .always, let first = try await pictures.next() { stages.append(first.stage) }
            feed.yield(Array(bytes[half...]))
            feed.finish()
            while let next = try await pictures.next() { stages.append(next.stage) }
            return stages
        }
        #expect(try await stages(.inProcess).contains(.partial))
        let isolated = try await stages(.always)
        #expect(isolated.last == .complete && !isolated.contains(.partial))
    }

    @Test func withoutAWorkerNothingIsDecoded() throws {
        let pool = WorkerPool(location: .executable("/nowhere/vitrine-worker"))
        let decoder = ImageDecoder(limits: .standard, isolation: .always, codecs: .standard, pool: pool)
        #expect(!decoder.canDecode(.jpeg))
        #expect {
            try decoder.decode(.file(Samples.path("lake.jpg")))
        } throws: { error in
            guard case .workerFailed(_, let reason) = error as? ImageError else { return false }
            return reason.contains("VITRINE_WORKER")
        }
    }

    @Test func theStandardOfAProcessHoldsForDecodersThatAreToldNothing() throws {
        #expect(Isolation.standard == .automatic)
        func host(_ worker: String) throws -> String {
            let process = Process()
            process.executableURL = URL(filePath: WorkerFixture.host)
            process.arguments = ["isolated", Samples.path("lake.jpg")]
            process.environment = ProcessInfo.processInfo.environment.merging(["VITRINE_WORKER": worker]) { $1 }
            let output = Pipe()
            process.standardOutput = output
            try process.run()
            let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            return text.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let size = try ImageInfo(of: .file(Samples.path("lake.jpg"))).size
        #expect(try host(WorkerFixture.executable) == "\(size)")
    }
}
