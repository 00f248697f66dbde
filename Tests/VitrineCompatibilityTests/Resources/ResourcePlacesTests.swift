import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineNetwork

/// Where resources are, go and stay: special URLs, depth queries, removal, damage.
struct ResourcePlacesTests {
    /// A transport for a scheme of the test's own.
    private struct TaggedResources: HTTPTransport {
        let asked: Counter

        func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
            asked.add(1)
            return HTTPResponse(
                head: HTTPResponseHead(status: 200, headers: [:], url: request.url),
                body: ResponseBody(Array("tagged".utf8)))
        }
    }

    /// A transport that no environment leads astray.
    private static var transport: CurlLoader {
        var configuration = CurlLoader.Configuration()
        configuration.proxy = .none
        return CurlLoader(configuration)
    }

    /// Resources as programs have them: over a loader.
    private func networked(
        _ directory: TemporaryDirectory, _ register: (NetworkLoader) -> Void = { _ in }
    ) -> ObservedCache<Piece> {
        var configuration = CacheConfiguration(root: directory.path)
        configuration.memoryPressure = MemoryPressure()
        let loader = NetworkLoader(Self.transport)
        register(loader)
        return ObservedCache(
            ValueCache(name: "test", configuration: configuration), options: FetchOptions(loader: loader))
    }

    @Test func filesStayInPlace() async throws {
        let directory = try TemporaryDirectory()
        let resources = networked(directory)
        let text = "a file \(UUID())"
        try directory.write(text, to: "picture")
        let url = URL(filePath: directory.file("picture"))
        let before = try FileManager.default.attributesOfItem(atPath: directory.file("picture"))
        #expect(await resources.depth(of: url) == .disk)
        #expect(await resources.depth(of: URL(filePath: directory.file("none"))) == .source)
        let watcher = Watcher()
        #expect(resources.value(at: url, depth: .disk, observer: watcher) == nil)
        #expect(await watcher.wait() == [text])
        #expect(await resources.depth(of: url) == .memory)
        // Never copied, and never removed.
        #expect(try await resources.cache.size == .zero)
        await resources.cache.removeAll(forKey: resources.key(for: url))
        #expect(await resources.depth(of: url) == .disk)
        #expect(directory.read("picture") == text)
        let after = try FileManager.default.attributesOfItem(atPath: directory.file("picture"))
        #expect(before[.modificationDate] as? Date == after[.modificationDate] as? Date)
        // A file that is missing is a failure like any other.
        let other = Watcher()
        #expect(resources.value(at: URL(filePath: directory.file("none")), observer: other) == nil)
        #expect(await other.wait().count == 1)
    }

    @Test func filesWhoseNamesAreNotUTF8AreFound() async throws {
        let directory = try TemporaryDirectory()
        let resources = networked(directory)
        let name = directory.path + "/" + PathText.text(of: [0x61, 0xFF])
        try AtomicFile.write(Array("bytes".utf8), to: name)
        let url = try #require(URL(string: "file://\(directory.path)/a%FF"))
        #expect(await resources.depth(of: url) == .disk)
        #expect(await resources.depth(of: try #require(URL(string: "file://\(directory.path)/a%FE"))) == .source)
    }

    @Test func filesNobodyWaitsForAreNotCopiedEither() async throws {
        let directory = try TemporaryDirectory()
        let resources = networked(directory)
        try directory.write("a file", to: "picture")
        let url = URL(filePath: directory.file("picture"))
        for _ in 0..<20 {
            let watcher = Watcher()
            _ = resources.value(at: url, observer: watcher)
            resources.cancel(url, observer: watcher)
            await resources.cache.removeAll(forKey: resources.key(for: url))
        }
        while resources.runningLoads > 0 { await Task.yield() }
        try await resources.cache.flush()
        #expect(try await resources.cache.size == .zero)
    }

    @Test func inlineDataIsAtHand() async throws {
        let directory = try TemporaryDirectory()
        let resources = networked(directory)
        let url = try #require(URL(string: "data:text/plain,inline%20text"))
        #expect(await resources.depth(of: url) == .disk)
        #expect(try await resources.value(at: url, depth: .disk).text == "inline text")
        #expect(try await resources.cache.size == .zero)
    }

    @Test func otherSchemesAreAsFarAwayAsTheNetwork() async throws {
        let directory = try TemporaryDirectory()
        let asked = Counter()
        let resources = networked(directory) { loader in
            loader.register(TaggedResources(asked: asked), for: "odr")
        }
        let url = try #require(URL(string: "odr://tag/name"))
        #expect(await resources.depth(of: url) == .source)
        let watcher = Watcher()
        #expect(resources.value(at: url, depth: .disk, observer: watcher) == nil)
        #expect(await watcher.wait() == ["-100"])
        #expect(asked.value == 0)
        #expect(try await resources.value(at: url).text == "tagged")
        #expect(await resources.depth(of: url) == .memory)
        await resources.cache.removeAll(forKey: resources.key(for: url))
        #expect(await resources.depth(of: url) == .source)
    }

    // MARK: Depth and removal

    @Test func depthsAreThoseOfTheNearestPlace() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        #expect(await resources.depth(of: url) == .source)
        async let value = resources.value(at: url)
        try await fixture.finish(await fixture.network.request(), "placed")
        // What is alive is in memory.
        let held = try await value
        #expect(await resources.depth(of: url) == .memory)
        try await resources.cache.removeAll(levels: .memory)
        #expect(await resources.depth(of: url) == .disk)
        await resources.cache.removeAll(forKey: resources.key(for: url))
        #expect(await resources.depth(of: url) == .source)
        #expect(held.text == "placed")
    }

    @Test func whatIsRemovedWhileItLoadsIsNotKept() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let watcher = Watcher()
        #expect(resources.value(at: url, observer: watcher) == nil)
        let exchange = await fixture.network.request()
        await resources.cache.removeAll(forKey: resources.key(for: url))
        try await fixture.finish(exchange, "removed")
        #expect(await watcher.wait() == ["removed"])
        #expect(await resources.depth(of: url) == .source)
    }

    @Test func auditsAndListsAreThoseOfTheCache() async throws {
        let fixture = try ResourceFixture()
        let resources = fixture.resources
        let urls = (0..<4).map { ResourceFixture.url("\($0)") }
        for (index, url) in urls.enumerated() {
            try await fixture.cache.set(Piece("\(index)"), forKey: resources.key(for: url))
        }
        try await fixture.cache.flush()
        let list = RetainSet(of: resources.cache)
        list.preserve(resources.key(for: urls[1]))
        list.preserve(resources.key(for: urls[2]))
        let report = try await list.commit(sparesMemory: false)
        #expect(report.removed == 2)
        let kept = resources.key(for: urls[2])
        try await resources.cache.audit(.keepingOnly([kept]), sparesMemory: false)
        try await resources.cache.removeAll(levels: .memory)
        for (index, url) in urls.enumerated() {
            #expect(await resources.depth(of: url) == (index == 2 ? .disk : .source))
        }
    }

    // MARK: What went wrong in the library this follows

    @Test func bytesThatAreNoValuePoisonNothing() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        let watcher = Watcher()
        #expect(resources.value(at: url, observer: watcher) == nil)
        try await fixture.finish(await fixture.network.request(0), "damaged by an error page")
        #expect(await watcher.wait() == ["-500"])
        #expect(await resources.depth(of: url) == .source)
        // Nor do those that were stored because nobody was there to decode them.
        let gone = Watcher()
        #expect(resources.value(at: url, observer: gone) == nil)
        let exchange = await fixture.network.request(1)
        resources.cancel(url, observer: gone)
        try await fixture.finish(exchange, "damaged while nobody looked")
        async let again = resources.value(at: url)
        await fixture.network.request(2).finish("whole")
        #expect(try await again.text == "whole")
    }

    @Test func cachesWhoseDirectoryIsDeletedGoOn() async throws {
        let fixture = try ResourceFixture()
        let (resources, url) = (fixture.resources, ResourceFixture.url())
        async let first = resources.value(at: url)
        try await fixture.finish(await fixture.network.request(0), "first")
        #expect(try await first.text == "first")
        try FileManager.default.removeItem(atPath: fixture.cache.directory)
        let other = ResourceFixture.url("other")
        async let second = resources.value(at: other)
        try await fixture.finish(await fixture.network.request(1), "second")
        #expect(try await second.text == "second")
        try await resources.cache.removeAll(levels: .memory)
        #expect(await resources.depth(of: other) == .disk)
    }

    @Test func cachesAreIndependentOfEachOther() async throws {
        let (one, other) = (try ResourceFixture(), try ResourceFixture())
        let url = ResourceFixture.url()
        async let value = one.resources.value(at: url)
        try await one.finish(await one.network.request(), "mine")
        #expect(try await value.text == "mine")
        #expect(await other.resources.depth(of: url) == .source)
        try await other.resources.cache.removeAll()
        #expect(await one.resources.depth(of: url) == .memory)
    }

    // MARK: Over HTTP

    @Test(arguments: CancellationPolicy.allCases)
    func policiesReachTransfersOverHTTP(_ policy: CancellationPolicy) async throws {
        let (mayAnswer, maySend) = (LoopbackServer.Barrier(), LoopbackServer.Barrier())
        defer {
            mayAnswer.open()
            maySend.open()
        }
        let server = try LoopbackServer { _ in
            [
                .wait(mayAnswer), .text("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n\r\n"),
                .wait(maySend), .text("0123456789"),
            ]
        }
        let directory = try TemporaryDirectory()
        let resources = networked(directory)
        let url = server.url("/slow")
        let watcher = Watcher()
        #expect(resources.value(at: url, observer: watcher) == nil)
        while server.requests.isEmpty { await Task.yield() }
        let goesOn = ResourceCancellationTests.goesOn(policy, .answered)
        if policy != .processing {
            mayAnswer.open()
            while resources.transfer(of: url)?.isAnswered == false { await Task.yield() }
        }
        resources.cancel(url, observer: watcher, policy: policy)
        #expect(resources.runningLoads == (goesOn ? 1 : 0))
        mayAnswer.open()
        maySend.open()
        while resources.runningLoads > 0 { await Task.yield() }
        try await resources.cache.flush()
        #expect(await resources.depth(of: url) == (goesOn ? .disk : .source))
        #expect(try await resources.value(at: url).text == "0123456789")
        await MainActor.run {}
        #expect(watcher.events.all.isEmpty)
    }
}
