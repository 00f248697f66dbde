import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

/// `Isolation.always`: no picture is decoded in this process.
@Suite struct IsolationTests {
    /// Stands for every decoder of this process, and remembers that it was asked.
    private struct Spy: ImageDecoding {
        let formats = Set(ImageFormat.builtIn)
        let needsIsolation = false
        let asked: Counter

        func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
            asked.add(1)
            throw .corrupt(input: source.name, reason: "decoded in this process")
        }
    }

    @Test func theSamplesAreOfEveryFormat() throws {
        let formats = try Samples.names.map { try ImageInfo(of: .file(Samples.path($0))).format }
        #expect(Set(formats) == Set(ImageFormat.builtIn))
    }

    @Test(arguments: Samples.names)
    func everyFormatIsDecodedInAWorker(_ name: String) throws {
        let path = Samples.path(name)
        let asked = Counter()
        let pool = WorkerFixture.pool(1)
        let decoder = ImageDecoder(
            limits: .standard, isolation: .always, registry: DecoderRegistry(decoders: [Spy(asked: asked)]), pool: pool)
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

    @Test func anArrivingFileGivesNoPicturesOfThisProcess() async throws {
        let bytes = try Samples.bytes("lake.jpg")
        let half = bytes.count / 2
        func stages(_ isolation: Isolation) async throws -> [ProgressiveImage.Stage] {
            let decoder = ImageDecoder(
                limits: .standard, isolation: isolation, registry: .standard, pool: WorkerFixture.pool(1))
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
        let decoder = ImageDecoder(limits: .standard, isolation: .always, registry: .standard, pool: pool)
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
