import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineNetwork

/// Leaving.
struct ResourceCancellationTests {
    enum Phase: CaseIterable { case asked, answered, receiving }

    /// Whether a transfer that the last one leaves goes on.
    static func goesOn(_ policy: CancellationPolicy, _ phase: Phase) -> Bool {
        switch policy {
        case .processing: true
        case .beforeResponse: phase != .asked
        case .beforeBody: phase == .receiving
        case .unconditional: false
        }
    }

    @Test(arguments: CancellationPolicy.allCases, Phase.allCases)
    func policiesSayWhatBecomesOfATransfer(_ policy: CancellationPolicy, _ phase: Phase) async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let watcher = Watcher()
        #expect(resources.value(at: url, observer: watcher) == nil)
        let exchange = await fixture.network.request()
        if phase == .answered { exchange.sendHead() }
        if phase == .receiving { exchange.sendBytes() }
        resources.cancel(url, observer: watcher, policy: policy)
        let goesOn = Self.goesOn(policy, phase)
        if !goesOn { await exchange.isOver.wait() }
        #expect(exchange.isCancelled != goesOn)
        #expect(resources.runningLoads == (goesOn ? 1 : 0))
        let text = "left \(UUID())"
        try await fixture.finish(exchange, text)
        // Stored, but neither decoded nor told.
        #expect(await resources.depth(of: url) == (goesOn ? .disk : .source))
        await MainActor.run {}
        #expect(Piece.decodes(of: text) == 0 && watcher.events.all.isEmpty)
    }

    @Test func onlyTheLastToLeaveEndsATransfer() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let (first, second, stranger) = (Watcher(), Watcher(), Watcher())
        #expect(resources.value(at: url, observer: first) == nil)
        #expect(resources.value(at: url, observer: second) == nil)
        let exchange = await fixture.network.request()
        resources.cancel(url, observer: stranger, policy: .unconditional)
        resources.cancel(url, observer: first, policy: .unconditional)
        #expect(!exchange.isCancelled)
        exchange.finish("stays")
        #expect(await second.wait() == ["stays"])
        await MainActor.run {}
        #expect(first.events.all.isEmpty && stranger.events.all.isEmpty)
    }

    @Test func thoseWhoHaveGoneDoNotCount() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        var gone: Watcher? = Watcher()
        let watcher = Watcher()
        #expect(resources.value(at: url, observer: gone) == nil)
        #expect(resources.value(at: url, observer: watcher) == nil)
        let exchange = await fixture.network.request()
        gone = nil
        resources.cancel(url, observer: watcher, policy: .unconditional)
        await exchange.isOver.wait()
        #expect(exchange.isCancelled && gone == nil)
    }

    @Test func observersMayCancelAsTheyGo() async throws {
        nonisolated final class Leaver: LoadObserver {
            let resources: ObservedCache<Piece>
            let url: URL
            init(_ resources: ObservedCache<Piece>, _ url: URL) {
                self.resources = resources
                self.url = url
            }
            deinit { resources.cancel(url, observer: self, policy: .unconditional) }
            func resourceDidLoad(_ value: Piece, from url: URL) { Issue.record("was told") }
        }
        let fixture = try ResourceFixture()
        let url = ResourceFixture.url()
        var leaver: Leaver? = Leaver(fixture.resources, url)
        #expect(fixture.resources.value(at: url, observer: leaver) == nil)
        let exchange = await fixture.network.request()
        leaver = nil
        await exchange.isOver.wait()
        #expect(exchange.isCancelled && leaver == nil)
    }

    @Test @MainActor func whoHasCancelledHearsNothingOfWhatIsOnItsWay() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let (leaver, stayer) = (Watcher(), Watcher())
        #expect(resources.value(at: url, observer: leaver) == nil)
        #expect(resources.value(at: url, observer: stayer) == nil)
        await fixture.network.request().finish("late")
        holdMainActor { resources.runningLoads == 0 }
        resources.cancel(url, observer: leaver)
        #expect(await stayer.wait() == ["late"])
        await MainActor.run {}
        #expect(leaver.events.all.isEmpty)
    }

    @Test func laterRequestsJoinATransferThatWasLeft() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let (first, second) = (Watcher(), Watcher())
        #expect(resources.value(at: url, observer: first) == nil)
        let exchange = await fixture.network.request()
        resources.cancel(url, observer: first, policy: .processing)
        #expect(resources.value(at: url, observer: second) == nil)
        try await fixture.finish(exchange, "joined")
        #expect(await second.wait() == ["joined"])
        await MainActor.run {}
        #expect(first.events.all.isEmpty)
        #expect(fixture.network.exchanges.count == 1)
    }

    @Test func laterRequestsAreNewAfterTheEndOfATransfer() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let watcher = Watcher()
        #expect(resources.value(at: url, observer: watcher) == nil)
        let old = await fixture.network.request(0)
        resources.cancel(url, observer: watcher, policy: .unconditional)
        #expect(resources.value(at: url, observer: watcher) == nil)
        let new = await fixture.network.request(1)
        // The end of the old one says nothing to those who wait for the new one.
        await old.isOver.wait()
        await MainActor.run {}
        #expect(old.isCancelled && watcher.events.all.isEmpty && resources.waiters(for: url) == 1)
        new.finish("new")
        #expect(await watcher.wait() == ["new"])
    }

    @Test func bytesThatAreThereAreStoredWhateverThePolicy() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let started = Gate(), ended = Gate()
        fixture.cache.register(
            CacheFormat("slow") { piece in
                started.open()
                await withTaskCancellationHandler { await ended.wait() } onCancel: { ended.open() }
                try Task.checkCancellation()
                return piece
            })
        let watcher = Watcher()
        #expect(resources.value(at: url, format: "slow", observer: watcher) == nil)
        await fixture.network.request().finish("whole")
        await started.wait()
        resources.cancel(url, observer: watcher, policy: .unconditional)
        // Making the value of it is ended.
        await ended.wait()
        await fixture.settle()
        try await fixture.cache.flush()
        await MainActor.run {}
        #expect(await resources.depth(of: url) == .disk && watcher.events.all.isEmpty)
        #expect(fixture.network.exchanges.count == 1)
    }

    @Test func whatHasNotBegunIsNotBegun() async throws {
        let held = HeldExecutor()
        let fixture = try ResourceFixture { $0.executor = held.executor }
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let watcher = Watcher()
        for depth in [CacheLevel.disk, .source] {
            #expect(resources.value(at: url, depth: depth, observer: watcher) == nil)
            resources.cancel(url, observer: watcher, policy: .processing)
            #expect(resources.runningLoads == 0)
        }
        held.release()
        while fixture.cache.runningLoads > 0 { await Task.yield() }
        await MainActor.run {}
        #expect(fixture.network.exchanges.isEmpty && watcher.events.all.isEmpty)
    }

    @Test func oneFormatCanBeLeftAlone() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        fixture.cache.register(CacheFormat("loud") { Piece($0.text.uppercased()) })
        let watcher = Watcher()
        #expect(resources.value(at: url, observer: watcher) == nil)
        #expect(resources.value(at: url, format: "loud", observer: watcher) == nil)
        let exchange = await fixture.network.request()
        while fixture.cache.sourceWaiters(for: resources.key(for: url)) < 2 { await Task.yield() }
        resources.cancel(url, format: .original, observer: watcher, policy: .unconditional)
        #expect(!exchange.isCancelled)
        try await fixture.finish(exchange, "one")
        #expect(await watcher.wait() == ["ONE"])
    }

    @Test func tasksLeaveWhenTheyAreCancelled() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let task = Task { try await resources.value(at: url).text }
        let other = Task { try await resources.value(at: url).text }
        let exchange = await fixture.network.request()
        while resources.waiters(for: url) < 2 { await Task.yield() }
        task.cancel()
        #expect(await code(of: task) == -540)
        #expect(!exchange.isCancelled)
        other.cancel()
        #expect(await code(of: other) == -540)
        await exchange.isOver.wait()
        #expect(exchange.isCancelled && resources.runningLoads == 0)
        // One that is cancelled before it begins asks for nothing.
        let late = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await resources.value(at: url).text
        }
        late.cancel()
        #expect(await code(of: late) == -540)
        #expect(resources.runningLoads == 0 && fixture.network.exchanges.count == 1)
    }

    private func code(of task: Task<String, any Error>) async -> Int? {
        do { _ = try await task.value } catch { return (error as? CacheError)?.code }
        return nil
    }

    @Test func manyWhoComeAndGoAtOnceAgree() async throws {
        let fixture = try ResourceFixture()
        let resources = fixture.resources
        let urls = (0..<8).map { ResourceFixture.url("\($0)") }
        let network = fixture.network
        let isOver = Locked(false)
        let server = Task {
            var served = 0
            while !isOver.withLock({ $0 }) {
                let exchanges = network.exchanges
                while served < exchanges.count {
                    exchanges[served].finish(exchanges[served].url.lastPathComponent)
                    served += 1
                }
                await Task.yield()
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for seed in 0..<8 {
                group.addTask {
                    for step in 0..<150 {
                        let url = urls[(seed * 3 + step * 5) % urls.count]
                        let watcher = Watcher()
                        let policy = CancellationPolicy.allCases[(seed + step) % 4]
                        switch (seed + step) % 5 {
                        case 0: _ = resources.value(at: url, observer: watcher)
                        case 1:
                            _ = resources.value(at: url, observer: watcher)
                            resources.cancel(url, observer: watcher, policy: policy)
                        case 2: await resources.cache.removeAll(forKey: resources.key(for: url))
                        case 3:
                            if resources.value(at: url, depth: .source, observer: watcher) == nil {
                                #expect(await watcher.wait() == [url.lastPathComponent])
                            }
                        default:
                            let value = try? await resources.value(at: url)
                            #expect(value?.text == url.lastPathComponent)
                        }
                    }
                }
            }
        }
        await fixture.settle()
        isOver.withLock { $0 = true }
        await server.value
        while fixture.cache.runningLoads > 0 { await Task.yield() }
    }
}
