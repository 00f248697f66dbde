import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

/// Images by URL go through the service: one transfer for all sizes, under the rules of HTTP.
@Suite struct URLImageSourceTests {
    /// A server, a service and a clock of the test's own.
    private final class Site: Sendable {
        let directory: TemporaryDirectory
        let clock = ManualClock()
        let server: LoopbackServer
        let service: ImagePipeline
        let options: FetchOptions
        let page: Page

        /// What the server sends; can be changed while it runs.
        final class Page: Sendable {
            private let state: Locked<(fields: [String], body: [UInt8])>
            init(_ fields: [String], _ body: [UInt8]) { state = Locked((fields, body)) }
            var now: (fields: [String], body: [UInt8]) {
                get { state.withLock { $0 } }
                set { state.withLock { $0 = newValue } }
            }
        }

        init(_ fields: [String], _ body: [UInt8], gate: LoopbackServer.Barrier? = nil) throws {
            directory = try TemporaryDirectory()
            let page = Page(fields, body)
            self.page = page
            server = try LoopbackServer { request in
                let (fields, body) = page.now
                let tag = fields.first { $0.hasPrefix("ETag: ") }?.dropFirst(6)
                let isKnown = tag != nil && request.header("If-None-Match") == tag.map(String.init)
                let reply: LoopbackServer.Step = isKnown ? .reply(304, fields) : .reply(200, fields, body: body)
                return gate.map { [.wait($0), reply] } ?? [reply]
            }
            let wall = WallClock.following(clock, from: .seconds(1_700_000_000))
            service = .stored(in: directory) { $0.clock = wall }
            var loading = NetworkLoader.Configuration()
            loading.retries.limit = 0
            var options = FetchOptions(loader: NetworkLoader(CurlLoader(), loading, wallClock: wall))
            options.clock = wall
            options.partialDirectory = directory.file("partial")
            self.options = options
        }

        func source(_ part: URLImageSource.Part = .whole, at target: String = "/a") -> URLImageSource {
            URLImageSource(server.url(target), part: part, options: options)
        }

        func image(_ side: Int, _ part: URLImageSource.Part = .whole) async throws -> PixelImage {
            try await service.image(for: ImageRequest(source(part), resizing: .fit(side)))
        }
    }

    private static let fresh = ["Content-Type: image/png", "Cache-Control: max-age=60", "ETag: \"1\""]

    @Test func servesAllSizesFromOneTransfer() async throws {
        let site = try Site(Self.fresh, Samples.bytes("leaf.png"))
        async let small = site.image(16)
        async let large = site.image(64)
        #expect(try await small.size.longestSide == 16)
        #expect(try await large.size.longestSide == 64)
        _ = try await site.image(40)
        #expect(site.server.requests.count == 1)
        // Later services find results, and originals for other sizes, on disk.
        try await site.service.cache.flush()
        try await site.service.originals.flush()
        let later = ImagePipeline.stored(in: site.directory) { $0.clock = site.service.configuration.clock }
        _ = try await later.image(for: ImageRequest(site.source(), resizing: .fit(64)))
        #expect(later.statistics.fromDisk == 1)
        _ = try await later.image(for: ImageRequest(site.source(), resizing: ImageResizer(size: PixelSize(50), mode: .crop(.center))))
        #expect(site.server.requests.count == 1)
    }

    @Test func givesResultsOfMemoryAtOnce() async throws {
        let site = try Site(Self.fresh, Samples.bytes("leaf.png"))
        let image = try await site.image(16)
        #expect(site.service.cachedImage(for: ImageRequest(site.source(), resizing: .fit(16))) == image)
        let request = ImageTask(ImageRequest(site.source(), resizing: .fit(16)))
        site.service.start(request)
        #expect(request.state == .finished)
    }

