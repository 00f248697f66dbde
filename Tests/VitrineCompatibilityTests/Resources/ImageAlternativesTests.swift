import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineNetwork

/// Lists of URLs, best first.
struct ProgressiveListTests {
    private let urls = ["best", "middle", "worst"].map { ResourceFixture.url($0) }

    private func store(_ fixture: ResourceFixture, _ index: Int, _ text: String) async throws {
        try await fixture.cache.set(bytes: Array(text.utf8), forKey: fixture.resources.key(for: urls[index]))
        try await fixture.cache.flush()
        fixture.cache.clearMemory()
    }

    /// Waits until a list shows a text.
    private func wait(_ list: ImageAlternatives<Piece>, for text: String) async {
        while list.shown?.value.text != text { await Task.yield() }
    }

    @Test func aNewListShowsNothing() throws {
        let fixture = try ResourceFixture()
        let list = ImageAlternatives(fixture.resources)
        #expect(list.shown == nil && list.urls.isEmpty && list.isSettled && list.failure == nil)
    }

    @Test func theBestComesFromTheNetworkAndOthersFromDisk() async throws {
        let fixture = try ResourceFixture()
        try await store(fixture, 2, "worst")
        let list = ImageAlternatives(fixture.resources)
        list.show(urls + [urls[0]])
        #expect(list.urls == urls)
        await wait(list, for: "worst")
        #expect(list.shown?.index == 2 && list.shown?.isBest == false && !list.isSettled)
        let exchange = await fixture.network.request()
        #expect(exchange.url == urls[0])
        exchange.finish("best")
        await wait(list, for: "best")
        #expect(list.shown?.isBest == true && list.isSettled)
        // The one in the middle was looked for on disk only.
        #expect(fixture.network.exchanges.count == 1)
    }

    @Test func nothingWorseThanWhatIsShownIsLoaded() async throws {
        let fixture = try ResourceFixture()
        fixture.cache[fixture.resources.key(for: urls[1])] = Piece("middle")
        let list = ImageAlternatives(fixture.resources, secondaryDepth: .source)
        list.show(urls)
        // What is in memory is there on return.
        #expect(list.shown?.value.text == "middle" && list.shown?.index == 1)
        let exchange = await fixture.network.request()
        #expect(exchange.url == urls[0] && fixture.resources.waiters(for: urls[2]) == 0)
        exchange.finish("best")
        await wait(list, for: "best")
        #expect(fixture.network.exchanges.count == 1)
    }

    @Test func aBetterOneCancelsTheWorse() async throws {
        let fixture = try ResourceFixture()
        let list = ImageAlternatives(fixture.resources, secondaryDepth: .source)
        list.show(urls)
        let worst = await fixture.network.request(for: urls[2])
        let best = await fixture.network.request(for: urls[0])
        await fixture.network.request(for: urls[1]).finish("middle")
        await wait(list, for: "middle")
        while fixture.resources.waiters(for: urls[2]) > 0 { await Task.yield() }
        // Its bytes are stored, as somebody began to load them.
        #expect(!worst.isCancelled && fixture.resources.waiters(for: urls[0]) == 1)
        worst.finish("worst \(urls[2])")
        best.finish("best")
        await wait(list, for: "best")
        await fixture.settle()
        #expect(Piece.decodes(of: "worst \(urls[2])") == 0)
    }

    @Test func whatIsShownStaysIfItIsStillListed() async throws {
        let fixture = try ResourceFixture()
        let list = ImageAlternatives(fixture.resources)
        fixture.cache[fixture.resources.key(for: urls[1])] = Piece("middle")
        list.show([urls[1]])
        #expect(list.shown?.isBest == true)
        try await fixture.resources.cache.removeAll(levels: .memory)
        list.show(urls)
        #expect(list.shown?.value.text == "middle" && list.shown?.index == 1 && !list.isSettled)
        list.show([urls[0], urls[2]])
        #expect(list.shown == nil)
    }

