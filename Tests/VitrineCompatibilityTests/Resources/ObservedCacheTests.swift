import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineNetwork

/// Requests of observers, and what they are told.
struct ResourceCacheTests {
    @Test func noURLGivesNothingAndCallsNobody() async throws {
        let fixture = try ResourceFixture()
        let watcher = Watcher()
        #expect(fixture.resources.value(at: nil, observer: watcher) == nil)
        #expect(fixture.resources.value(at: URL(string: ""), observer: watcher) == nil)
        fixture.resources.cancel(nil, observer: watcher)
        #expect(fixture.resources.lazyValue(for: nil) == nil)
        await MainActor.run {}
        #expect(fixture.resources.runningLoads == 0 && fixture.network.exchanges.isEmpty && watcher.events.all.isEmpty)
    }

    @Test func memoryAnswersAtOnceAndCallsNobody() async throws {
        let fixture = try ResourceFixture()
        let url = ResourceFixture.url()
        fixture.cache[fixture.resources.key(for: url)] = Piece("here")
        let watcher = Watcher()
        #expect(fixture.resources.value(at: url, observer: watcher)?.text == "here")
        #expect(try await fixture.resources.value(at: url, depth: .memory).text == "here")
        await MainActor.run {}
        #expect(fixture.resources.runningLoads == 0 && watcher.events.all.isEmpty)
    }

    @Test func whatIsAliveElsewhereCountsAsInMemoryAndIsPutBack() async throws {
        let fixture = try ResourceFixture { $0.memoryCapacity = 250 }
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        async let loaded = resources.value(at: url)
        await fixture.network.request().finish("shown")
        let held = try await loaded
        // Two more than there is room for.
        for number in 0..<20 { fixture.cache[CacheKey("other \(number)")] = Piece("other") }
        let again = resources.value(at: url, depth: .memory, observer: nil)
        #expect(again?.body === held.body)
        #expect(await resources.depth(of: url) == .memory)
    }

    @Test func memoryDepthNeverCallsBack() async throws {
        let fixture = try ResourceFixture()
        let watcher = Watcher()
        let url = ResourceFixture.url()
        #expect(fixture.resources.value(at: url, depth: .memory, observer: watcher) == nil)
        #expect(fixture.resources.runningLoads == 0)
        do throws(CacheError) {
            _ = try await fixture.resources.value(at: url, depth: .memory)
            Issue.record("did not throw")
        } catch {
            #expect(error.code == -100)
        }
        await MainActor.run {}
        #expect(watcher.events.all.isEmpty && fixture.network.exchanges.isEmpty)
    }

    @Test @MainActor func missesAreToldLaterOnTheMainActor() async throws {
        let fixture = try ResourceFixture()
        let (good, bad) = (ResourceFixture.url("good"), ResourceFixture.url("bad"))
        let (first, second) = (Watcher(), Watcher())
        #expect(fixture.resources.value(at: good, observer: first) == nil)
        await fixture.network.request(0).finish("come")
        holdMainActor { fixture.resources.runningLoads == 0 }
        #expect(first.events.all.isEmpty)
        #expect(await first.wait() == ["come"])
        #expect(fixture.resources.value(at: bad, observer: second) == nil)
        await fixture.network.request(1).fail(NetworkError.cancelled(url: "-"))
        #expect(await second.wait() == ["-530"])
    }

    @Test func viewsOnTheMainActorAreObserversAsTheyAre() async throws {
        @MainActor final class LakeView: LoadObserver {
            private(set) var shown: String?
            let told = Gate()

            func resourceDidLoad(_ piece: Piece, from url: URL) {
                shown = piece.text
                told.open()
            }
        }
        let fixture = try ResourceFixture()
        let url = ResourceFixture.url()
        let view = LakeView()
        #expect(fixture.resources.value(at: url, observer: view) == nil)
        await fixture.network.request().finish("lake")
        await view.told.wait()
        #expect(await view.shown == "lake")
    }

