import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineNetwork

/// Values that are loaded when they are first asked for.
struct LazyValueTests {
    @Test func nothingIsLoadedBeforeItIsAskedFor() async throws {
        let fixture = try ResourceFixture()
        let provider = try #require(fixture.resources.lazyValue(for: ResourceFixture.url()))
        #expect(fixture.network.exchanges.isEmpty && !provider.isLoaded)
        async let first = provider.value
        async let second = provider.value
        let answered = Recorder<String>()
        await fixture.network.request().finish("asked")
        #expect(try await (first.text, second.text) == ("asked", "asked"))
        await MainActor.run {
            provider.load { outcome in answered.add((try? outcome.get())?.text ?? "-") }
            // A loaded value is given before the call returns.
            #expect(answered.all == ["asked"])
        }
        #expect( provider.isLoaded && fixture.network.exchanges.count == 1)
    }

    @Test func memoryAnswersAtOnce() async throws {
        let fixture = try ResourceFixture()
        let url = ResourceFixture.url()
        fixture.cache[fixture.resources.key(for: url)] = Piece("here")
        let provider = try #require(fixture.resources.lazyValue(for: url))
        #expect(try await provider.value.text == "here")
        #expect(fixture.network.exchanges.isEmpty)
    }

    @Test func failuresCarryTheirErrorAndTheNextToAskTriesAgain() async throws {
        let fixture = try ResourceFixture()
        let provider = try #require(fixture.resources.lazyValue(for: ResourceFixture.url()))
        let failure = Recorder<Int>(), told = Gate()
        provider.load { outcome in
            if case .failure(let error) = outcome { failure.add(error.code) }
            told.open()
        }
        await fixture.network.request(0).fail(NetworkError.cancelled(url: "-"))
        await told.wait()
        #expect(failure.all == [-530] && !provider.isLoaded)
        async let again = provider.value
        await fixture.network.request(1).finish("recovered")
        #expect(try await again.text == "recovered")
    }

    @Test func theLoadEndsWithTheObjectAndNotBefore() async throws {
        let fixture = try ResourceFixture()
        let url = ResourceFixture.url()
        let told = Gate(), text = Recorder<String>()
        // Whoever waits holds it.
        fixture.resources.lazyValue(for: url)?.load { outcome in
            text.add((try? outcome.get())?.text ?? "-")
            told.open()
        }
        await fixture.network.request(0).finish("held")
        await told.wait()
        #expect(text.all == ["held"])
        let other = ResourceFixture.url("other")
        var provider = fixture.resources.lazyValue(for: other)
        let waiting = Task { [provider] in try await provider?.value.text }
        let exchange = await fixture.network.request(1)
        waiting.cancel()
        _ = await waiting.result
        #expect(!exchange.isCancelled && provider != nil)
        provider = nil
        await exchange.isOver.wait()
        #expect(exchange.isCancelled)
    }
}