    @Test func keepsResultsOnlyWhileTheOriginalIsFresh() async throws {
        let site = try Site(Self.fresh, Samples.bytes("leaf.png"))
        let before = try await site.image(32)
        // A size made from the larger one expires with it.
        _ = try await site.image(12)
        site.clock.advance(by: .seconds(61))
        #expect(site.service.cachedImage(for: ImageRequest(site.source(), resizing: .fit(32))) == nil)
        #expect(site.service.cachedImage(for: ImageRequest(site.source(), resizing: .fit(12))) == nil)
        #expect(try await site.image(32) == before)
        // Revalidated, not transferred again.
        #expect(site.server.requests.count == 2)
        #expect(site.server.requests.last?.header("If-None-Match") == "\"1\"")
        let other = try Samples.bytes("moon.gif")
        site.page.now = (["Content-Type: image/gif", "Cache-Control: max-age=60", "ETag: \"2\""], other)
        site.clock.advance(by: .seconds(61))
        #expect(try await site.image(12) != before)
        #expect(try await site.image(32) != before)
        #expect(site.server.requests.count == 3)
    }

    @Test func everyTransferTellsWhetherItsImageMayBeAnimated() async throws {
        let site = try Site(["Content-Type: image/jpeg", "Cache-Control: max-age=60"], Samples.bytes("lake.jpg"))
        let request = ImageRequest(site.source(), resizing: .fit(16))
        #expect(site.service.mayBeAnimated(request))
        _ = try await site.image(16)
        #expect(!site.service.mayBeAnimated(request))
        #expect(try await site.service.animation(for: request) == nil)
        site.page.now = (["Content-Type: image/gif", "Cache-Control: max-age=60"], try Samples.bytes("moon.gif"))
        site.clock.advance(by: .seconds(61))
        _ = try await site.image(16)
        #expect(site.service.mayBeAnimated(request))
        #expect(await site.service.availableAnimation(for: request)?.timing.frameCount == 16)
    }

    @Test func storesNothingOfWhatMayNotBeStored() async throws {
        let site = try Site(["Content-Type: image/png", "Cache-Control: no-store"], Samples.bytes("leaf.png"))
        _ = try await site.image(16)
        try await site.service.cache.flush()
        try await site.service.originals.flush()
        #expect(await site.service.contains(ImageRequest(site.source(), resizing: .fit(16)), at: .disk) == false)
        let later = ImagePipeline.stored(in: site.directory) { $0.clock = site.service.configuration.clock }
        _ = try await later.image(for: ImageRequest(site.source(), resizing: .fit(16)))
        #expect(site.server.requests.count == 2)
    }

    @Test func givesPagesAndFramesOfRemoteFiles() async throws {
        let document = try Site(["Content-Type: application/pdf", "Cache-Control: max-age=60"], Samples.bytes("lake.pdf"))
        let first = try await document.image(64)
        let second = try await document.image(64, .page(2))
        #expect(first != second)
        #expect(try await document.image(64, .page(1)) == first)
        #expect(document.server.requests.count == 1)
        await #expect(throws: ImagePipelineError.self) { try await document.image(64, .page(9)) }
        let film = try Site(["Content-Type: video/mp4", "Cache-Control: max-age=60"], Samples.bytes("lake.mp4"))
        let poster = try await film.image(64)
        let later = try await film.image(64, .moment(.second(4)))
        #expect(poster.size.longestSide == 64)
        #expect(poster != later)
        #expect(film.server.requests.count == 1)
    }

    @Test func removesOriginalsThatAreNoImages() async throws {
        let site = try Site(Self.fresh, Array("<html>not found</html>".utf8))
        await #expect(throws: ImagePipelineError.self) { try await site.image(16) }
        let good = try Samples.bytes("leaf.png")
        site.page.now.body = good
        #expect(try await site.image(16).size.longestSide == 16)
        // The same for one that begins well and is damaged.
        let damaged = try Site(Self.fresh, Array(good.prefix(200)))
        await #expect(throws: ImagePipelineError.self) { try await damaged.image(16) }
        damaged.page.now.body = good
        while try await damaged.service.originals.size != .zero { await Task.yield() }
        #expect(try await damaged.image(16).size.longestSide == 16)
    }

    @Test func namesTheURLWithoutCredentialsInErrors() async throws {
        let site = try Site(["Content-Type: text/html"], Array("x".utf8))
        let url = try #require(URL(string: "http://user:secret@127.0.0.1:\(site.server.port)/a"))
        let source = URLImageSource(url, options: site.options)
        do {
            _ = try await site.service.image(for: ImageRequest(source, resizing: .fit(16)))
            Issue.record("There was an image")
        } catch {
            #expect("\(error)".contains("127.0.0.1"))
            #expect(!"\(error)".contains("secret"))
        }
    }