    @Test func diskDepthGoesNoFurtherThanTheDisk() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        fixture.cache.register(CacheFormat("loud") { Piece($0.text.uppercased()) })
        let watcher = Watcher()
        #expect(resources.value(at: url, depth: .disk, observer: watcher) == nil)
        #expect(await watcher.wait() == ["-100"])
        try await fixture.cache.set(bytes: Array("stored".utf8), forKey: resources.key(for: url))
        try await fixture.cache.flush()
        fixture.cache.clearMemory()
        let late = Watcher()
        #expect(resources.value(at: url, depth: .disk, observer: late) == nil)
        #expect(await late.wait() == ["stored"])
        // Also what can be made of what is there.
        fixture.cache.clearMemory()
        #expect(try await resources.value(at: url, format: "loud", depth: .disk).text == "STORED")
        #expect(fixture.network.exchanges.isEmpty)
    }

    @Test func originalBytesAreStoredAndWarmMemory() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let watcher = Watcher()
        #expect(resources.value(at: url, observer: watcher) == nil)
        try await fixture.finish(await fixture.network.request(), "bytes as they came")
        #expect(await watcher.wait() == ["bytes as they came"])
        #expect(resources.value(at: url, observer: nil)?.text == "bytes as they came")
        #expect(try await fixture.cache.bytes(forKey: resources.key(for: url)) == Array("bytes as they came".utf8))
    }

    // MARK: Coalescing

    @Test func oneLoadServesAllWhoAsk() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let watchers = (0..<5).map { _ in Watcher() }
        for watcher in watchers { #expect(resources.value(at: url, observer: watcher) == nil) }
        // One who asks twice waits once.
        #expect(resources.value(at: url, observer: watchers[0]) == nil)
        async let waited = resources.value(at: url)
        while resources.waiters(for: url) < 6 { await Task.yield() }
        try await fixture.finish(await fixture.network.request(), "once")
        #expect(try await waited.text == "once")
        for watcher in watchers {
            _ = await watcher.wait()
            #expect(await watcher.heard() == ["once"])
        }
        #expect(fixture.network.exchanges.count == 1 && Piece.decodes(of: "once") == 1)
    }

    @Test func failuresReachAllAndTheNextRequestTriesAgain() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let (first, second) = (Watcher(), Watcher())
        #expect(resources.value(at: url, observer: first) == nil)
        #expect(resources.value(at: url, observer: second) == nil)
        await fixture.network.request().fail(NetworkError.cancelled(url: "-"))
        #expect(await first.wait() == ["-530"])
        #expect(await second.wait() == ["-530"])
        async let again = resources.value(at: url)
        await fixture.network.request(1).finish("recovered")
        #expect(try await again.text == "recovered")
    }

    @Test func bytesNobodyWaitsForAreStoredAndNotDecoded() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        var watcher: Watcher? = Watcher()
        weak let held = watcher
        #expect(resources.value(at: url, observer: watcher) == nil)
        let exchange = await fixture.network.request()
        watcher = nil
        #expect(held == nil)
        let text = "unseen \(UUID())"
        try await fixture.finish(exchange, text)
        #expect(Piece.decodes(of: text) == 0 && !exchange.isCancelled)
        #expect(resources.value(at: url, depth: .memory, observer: nil) == nil)
        #expect(await resources.depth(of: url) == .disk)
        #expect(try await resources.value(at: url, depth: .disk).text == text)
        #expect(fixture.network.exchanges.count == 1)
    }

    @Test func whoAsksWhenATransferThatWasLeftEndsGetsItsBytes() async throws {
        let fixture = try ResourceFixture()
        let (resources, network, url) = (fixture.resources, fixture.network, ResourceFixture.url())
        // What may not be stored is in the hands of the load alone.
        for round in 0..<100 {
            let (early, late) = (Watcher(), Watcher())
            let (text, count) = ("kept \(round)", network.exchanges.count)
            #expect(resources.value(at: url, observer: early) == nil)
            let exchange = await network.request(count)
            resources.cancel(url, observer: early)
            exchange.finish(text, levels: .none)
            if round % 2 == 1 { await exchange.isOver.wait() }
            #expect(resources.value(at: url, observer: late) == nil)
            while late.events.all.isEmpty {
                // It may have come too late, and asked anew.
                if network.exchanges.count > count + 1 { network.exchanges[count + 1].finish(text, levels: .none) }
                await Task.yield()
            }
            await MainActor.run {}
            #expect(late.events.all == [text] && early.events.all.isEmpty)
            await fixture.settle()
        }
    }

    @Test func withoutAnObserverMemoryIsWarmedAndNobodyCanCancel() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let watcher = Watcher()
        #expect(resources.value(at: url, observer: nil) == nil)
        #expect(resources.value(at: url, observer: nil) == nil)
        #expect(resources.value(at: url, observer: watcher) == nil)
        let exchange = await fixture.network.request()
        #expect(resources.waiters(for: url) == 2)
        resources.cancel(url, observer: watcher, policy: .unconditional)
        #expect(!exchange.isCancelled && resources.waiters(for: url) == 1)
        try await fixture.finish(exchange, "warm")
        #expect(resources.value(at: url, depth: .memory, observer: nil)?.text == "warm")
        await MainActor.run {}
        #expect(watcher.events.all.isEmpty)
    }

    @Test func deeperRequestsLetAShallowOneGoFurther() async throws {
        let held = HeldExecutor()
        let fixture = try ResourceFixture { $0.executor = held.executor }
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let (shallow, deep) = (Watcher(), Watcher())
        #expect(resources.value(at: url, depth: .disk, observer: shallow) == nil)
        #expect(resources.value(at: url, depth: .source, observer: deep) == nil)
        #expect(resources.runningLoads == 1 && resources.waiters(for: url) == 2)
        held.release()
        // The one who would go no further than the disk is told at once.
        #expect(await shallow.wait() == ["-100"])
        await fixture.network.request().finish("deep")
        #expect(await deep.wait() == ["deep"])
        #expect(await shallow.heard() == ["-100"])
    }

    @Test func shallowRequestsShareWhatIsOnItsWay() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let (deep, shallow) = (Watcher(), Watcher())
        #expect(resources.value(at: url, observer: deep) == nil)
        let exchange = await fixture.network.request()
        #expect(resources.value(at: url, depth: .disk, observer: shallow) == nil)
        exchange.finish("shared")
        #expect(await shallow.wait() == ["shared"])
        #expect(await deep.wait() == ["shared"])
    }

    @Test func formatsShareOneTransfer() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        fixture.cache.register(CacheFormat("loud") { Piece($0.text.uppercased()) })
        async let plain = resources.value(at: url)
        async let loud = resources.value(at: url, format: "loud")
        let exchange = await fixture.network.request()
        while fixture.cache.sourceWaiters(for: resources.key(for: url)) < 2 { await Task.yield() }
        exchange.finish("both")
        #expect(try await plain.text == "both")
        #expect(try await loud.text == "BOTH")
        #expect(fixture.network.exchanges.count == 1)
    }

    @Test func aLoadIsAsUrgentAsTheMostUrgentWhoWait() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let (first, second) = (Watcher(), Watcher())
        #expect(resources.value(at: url, priority: .low, observer: first) == nil)
        let exchange = await fixture.network.request()
        #expect(resources.loadPriority(of: url) == .low)
        #expect(resources.value(at: url, priority: .veryHigh, observer: second) == nil)
        #expect(resources.loadPriority(of: url) == .veryHigh)
        #expect(fixture.cache.loadPriority(of: resources.key(for: url)) == .veryHigh)
        resources.cancel(url, observer: second)
        #expect(resources.loadPriority(of: url) == .low)
        exchange.finish("urgent")
        #expect(await first.wait() == ["urgent"])
    }
}
