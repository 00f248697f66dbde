import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineJPEG

/// Previews of URLs while their bytes are transferred.
@Suite struct ProgressivePreviewTests {
    private final class Site: Sendable {
        let directory: TemporaryDirectory
        let server: PiecewiseServer
        let pipeline: ImagePipeline
        let options: FetchOptions

        init(_ server: PiecewiseServer, _ change: (inout ImagePipeline.Configuration) -> Void = { _ in }) throws {
            directory = try TemporaryDirectory()
            self.server = server
            pipeline = .stored(in: directory, concurrency: 2, change)
            var loading = NetworkLoader.Configuration()
            loading.retries.limit = 0
            var options = FetchOptions(loader: NetworkLoader(CurlLoader(), loading))
            options.partialDirectory = directory.file("partial")
            self.options = options
        }

        func request(_ side: Int, _ processors: [ImageProcessor] = [], isProgressive: Bool = true) -> ImageRequest {
            ImageRequest(
                URLImageSource(server.url(), options: options), resizing: .fit(side), processors: processors,
                isProgressive: isProgressive)
        }
    }

    /// The mean difference of the green channel, in levels.
    private func error(_ a: PixelImage, _ b: PixelImage) -> Double {
        guard a.size == b.size else { return .infinity }
        var sum = 0
        for y in 0..<a.height {
            for x in 0..<a.width { sum += abs(Int(a[x, y].green) - Int(b[x, y].green)) }
        }
        return Double(sum) / Double(a.width * a.height)
    }

    /// A progressive JPEG with comments in front of its header that make it at least this large.
    private static func lake(ofAtLeast count: Int = 0) throws -> [UInt8] {
        let bytes = try Samples.bytes("lake-progressive.jpg")
        var comments: [UInt8] = []
        while bytes.count + comments.count < count {
            comments += [0xFF, 0xFE, 0xFF, 0xFF] + [UInt8](repeating: 0x20, count: 65_533)
        }
        return Array(bytes[..<2]) + comments + Array(bytes[2...])
    }

    @Test(arguments: [0, 1_200_000]) func pipelineDeliversScansWhileTheBytesArrive(_ size: Int) async throws {
        let bytes = try Self.lake(ofAtLeast: size)
        let padding = Double(bytes.count - 178_350)
        let places = [0.3, 0.7].map { (padding + 178_350 * $0) / Double(bytes.count) }
        let site = try Site(PiecewiseServer(bytes, endingAt: places))
        let task = site.pipeline.start(site.request(300))
        var previews: [PixelImage] = []
        for await preview in task.previews {
            if previews.isEmpty {
                // The server waits, so this is an image of the first piece.
                #expect(task.state == .queued)
                #expect(site.pipeline.cachedImage(for: task.request) == nil)
                site.server.send(1)
            } else {
                site.server.send(2)
            }
            previews.append(preview)
        }
        let image = try await task.value
        #expect(previews.count >= 2)
        #expect(previews.allSatisfy { $0.size == image.size })
        let errors = previews.map { error($0, image) }
        #expect(errors[0] < 8 && errors[0] > 0, "\(errors)")
        #expect(try #require(errors.last) < errors[0], "\(errors)")
        #expect(image == (try await ImageDecoder().image(from: .bytes(bytes), at: .fit(300))))
        // The result and the original are cached, and no preview.
        #expect(site.pipeline.cachedImage(for: task.request) == image)
        try await site.pipeline.originals.flush()
        #expect(try await site.pipeline.image(for: site.request(40)).size.longestSide == 40)
        #expect(site.server.server.requests.count == 1)
        await site.pipeline.waitUntilIdle()
    }

    @Test func handlersGetPreviewsBeforeTheImage() async throws {
        let site = try Site(PiecewiseServer(Self.lake(), endingAt: [0.4]))
        let told = Recorder<String>()
        let task = ImageTask(site.request(200))
        task.onPreview(on: .immediate) { _ in
            told.add("preview")
            site.server.sendAll()
        }
        task.onImage(on: .immediate) { _ in told.add("image") }
        site.pipeline.start(task)
        _ = try await task.value
        #expect(told.all.first == "preview")
        #expect(told.all.last == "image")
        #expect(told.all.filter { $0 == "image" }.count == 1)
    }

    @Test func plainRequestsGetNoPreviews() async throws {
        let site = try Site(PiecewiseServer(Self.lake(), endingAt: [0.5]))
        let task = site.pipeline.start(site.request(200, isProgressive: false))
        let previews = Counter()
        task.onPreview(on: .immediate) { _ in previews.add(1) }
        site.server.sendAll()
        _ = try await task.value
        #expect(previews.value == 0)
    }

    @Test func tasksOfAllSizesShareTheTransferAndLateOnesGetTheLatestPreview() async throws {
        let site = try Site(PiecewiseServer(Self.lake(), endingAt: [0.5]))
        let first = site.pipeline.start(site.request(200))
        var previews = first.previews.makeAsyncIterator()
        let preview = try #require(await previews.next())
        // Another size gets a preview of its own from the bytes that are there.
        let other = site.pipeline.start(site.request(90))
        let small = try #require(await other.previews.first { _ in true })
        #expect(small.size.longestSide == 90)
        // The same size gets the latest one before this returns.
        let known = Recorder<PixelImage>()
        let late = ImageTask(site.request(200))
        late.onPreview(on: .immediate) { known.add($0) }
        site.pipeline.start(late)
        #expect(known.all.first?.size == preview.size)
        let later = late.previews
        #expect(await later.first { _ in true } != nil)
        site.server.sendAll()
        #expect(try await first.value.size == preview.size)
        #expect(try await other.value.size == small.size)
        #expect(try await late.value == first.value)
        #expect(site.server.server.requests.count == 1)
        #expect(site.pipeline.statistics.loads == 1)
    }