    @Test func whatIsNotListedAnyMoreIsCancelled() async throws {
        let fixture = try ResourceFixture()
        let list = ImageAlternatives(fixture.resources)
        list.show([urls[0]])
        let exchange = await fixture.network.request()
        list.show([urls[1]])
        #expect(fixture.resources.waiters(for: urls[0]) == 0 && !exchange.isCancelled)
        exchange.finish("late")
        await fixture.network.request(1).finish("listed")
        await wait(list, for: "listed")
        list.show([])
        #expect(list.shown == nil && list.isSettled)
    }

    @Test func whatBecomesTheBestIsLookedForFurther() async throws {
        let held = HeldExecutor()
        let fixture = try ResourceFixture { $0.executor = held.executor }
        let list = ImageAlternatives(fixture.resources)
        list.show(urls)
        #expect(fixture.resources.waiters(for: urls[1]) == 1)
        list.show([urls[1]])
        held.release()
        await fixture.network.request(for: urls[1]).finish("promoted")
        await wait(list, for: "promoted")
        #expect(list.shown?.isBest == true)
    }

    @Test func cancellingKeepsWhatIsShown() async throws {
        let fixture = try ResourceFixture()
        let list = ImageAlternatives(fixture.resources)
        fixture.cache[fixture.resources.key(for: urls[2])] = Piece("worst")
        list.show(urls)
        let exchange = await fixture.network.request()
        list.cancel(.unconditional)
        await exchange.isOver.wait()
        #expect(exchange.isCancelled && list.shown?.value.text == "worst" && list.isSettled)
        list.show(urls)
        await fixture.network.request(1).finish("best")
        await wait(list, for: "best")
    }

    @Test func failuresAreKnownAndChangesAreTold() async throws {
        let fixture = try ResourceFixture()
        try await store(fixture, 2, "worst")
        let changes = Counter()
        let list = ImageAlternatives(fixture.resources) {
            MainActor.assertIsolated()
            changes.add(1)
        }
        list.show(urls)
        await wait(list, for: "worst")
        while changes.value == 0 { await Task.yield() }
        let before = changes.value
        await fixture.network.request().fail(NetworkError.cancelled(url: "-"))
        while !list.isSettled || changes.value == before { await Task.yield() }
        #expect(list.failure?.code == -530 && list.shown?.value.text == "worst")
    }

    @Test func loadsEndWithTheList() async throws {
        let fixture = try ResourceFixture()
        var list: ImageAlternatives<Piece>? = ImageAlternatives(fixture.resources)
        list?.show(urls)
        let exchange = await fixture.network.request()
        list = nil
        // A look at the disk that has just ended may have the last reference.
        while fixture.resources.waiters(for: urls[0]) > 0 { await Task.yield() }
        #expect(list == nil)
        try await fixture.finish(exchange, "unseen \(urls[0])")
        #expect(Piece.decodes(of: "unseen \(urls[0])") == 0)
    }

    // MARK: As a sequence

    @Test func sequencesEndWithTheBest() async throws {
        let fixture = try ResourceFixture()
        try await store(fixture, 1, "middle")
        var texts: [String] = []
        for try await step in fixture.resources.values(at: urls) {
            texts.append(step.value.text)
            if !step.isBest { await fixture.network.request().finish("best") }
        }
        #expect(texts == ["middle", "best"])
    }

    @Test func sequencesThrowWhyTheBestCouldNotBeHad() async throws {
        let fixture = try ResourceFixture()
        try await store(fixture, 1, "middle")
        var texts: [String] = []
        do {
            for try await step in fixture.resources.values(at: urls) {
                texts.append(step.value.text)
                await fixture.network.request().fail(NetworkError.cancelled(url: "-"))
            }
            Issue.record("did not throw")
        } catch {
            #expect(error.code == -530)
        }
        #expect(texts == ["middle"])
        for try await _ in fixture.resources.values(at: []) { Issue.record("gave something") }
    }

    @Test func sequencesEndWhenTheirTaskIsCancelled() async throws {
        let fixture = try ResourceFixture()
        let task = Task {
            for try await _ in fixture.resources.values(at: urls) {}
        }
        _ = await fixture.network.request()
        task.cancel()
        do {
            try await task.value
            Issue.record("did not throw")
        } catch {
            #expect((error as? CacheError)?.code == -540)
        }
        #expect(fixture.resources.waiters(for: urls[0]) == 0)
    }
}
