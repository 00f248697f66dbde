import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineNetwork

struct PrefetcherTests {
    private let urls = (0..<5).map { ResourceFixture.url("\($0)") }

    @Test func aFewAtATimeInOrderToDisk() async throws {
        let fixture = try ResourceFixture()
        let prefetcher = Prefetcher(fixture.resources)
        prefetcher.start(urls + [urls[0]])
        for (index, url) in urls.enumerated() {
            let exchange = await fixture.network.request(for: url)
            #expect(fixture.network.exchanges.count <= index + 2)
            #expect(prefetcher.statistics.running <= 2)
            exchange.finish("p\(index) \(url)")
        }
        await prefetcher.waitUntilIdle()
        try await fixture.cache.flush()
        for (index, url) in urls.enumerated() {
            #expect(await fixture.resources.depth(of: url) == .disk)
            #expect(Piece.decodes(of: "p\(index) \(url)") == 0)
        }
        let statistics = prefetcher.statistics
        #expect(statistics.succeeded == 5 && statistics.failed == 0 && statistics.waiting + statistics.running == 0)
        // What is there is not asked for again.
        prefetcher.start(urls)
        await prefetcher.waitUntilIdle()
        #expect(fixture.network.exchanges.count == 5 && prefetcher.statistics.succeeded == 10)
    }

    @Test func toMemoryDecodes() async throws {
        let fixture = try ResourceFixture()
        let prefetcher = Prefetcher(fixture.resources, to: .memory)
        prefetcher.start([urls[0]])
        await fixture.network.request().finish("decoded")
        await prefetcher.waitUntilIdle()
        #expect(fixture.resources.value(at: urls[0], depth: .memory, observer: nil)?.text == "decoded")
    }

    @Test func pausesBeginNothing() async throws {
        let fixture = try ResourceFixture()
        let prefetcher = Prefetcher(fixture.resources, isPaused: true)
        prefetcher.start(urls)
        #expect(prefetcher.isPaused && prefetcher.statistics.waiting == 5 && fixture.network.exchanges.isEmpty)
        prefetcher.resume()
        _ = await fixture.network.request()
        prefetcher.pause()
        prefetcher.cancelAll()
        #expect(prefetcher.statistics.cancelled == 5)
    }

    @Test func someOrAllCanBeCancelled() async throws {
        let fixture = try ResourceFixture()
        let prefetcher = Prefetcher(fixture.resources, limit: 1)
        prefetcher.start(urls)
        let first = await fixture.network.request(0)
        prefetcher.cancel([urls[0], urls[1], ResourceFixture.url("unknown")])
        await first.isOver.wait()
        #expect(first.isCancelled)
        let next = await fixture.network.request(1)
        #expect(next.url == urls[2])
        prefetcher.cancelAll()
        await next.isOver.wait()
        await prefetcher.waitUntilIdle()
        #expect(next.isCancelled && fixture.network.exchanges.count == 2)
        #expect(prefetcher.statistics.cancelled == 5 && prefetcher.statistics.succeeded == 0)
        // What was cancelled can be asked for again.
        prefetcher.start([urls[1]])
        await fixture.network.request(2).finish("again")
        await prefetcher.waitUntilIdle()
        #expect(prefetcher.statistics.succeeded == 1)
    }

    @Test func whoIsWatchingIsNotHeldUpAndKeepsWhatIsCancelled() async throws {
        let fixture = try ResourceFixture()
        let prefetcher = Prefetcher(fixture.resources)
        prefetcher.start(urls)
        let (first, second) = (await fixture.network.request(0), await fixture.network.request(1))
        // The prefetcher's places are taken, which holds up nobody else.
        async let visible = fixture.resources.value(at: urls[4], priority: .high)
        await fixture.network.request(for: urls[4]).finish("visible")
        #expect(try await visible.text == "visible")
        // Who asks for what it loads joins, is as urgent, and keeps it.
        let key = fixture.resources.key(for: first.url)
        let watcher = Watcher()
        #expect(fixture.resources.value(at: first.url, priority: .high, observer: watcher) == nil)
        while fixture.cache.sourceWaiters(for: key) < 2 { await Task.yield() }
        #expect(fixture.cache.sourcePriority(of: key) == .high)
        #expect(fixture.cache.sourcePriority(of: fixture.resources.key(for: second.url)) == .veryLow)
        prefetcher.cancelAll()
        first.finish("kept")
        #expect(await watcher.wait() == ["kept"])
        #expect(!first.isCancelled)
    }

    @Test func failuresAreToldAndCounted() async throws {
        let fixture = try ResourceFixture()
        let ends = Recorder<Int?>()
        let prefetcher = Prefetcher(fixture.resources) { _, error in ends.add(error?.code) }
        prefetcher.start([urls[0]])
        await fixture.network.request(0).fail(NetworkError.cancelled(url: "-"))
        await prefetcher.waitUntilIdle()
        prefetcher.start([urls[0]])
        await fixture.network.request(1).finish("well")
        await prefetcher.waitUntilIdle()
        // Callbacks that are under way to the main actor come first.
        await MainActor.run {}
        #expect(ends.all == [-530, nil])
        let statistics = prefetcher.statistics
        #expect(statistics.failed == 1 && statistics.succeeded == 1 && statistics.received == ByteCount(1))
    }

    @Test func endsAreToldOnTheMainActor() async throws {
        let fixture = try ResourceFixture()
        let told = Gate()
        let prefetcher = Prefetcher(fixture.resources) { _, _ in
            MainActor.assertIsolated()
            told.open()
        }
        prefetcher.start([urls[0]])
        await fixture.network.request(0).finish("there")
        await told.wait()
    }

    @Test func whatIsLeftEndsWithThePrefetcher() async throws {
        let fixture = try ResourceFixture()
        var prefetcher: Prefetcher<Piece>? = Prefetcher(fixture.resources, limit: 1)
        prefetcher?.start(urls)
        let exchange = await fixture.network.request()
        prefetcher = nil
        await exchange.isOver.wait()
        while fixture.cache.runningLoads > 0 { await Task.yield() }
        #expect(exchange.isCancelled && fixture.network.exchanges.count == 1 && prefetcher == nil)
    }

    @Test func whatIsInPlaceIsNotCopied() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("file", to: "picture")
        let resources = ObservedCache(
            Cache<Piece>(name: "test", configuration: CacheConfiguration(root: directory.path)),
            options: FetchOptions(loader: NetworkLoader(makeLoader())))
        let prefetcher = Prefetcher(resources)
        prefetcher.start([URL(filePath: directory.file("picture"))])
        await prefetcher.waitUntilIdle()
        #expect(prefetcher.statistics.succeeded == 1)
        #expect(try await resources.cache.size == .zero)
    }
}
