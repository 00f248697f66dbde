import TestSupport
import Testing
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineNetwork

struct FetchTests {
    @Test func memoryHitHasSucceededOnReturn() async throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        cache["lake"] = "water"
        let told = Recorder<String>()
        let fetch = cache.fetch(forKey: "lake")
            .onSuccess(on: .immediate) { told.add($0) }
            .onFailure(on: .immediate) { told.add("\($0)") }
        #expect(told.all == ["water"])
        #expect(fetch.hasSucceeded && !fetch.hasFailed)
        #expect(try await fetch.value == "water")
    }

    @Test func diskHitIsToldLater() async throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake")
        cache.clearMemory()
        let told = Recorder<String>()
        let fetch = cache.fetch(forKey: "lake")
        fetch
            .onSuccess(on: .immediate) { told.add("first \($0)") }
            .onSuccess(on: .immediate) { told.add("second \($0)") }
        #expect(try await fetch.value == "water")
        await withCheckedContinuation { done in fetch.onSuccess(on: .immediate) { _ in done.resume() } }
        // In the order of subscription; the late one came last.
        #expect(told.all == ["first water", "second water"])
        #expect(cache["lake"] == "water")
    }

    @Test func missFailsWithNotFound() async throws {
        let fixture = try CacheFixture()
        let fetch = fixture.cache.fetch(forKey: "lake")
        #expect(await code { _ = try await fetch.value } == -100)
        #expect(fetch.hasFailed)
        let replayed = Recorder<Int>()
        fetch
            .onFailure(on: .immediate) { replayed.add($0.code) }
            .onFailure(on: .immediate) { replayed.add($0.code) }
        #expect(replayed.all == [-100, -100])
    }

    @Test func unregisteredFormatFailsWithinTheCall() async throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        let told = Recorder<Int>()
        cache.fetch(forKey: "lake", format: "unknown").onFailure(on: .immediate) { told.add($0.code) }
        cache.fetch(from: ValueFetcher(key: "lake") { "x" }, format: "unknown")
            .onFailure(on: .immediate) { told.add($0.code) }
        #expect(told.all == [-101, -101])
    }

    @Test func memoryDepthNeverCallsBackLater() async throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake")
        cache.clearMemory()
        let fetch = cache.fetch(forKey: "lake", depth: .memory)
        #expect(fetch.hasFailed)
        // Nothing was begun that could call later.
        #expect(cache.runningLoads == 0)
        #expect(try await cache.value(forKey: "lake", depth: .memory) == nil)
        #expect(cache.runningLoads == 0)
        #expect(try await cache.value(forKey: "lake") == "water")
    }

    @Test func valueNowOrOutcomeLater() async throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake")
        #expect(cache["lake"] == "water")
        #expect(try cache.fetch(forKey: "lake").outcome?.get() == "water")
        cache.clearMemory()
        #expect(cache["lake"] == nil)
        let later = await withCheckedContinuation { continuation in
            let fetch = cache.fetch(forKey: "lake").onEnd { continuation.resume(returning: try? $0.get()) }
            #expect(fetch.outcome == nil)
        }
        #expect(later == "water")
    }

    @Test func cancellingEndsTheFetchOnce() async throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        let started = Gate(), stopped = Gate()
        let fetch = cache.fetch(
            from: ValueFetcher(key: "lake") {
                started.open()
                await withTaskCancellationHandler { await stopped.wait() } onCancel: { stopped.open() }
                return "water"
            })
        let told = Recorder<Int>()
        fetch.onSuccess(on: .immediate) { _ in told.add(0) }.onFailure(on: .immediate) { told.add($0.code) }
        await started.wait()
        fetch.cancel()
        fetch.cancel()
        await stopped.wait()
        #expect(told.all == [-540])
        #expect(await code { _ = try await fetch.value } == -540)
        fetch.finish(.success("too late"))
        #expect(told.all == [-540])
        #expect(fetch.hasFailed)
    }

    @Test func oneAwaitingTaskLeavesAlone() async throws {
        let fixture = try CacheFixture()
        let gate = Gate(), started = Gate()
        let fetch = fixture.cache.fetch(
            from: ValueFetcher(key: "lake") {
                started.open()
                await gate.wait()
                return "water"
            })
        await started.wait()
        let waiter = Task { await code { _ = try await fetch.value } }
        waiter.cancel()
        #expect(await waiter.value == -540)
        gate.open()
        #expect(try await fetch.value == "water")
    }

    @Test func priorityChangesReachTheLoad() async throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        let gate = Gate(), started = Gate()
        let seen = Recorder<RequestPriority>()
        let fetcher = ValueFetcher<String>(key: "lake") { context in
            context.prioritySource.observe { seen.add($0) }
            started.open()
            await gate.wait()
            return FetchResult(value: "water")
        }
        let fetch = cache.fetch(from: fetcher, priority: .low)
        await started.wait()
        #expect(fetch.priority == .low)
        fetch.priority = .veryHigh
        while cache.loadPriority(of: "lake") != .veryHigh || seen.all.count < 2 { await Task.yield() }
        gate.open()
        #expect(try await fetch.value == "water")
        #expect(seen.all == [.low, .veryHigh])
    }

    #if os(Linux)
    @Test func urlsAreFetchedWithTheirProgress() async throws {
        let server = try LoopbackServer { request in
            guard request.target != "/none" else { return [.reply(404, body: Array("nothing".utf8))] }
            return [.reply(200, ["Cache-Control: max-age=60"], body: Array(request.target.utf8))]
        }
        let fixture = try CacheFixture()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        var curl = CurlLoader.Configuration()
        curl.proxy = .none
        var loading = NetworkLoader.Configuration()
        loading.retries.limit = 0
        let options = FetchOptions(loader: NetworkLoader(CurlLoader(curl), loading))
        #expect(try await cache.fetch(from: server.url("/a"), options: options).value == "/a")
        #expect(try await cache.fetch(from: server.url("/b"), format: "loud", options: options).value == "/B")
        let told = Recorder<String>()
        cache.fetch(from: server.url("/a"), options: options).onSuccess(on: .immediate) { told.add($0) }
        // A memory hit has been told on return.
        #expect(told.all == ["/a"])
        let progress = TransferProgress(), missing = TransferProgress()
        _ = try await cache.fetch(from: server.url("/a"), options: options, progress: progress).value
        for await _ in progress {}
        #expect(progress.current.isComplete)
        let failing = cache.fetch(from: server.url("/none"), options: options, progress: missing)
        #expect(await code { _ = try await failing.value } == -530)
        for await _ in missing {}
        #expect(missing.current.isFinished && !missing.current.isComplete)
    }
    #endif

    @MainActor private final class Cell {
        private(set) var shown: [String] = []
        func show(_ text: String) { shown.append(text) }
    }

    @Test func handlersRunOnTheMainActorAndMayUseItsObjects() async throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake")
        cache.clearMemory()
        let cell = Cell()
        await withCheckedContinuation { done in
            cache.fetch(forKey: "lake").onSuccess { cell.show($0) }.onEnd { _ in done.resume() }
        }
        await withCheckedContinuation { done in
            cache.fetch(forKey: "hill").onFailure { cell.show("\($0.code)") }.onEnd { _ in done.resume() }
        }
        #expect(await cell.shown == ["water", "-100"])
    }

    @Test @MainActor func handlersOnTheMainActorRunWithinTheCall() throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        cache["lake"] = "water"
        let cell = Cell()
        cache.fetch(forKey: "lake").onSuccess { cell.show($0) }
        #expect(cell.shown == ["water"])
    }

    /// However quickly the disk answers: the fetches have ended before the handlers are added.
    @Test @MainActor func whatWasNotInMemoryIsNeverToldWithinTheCall() async throws {
        let fixture = try CacheFixture()
        let cache = fixture.cache
        try await cache.set("water", forKey: "lake")
        cache.clearMemory()
        let hit = cache.fetch(forKey: "lake"), miss = cache.fetch(forKey: "hill")
        _ = try await hit.value
        _ = try? await miss.value
        #expect(hit.hasSucceeded && miss.hasFailed)
        let cell = Cell()
        await withCheckedContinuation { done in
            hit.onSuccess { cell.show($0) }.onSuccess { cell.show("again \($0)") }
            miss.onFailure { cell.show("\($0.code)") }.onEnd { _ in done.resume() }
            #expect(cell.shown.isEmpty)
        }
        #expect(Set(cell.shown) == ["water", "again water", "-100"])
        // It is in memory now.
        cache.fetch(forKey: "lake").onSuccess { cell.show("within \($0)") }
        #expect(cell.shown.last == "within water")
    }

    @Test func executorDeliveryKeepsTheOrder() async throws {
        let executor = BlockingExecutor(threads: 4, name: "delivery")
        let fixture = try CacheFixture()
        fixture.cache["lake"] = "water"
        let told = Recorder<Int>()
        let fetch = fixture.cache.fetch(forKey: "lake")
        for number in 0..<100 { fetch.onSuccess(on: .on(executor)) { _ in told.add(number) } }
        await withCheckedContinuation { done in fetch.onEnd(on: .on(executor)) { _ in done.resume() } }
        #expect(told.all == Array(0..<100))
    }
}