    @Test func endsTheTransferWithItsLastRequest() async throws {
        let gate = LoopbackServer.Barrier()
        let site = try Site(Self.fresh, Samples.bytes("leaf.png"), gate: gate)
        let requests = [16, 64].map { ImageTask(ImageRequest(site.source(), resizing: .fit($0))) }
        for request in requests { site.service.start(request) }
        try await offPool { try waitUntil("the server was asked") { !site.server.requests.isEmpty } }
        requests[0].cancel()
        #expect(requests[1].state == .queued)
        requests[1].cancel()
        await site.service.waitUntilIdle()
        gate.open()
        await site.server.waitUntilUnused()
        #expect(site.service.statistics.calls == 0)
        #expect(site.server.requests.count == 1)
    }

    @Test func executesOnTheCallingThread() async throws {
        let site = try Site(Self.fresh, Samples.bytes("leaf.png"))
        let image = try await offPool {
            try site.service.execute(ImageTask(ImageRequest(site.source(), resizing: .fit(16))))
        }
        #expect(image.size.longestSide == 16)
        let missing = URLImageSource(try #require(URL(string: "http://127.0.0.1:1/a")), options: site.options)
        await #expect(throws: ImagePipelineError.self) {
            try await offPool { try site.service.execute(ImageTask(ImageRequest(missing, resizing: .fit(16)))) }
        }
    }

