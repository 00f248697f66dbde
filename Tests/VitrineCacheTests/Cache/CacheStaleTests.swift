import TestSupport
import Testing
import VitrineCache
import VitrineCore

/// Stale values that sources allow, and what is done behind them.
struct CacheStaleTests {
    /// Has a text whose version it knows by the validator, and allows the stored one to be given while it is
    /// asked again.
    private final class Page: Fetcher {
        typealias Value = String
        private let text: Recorder<String> = Recorder()
        private let gate: Gate?
        private let refreshing: Bool
        let asked = Recorder<String>()

        init(_ text: String, refreshing: Bool = true, gate: Gate? = nil) {
            self.refreshing = refreshing
            self.gate = gate
            self.text.add(text)
        }

        func change(_ text: String) { self.text.add(text) }
        var key: CacheKey { "page" }
        var revalidates: Bool { true }

        func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
            let reason = context.isBackground ? "background" : context.isRefresh ? "refresh" : "load"
            asked.add(reason + (context.stored == nil ? "" : " stored"))
            if context.stored != nil, !context.isRefresh { return .stale(refreshing: refreshing) }
            await gate?.wait()
            let text = self.text.all.last ?? ""
            if context.stored?.validator == Array(text.utf8) { return .unchanged(timeToLive: .seconds(60)) }
            return FetchResult(bytes: Array(text.utf8), timeToLive: .seconds(60), validator: Array(text.utf8))
        }
    }

    private func waitForRefreshes<Value>(_ cache: ValueCache<Value>) async {
        while cache.runningRefreshes > 0 { await Task.yield() }
    }

    @Test func staleValuesAreGivenAndRefreshedBehind() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let gate = Gate()
        gate.open()
        let page = Page("one", gate: gate)
        #expect(try await cache.value(from: page) == "one")
        fixture.clock.advance(by: .seconds(61))
        page.change("two")
        #expect(try await cache.value(from: page) == "one")
        await waitForRefreshes(cache)
        #expect(try await cache.value(from: page) == "two")
        #expect(page.asked.all == ["load", "load stored", "background stored"])
        cache.clearMemory()
        #expect(try await cache.value(from: page) == "two")
    }

    @Test func oneRefreshRunsBehindAllWhoGetTheStaleValue() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let gate = Gate()
        let page = Page("one", gate: gate)
        gate.open()
        _ = try await cache.value(from: page)
        let slow = Gate()
        let next = Page("two", gate: slow)
        cache.register(CacheFormat("loud") { $0.uppercased() })
        fixture.clock.advance(by: .seconds(61))
        for _ in 0..<3 { #expect(try await cache.value(from: next) == "one") }
        // Made from the stale original, and not stored.
        #expect(try await cache.value(from: next, format: "loud") == "ONE")
        #expect(cache["page", "loud"] == nil)
        slow.open()
        await waitForRefreshes(cache)
        #expect(next.asked.all.filter { $0.hasPrefix("background") }.count == 1)
        #expect(try await cache.value(from: next, format: "loud") == "TWO")
    }

    @Test func staleValuesStayStaleIfTheSourceSaysSo() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let page = Page("one", refreshing: false)
        _ = try await cache.value(from: page)
        fixture.clock.advance(by: .seconds(61))
        for _ in 0..<2 { #expect(try await cache.value(from: page) == "one") }
        #expect(page.asked.all == ["load", "load stored", "load stored"])
        #expect(cache["page"] == nil)
        // A refresh gets the source's own answer.
        page.change("two")
        #expect(try await cache.refresh(from: page) == "two")
    }

    @Test func whoDoesNotReadTheDiskGetsTheSourcesAnswer() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let page = Page("one")
        _ = try await cache.value(from: page)
        fixture.clock.advance(by: .seconds(61))
        page.change("two")
        #expect(try await cache.value(from: page, levels: .writeOnly) == "two")
        #expect(try await cache.value(from: page) == "two")
    }

    @Test func prefetchesBringWhatIsFresh() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let page = Page("one")
        try await cache.prefetch(from: page)
        fixture.clock.advance(by: .seconds(61))
        page.change("two")
        try await cache.prefetch(from: page)
        #expect(try await cache.bytes(forKey: "page") == Array("two".utf8))
        #expect(page.asked.all.last == "background stored")
    }

    @Test func aStaleEntryThatIsNoValueIsAskedForAgain() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let bad = ValueFetcher<String>(key: "page") { _ in FetchResult(bytes: [0xFF], timeToLive: .seconds(60)) }
        try await cache.prefetch(from: bad)
        fixture.clock.advance(by: .seconds(61))
        #expect(try await cache.value(from: Page("one")) == "one")
        #expect(try await cache.bytes(forKey: "page") == Array("one".utf8))
    }

    @Test func aNewValueThatMayNotBeStoredOutdatesTheStoredOne() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        _ = try await cache.value(from: Page("one"))
        fixture.clock.advance(by: .seconds(61))
        #expect(try await cache.value(from: Secret()) == "secret")
        #expect(try await cache.info(forKey: "page") == nil)
    }

    private struct Secret: Fetcher {
        var key: CacheKey { "page" }
        var revalidates: Bool { true }
        func fetch(_ context: FetchContext) async throws -> FetchResult<String> { FetchResult(value: "secret", levels: .none) }
    }

    /// A source without validators sends everything again: what is the same is no new value.
    @Test func theSameBytesAreNoNewValue() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        let transforms = Counter()
        cache.register(
            CacheFormat("loud") { value in
                transforms.add(1)
                return value.uppercased()
            })
        let source = Plain()
        _ = try await cache.value(from: source, format: "loud")
        #expect(try await cache.refresh(from: source) == "text")
        #expect(try await cache.value(from: source, format: "loud") == "TEXT")
        #expect(transforms.value == 1)
        try await cache.flush()
        #expect(cache.disk()?.statistics.insertions == 1)
        #expect(try await cache.info(forKey: "page")?.validator == [2])
    }

    private final class Plain: Fetcher {
        typealias Value = String
        private let count = Counter()
        var key: CacheKey { "page" }
        var revalidates: Bool { true }
        func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
            FetchResult(bytes: Array("text".utf8), validator: [UInt8(count.add(1))])
        }
    }

    // MARK: Updates

    private func all<Value>(_ updates: some AsyncSequence<Value, CacheError>) async throws -> [Value] {
        try await updates.reduce(into: []) { $0.append($1) }
    }

    @Test func updatesGiveWhatIsStoredAndThenWhatIsNew() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        cache.register(CacheFormat("loud") { $0.uppercased() })
        let page = Page("one")
        #expect(try await all(cache.updates(from: page)) == ["one"])
        // Fresh: nobody is asked.
        #expect(try await all(cache.updates(from: page)) == ["one"])
        #expect(page.asked.all.count == 1)
        #expect(try await all(cache.updates(from: page, revalidatingFresh: true)) == ["one"])
        #expect(page.asked.all.last == "background stored")
        fixture.clock.advance(by: .seconds(61))
        // Unchanged: given once.
        #expect(try await all(cache.updates(from: page)) == ["one"])
        fixture.clock.advance(by: .seconds(61))
        page.change("two")
        cache.clearMemory()
        #expect(try await all(cache.updates(from: page, format: "loud")) == ["ONE", "TWO"])
        #expect(try await cache.value(from: page) == "two")
        #expect(await code { _ = try await all(cache.updates(from: page, format: "none")) } == -101)
    }

    @Test func updatesEndWithTheFailureAfterWhatIsStored() async throws {
        let fixture = try CacheFixture<String>()
        let cache = fixture.cache
        _ = try await cache.value(from: Page("one"))
        fixture.clock.advance(by: .seconds(61))
        let failing = ValueFetcher<String>(key: "page", load: { throw SourceFailure() })
        var updates = cache.updates(from: failing).makeAsyncIterator()
        #expect(try await updates.next() == "one")
        do {
            _ = try await updates.next(isolation: #isolation)
            Issue.record("did not throw")
        } catch {
            #expect(error.code == -530)
        }
        #expect(try await updates.next() == nil)
    }
}