    @Test func previewsAreMadeForObserversThatComeLater() async throws {
        let site = try Site(PiecewiseServer(Self.lake(), endingAt: [0.5]))
        let task = site.pipeline.start(site.request(100))
        let other = site.pipeline.start(site.request(60))
        #expect(await other.previews.first { _ in true } != nil)
        #expect(await task.previews.first { _ in true }?.size.longestSide == 100)
        site.server.sendAll()
        _ = try await task.value
    }

    @Test func previewsAreProcessed() async throws {
        let site = try Site(PiecewiseServer(Self.lake(), endingAt: [0.5]))
        let black = ImageProcessor.custom(identifier: "black") { image throws(ImageError) in
            PixelImage(size: image.size, color: .black)
        }
        let task = site.pipeline.start(site.request(100, [black]))
        let preview = try #require(await task.previews.first { _ in true })
        #expect(preview == PixelImage(size: preview.size, color: .black))
        site.server.sendAll()
        #expect(try await task.value.size == preview.size)
    }

    #if SystemCodecs
    @Test func pipelineDeliversEmbeddedPreviews() async throws {
        let encoder = LibJPEGEncoder()
        let red = PixelImage(size: PixelSize(width: 48, height: 32), color: PixelColor(red: 200, green: 20, blue: 20))
        var exif = ExifSample()
        exif.preview = try encoder.encode(red, quality: 1, options: EncodeOptions())
        var options = EncodeOptions()
        options.metadata = ImageMetadata(exif: exif.bytes)
        let gray = PixelImage(size: PixelSize(width: 96, height: 64), color: PixelColor(red: 128, green: 128, blue: 128))
        let bytes = try encoder.encode(gray, quality: 0.9, options: options)
        let scan = try #require(bytes.indices.dropLast().last { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA })
        let site = try Site(PiecewiseServer([Array(bytes[..<(scan + 14)]), Array(bytes[(scan + 14)...])]))
        let task = site.pipeline.start(site.request(48))
        let preview = try #require(await task.previews.first { _ in true })
        #expect(preview.size == red.size)
        #expect(preview[10, 10].red > 180 && preview[10, 10].green < 60)
        site.server.sendAll()
        #expect(try await task.value[10, 10].green > 100)
    }
    #endif

    @Test func truncatedAndDamagedTransfersEndWithAnError() async throws {
        var bytes = try Self.lake()
        let barrier = LoopbackServer.Barrier()
        let head = "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: \(bytes.count)\r\n\r\n"
        let half = Array(bytes[..<(bytes.count / 2)])
        let server = try LoopbackServer { _ in [.text(head), .bytes(half), .wait(barrier), .close] }
        let site = try Site(PiecewiseServer(bytes, endingAt: []))
        let broken = ImageRequest(
            URLImageSource(server.url("/a.jpg"), options: site.options), resizing: .fit(100), isProgressive: true)
        let task = site.pipeline.start(broken)
        var count = 0
        for await _ in task.previews {
            count += 1
            barrier.open()
        }
        #expect(count > 0)
        await #expect(throws: ImagePipelineError.self) { try await task.value }
        #expect(site.pipeline.cachedImage(for: broken) == nil)
        // Damage of any kind ends previews and never traps.
        var random = SeededGenerator(7)
        for _ in 0..<12 {
            for _ in 0..<40 { bytes[Int.random(in: 200..<bytes.count, using: &random)] = .random(in: 0...255, using: &random) }
            let site = try Site(PiecewiseServer(bytes, endingAt: [0.2, 0.4, 0.6, 0.8]))
            let task = site.pipeline.start(site.request(64))
            let previews = Counter()
            task.onPreview(on: .immediate) { _ in previews.add(1) }
            site.server.sendAll()
            _ = try? await task.value
            #expect(task.state.isFinal)
            await site.pipeline.waitUntilIdle()
        }
    }

    @Test func limitsHoldForPreviews() async throws {
        let site = try Site(PiecewiseServer(Self.lake(), endingAt: [0.5])) { $0.limits.maximumPixels = 100 }
        let task = site.pipeline.start(site.request(50))
        let previews = Counter()
        task.onPreview(on: .immediate) { _ in previews.add(1) }
        site.server.sendAll()
        await #expect(throws: ImagePipelineError.self) { try await task.value }
        #expect(previews.value == 0)
    }

    @Test func theLastCancellationEndsTransferAndPreviews() async throws {
        let site = try Site(PiecewiseServer(Self.lake(), endingAt: [0.5]))
        let tasks = [80, 120].map { site.pipeline.start(site.request($0)) }
        for task in tasks { #expect(await task.previews.first { _ in true } != nil) }
        tasks[0].cancel()
        #expect(await tasks[0].previews.first { _ in true } == nil)
        #expect(tasks[1].state == .queued)
        tasks[1].cancel()
        await site.pipeline.waitUntilIdle()
        site.server.sendAll()
        await site.server.server.waitUntilUnused()
        #expect(site.pipeline.statistics.calls == 0)
    }
}