    @Test func readsFilesInPlace() async throws {
        let site = try Site([], [])
        let url = URL(filePath: Samples.path("leaf.png"))
        let image = try await site.service.image(for: ImageRequest(URLImageSource(url, options: site.options), resizing: .fit(16)))
        #expect(image.size.longestSide == 16)
        #expect(try await site.service.originals.size == .zero)
        let absent = URLImageSource(URL(filePath: "/nonexistent.png"), options: site.options)
        await #expect(throws: ImagePipelineError.self) {
            try await site.service.image(for: ImageRequest(absent, resizing: .fit(16)))
        }
    }

    @Test func loadedBytesGiveTheFrameThatIsAskedFor() async throws {
        let service = ImagePipeline.withoutDisk()
        var frames: [PixelImage] = []
        for page in 1...2 {
            let source = BuiltInSource.bytes(identity: CacheKey("moon", "\(page)"), page: page) {
                try Samples.bytes("moon.gif")
            }
            frames.append(try await service.image(for: ImageRequest(source)))
        }
        #expect(frames[0].size == frames[1].size)
        #expect(frames[0] != frames[1])
        let words = BuiltInSource.bytes(identity: "words") { Array("no picture".utf8) }
        let error = await #expect(throws: ImagePipelineError.self) {
            try await service.image(for: ImageRequest(words))
        }
        guard case .unsupported = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func loadsSourcesOfTheUsersOwn() async throws {
        // Without a disk to look at, both requests are in line when they have been started.
        let service = ImagePipeline.withoutDisk()
        let loads = Counter()
        service.setSuspended(true)
        let row = BuiltInSource.bytes(identity: "row 7") {
            loads.add(1)
            return try Samples.bytes("leaf.png")
        }
        let requests = [16, 64].map { ImageTask(ImageRequest(row, resizing: .fit($0))) }
        for request in requests { service.start(request) }
        service.setSuspended(false)
        #expect(try await requests[0].value.size.longestSide == 16)
        #expect(try await requests[1].value.size.longestSide == 64)
        #expect(loads.value == 1)
        #expect(service.statistics.calls == 1)
    }

    // MARK: Identities, refreshes and progress

    @Test func requestsOfOtherLoadersShareNothing() async throws {
        let server = try LoopbackServer { request in
            let name = request.header("Authorization") == "A" ? "leaf.png" : "lake-palette.png"
            let body = (try? Samples.bytes(name)) ?? []
            return [.reply(200, ["Content-Type: image/png", "Cache-Control: private, max-age=60"], body: body)]
        }
        let site = try Site(Self.fresh, [])
        func image(_ token: String, _ side: Int) async throws -> PixelImage {
            var loading = NetworkLoader.Configuration()
            loading.headers["Authorization"] = token
            var options = site.options
            options.loader = NetworkLoader(CurlLoader(), loading)
            let source = URLImageSource(server.url("/me"), options: options)
            return try await site.service.image(for: ImageRequest(source, resizing: .fit(side)))
        }
        let first = try await image("A", 64)
        #expect(try await image("B", 64) != first)
        #expect(try await image("B", 16) != image("A", 16))
        #expect(server.requests.count == 2)
    }

    @Test func requestsWithOtherHeadersShareNothing() async throws {
        let server = try LoopbackServer { request in
            let name = request.header("Authorization") == "A" ? "leaf.png" : "lake-palette.png"
            let body = (try? Samples.bytes(name)) ?? []
            return [.reply(200, ["Content-Type: image/png", "Cache-Control: private, max-age=60"], body: body)]
        }
        let site = try Site(Self.fresh, [])
        func image(_ headers: HTTPHeaders) async throws -> PixelImage {
            let source = BuiltInSource.url(server.url("/me"), headers: headers, options: site.options)
            return try await site.service.image(for: ImageRequest(source, resizing: .fit(16)))
        }
        let first = try await image(["Authorization": "A"])
        #expect(try await image(["Authorization": "B"]) != first)
        #expect(try await image(["Authorization": "A"]) == first)
        #expect(server.requests.count == 2)
    }

    @Test func aRequestDoesNotFailByTheOptionsOfAnother() async throws {
        let gate = LoopbackServer.Barrier()
        defer { gate.open() }
        let site = try Site(Self.fresh, Samples.bytes("leaf.png"), gate: gate)
        func start(_ change: (inout FetchOptions) -> Void) -> ImageTask {
            var options = site.options
            change(&options)
            let source = URLImageSource(site.server.url("/a"), options: options)
            return site.service.start(ImageRequest(source, resizing: .fit(16)))
        }
        let bounded = [start { $0.maximumBodySize = ByteCount(20) }, start { $0.contentTypes = ["image/jpeg"] }]
        let hurried = start { $0.totalTimeout = .seconds(3000) }
        let free = start { _ in }
        try await offPool { try waitUntil("each has asked") { site.server.requests.count == 4 } }
        hurried.cancel()
        gate.open()
        #expect(try await free.value.size.longestSide == 16)
        for task in bounded { await #expect(throws: ImagePipelineError.self) { try await task.value } }
    }

    @Test func requestsThatOnlyWriteAskTheServerAnew() async throws {
        let site = try Site(Self.fresh, Samples.bytes("leaf.png"))
        func request(_ side: Int, _ levels: CacheLevels) -> ImageRequest {
            var request = ImageRequest(site.source(), resizing: .fit(side))
            request.cacheLevels = levels
            return request
        }
        let old = try await site.image(64)
        _ = try await site.image(16)
        let changed = try Samples.bytes("lake-palette.png")
        site.page.now = (["Content-Type: image/png", "Cache-Control: max-age=60", "ETag: \"2\""], changed)
        // Nothing is read and nothing is stored.
        let other = try await site.service.image(for: request(64, []))
        #expect(other != old)
        #expect(try await site.image(64) == old)
        #expect(site.server.requests.count == 2)
        // What is loaded anew replaces what is stored, also in other sizes.
        #expect(try await site.service.image(for: request(64, .writeOnly)) == other)
        #expect(site.server.requests.last?.header("Cache-Control") == "no-cache")
        #expect(try await site.image(64) == other)
        try await site.service.cache.flush()
        try await site.service.originals.flush()
        let later = ImagePipeline.stored(in: site.directory) { $0.clock = site.service.configuration.clock }
        // The disk holds it with a loss; the old picture has another shape.
        #expect(try await later.image(for: ImageRequest(site.source(), resizing: .fit(64))).size == other.size)
        #expect(old.size != other.size)
        let small = try await site.image(16)
        #expect(try await site.service.image(for: request(16, [])).size == small.size)
        #expect(site.server.requests.count == 4)
    }

    @Test(arguments: [404, 410])
    func picturesThatAreGoneDoNotComeBackOffline(_ status: Int) async throws {
        let isGone = Locked(false)
        let server = try LoopbackServer { _ in
            if isGone.withLock({ $0 }) { return [.reply(status)] }
            return [.reply(200, Self.fresh, body: (try? Samples.bytes("leaf.png")) ?? [])]
        }
        let site = try Site(Self.fresh, [])
        let source = URLImageSource(server.url("/a"), options: site.options)
        for side in [64, 16] { _ = try await site.service.image(for: ImageRequest(source, resizing: .fit(side))) }
        isGone.withLock { $0 = true }
        // A new load finds out before the stored pictures expire.
        var refresh = ImageRequest(source, resizing: .fit(64))
        refresh.cacheLevels = .writeOnly
        await #expect(throws: ImagePipelineError.self) { try await site.service.image(for: refresh) }
        server.stop()
        await server.waitUntilUnused()
        for side in [64, 16, 128] {
            await #expect(throws: ImagePipelineError.self) {
                try await site.service.image(for: ImageRequest(source, resizing: .fit(side)))
            }
        }
    }

    @Test func progressEndsForEveryRequest() async throws {
        let gate = LoopbackServer.Barrier()
        defer { gate.open() }
        let site = try Site(Self.fresh, Samples.bytes("leaf.png"), gate: gate)
        func start(_ side: Int) -> (ImageTask, TransferProgress) {
            let progress = TransferProgress()
            let source = URLImageSource(site.server.url("/a"), options: site.options, progress: progress)
            return (site.service.start(ImageRequest(source, resizing: .fit(side))), progress)
        }
        let (first, joined) = (start(64), start(16))
        gate.open()
        _ = try await first.0.value
        _ = try await joined.0.value
        let (fromMemory, fromOriginal) = (start(64), start(128))
        _ = try await fromMemory.0.value
        _ = try await fromOriginal.0.value
        for (_, progress) in [first, joined, fromMemory, fromOriginal] {
            var last: TransferProgress.Step?
            for await step in progress { last = step }
            #expect(last?.isComplete == true)
            #expect(last?.fraction == 1)
        }
        #expect(site.server.requests.count == 1)
        // And of those that fail.
        let failed = TransferProgress()
        let nowhere = try #require(URL(string: "http://127.0.0.1:1/"))
        let source = URLImageSource(nowhere, options: site.options, progress: failed)
        await #expect(throws: ImagePipelineError.self) { try await site.service.image(for: ImageRequest(source)) }
        #expect(failed.current.isFinished && !failed.current.isComplete)
    }

    // MARK: Media types

    private static let vague: [[String]] = [
        [], ["Content-Type:"], ["Content-Type: text/plain"], ["Content-Type: application/octet-stream"],
        ["Content-Type: unknown/unknown"], ["Content-Type: jpg"], ["Content-Type: application/x-picture"],
    ]

    @Test(arguments: vague.indices)
    func picturesAreRecognizedWhereTheirTypeSaysNothing(_ index: Int) async throws {
        let site = try Site(Self.vague[index] + ["Cache-Control: max-age=60"], Samples.bytes("leaf.png"))
        #expect(try await site.image(16).size.longestSide == 16)
        var options = site.options
        options.contentTypes = ["*/*"]
        let source = URLImageSource(site.server.url("/b"), options: options)
        #expect(try await site.service.image(for: ImageRequest(source, resizing: .fit(16))).size.longestSide == 16)
    }

    @Test(arguments: ["text/html", "application/json", "text/css", "application/x-javascript"])
    func typesThatAreNoPicturesAreRefused(_ type: String) async throws {
        let site = try Site(["Content-Type: \(type)"], Samples.bytes("leaf.png"))
        await #expect(throws: ImagePipelineError.self) { try await site.image(16) }
    }

    @Test func errorsNameTheURLOnceAndInPart() async throws {
        let site = try Site([], [])
        let url = try #require(URL(string: "data:text/plain;base64," + String(repeating: "eHh4", count: 100_000)))
        let error = await #expect(throws: ImagePipelineError.self) {
            try await site.service.image(for: ImageRequest(URLImageSource(url, options: site.options)))
        }
        #expect((error?.description ?? "").utf8.count < 1000)
        site.page.now = (["Content-Type: text/html"], [])
        let refused = await #expect(throws: ImagePipelineError.self) { try await site.image(16) }
        #expect((refused?.description ?? "").components(separatedBy: "127.0.0.1").count == 2)
    }
}
