import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineNetwork

/// Under a policy that keeps private addresses out, nothing is given that a laxer one has stored.
struct PublicOnlyFetchTests {
    private let directory: TemporaryDirectory
    private let clock = ManualClock()
    private let cache: ValueCache<String>
    private let wall: WallClock

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = CacheConfiguration(root: directory.path)
        configuration.clock = .following(clock, from: .seconds(1_700_000_000))
        configuration.memoryPressure = MemoryPressure()
        wall = configuration.clock
        cache = ValueCache(name: "test", configuration: configuration)
        cache.register(CacheFormat("loud") { $0.uppercased() })
    }

    private func options(_ http: ScriptedLoader, _ policy: URLAccessPolicy) -> FetchOptions {
        var configuration = NetworkLoader.Configuration()
        configuration.policy = policy
        configuration.retries.limit = 0
        var options = FetchOptions(loader: NetworkLoader(http, configuration, wallClock: wall))
        options.clock = wall
        options.partialDirectory = directory.file("partial")
        return options
    }

    /// A network in which `inside.example` is private, and what it answers.
    private func network(_ reply: @escaping @Sendable () -> HTTPHeaders) -> ScriptedLoader {
        ScriptedLoader(addresses: { $0 == "inside.example" ? "10.0.0.7" : "93.184.216.34" }) {
            (request, _) throws(NetworkError) in
            answer(request, 200, reply(), request.url.host() ?? "")
        }
    }

    @Test(arguments: ["max-age=600", "max-age=1, stale-while-revalidate=600, stale-if-error=600", "max-age=1"])
    func whatWasStoredFromElsewhereIsNotGiven(_ control: String) async throws {
        let http = network { ["Cache-Control": control, "ETag": "\"1\"", "Content-Type": "text/plain"] }
        let inside = try #require(URL(string: "http://inside.example/a"))
        let outside = try #require(URL(string: "http://outside.example/a"))
        let lax = options(http, .userInitiated), strict = options(http, .publicOnly)
        for id in [nil, "film"] {
            #expect(try await cache.value(from: inside, id: id, options: lax) == "inside.example")
            #expect(try await cache.value(from: inside, id: id, format: "loud", options: lax) == "INSIDE.EXAMPLE")
            clock.advance(by: .seconds(2))
            // Neither from memory nor from disk, in no format, and not while it is asked for again.
            for format in [FormatName.original, "loud"] {
                let error = await networkFailure {
                    _ = try await cache.value(from: inside, id: id, format: format, options: strict)
                }
                guard case .refused(_, let reason) = error, reason.hasSuffix("is not public") else { Issue.record("\(String(describing: error))"); continue }
            }
            try await cache.flush()
            let again = ValueCache<String>(name: "test", configuration: cache.configuration)
            let error = await networkFailure { _ = try await again.value(from: inside, id: id, options: strict) }
            guard case .refused(_, let reason) = error, reason.hasSuffix("is not public") else { Issue.record("\(String(describing: error))"); continue }
            var updates = again.updates(from: NetworkFetcher(url: inside, id: id, options: strict))
                .makeAsyncIterator()
            #expect(await networkFailure { _ = try await updates.next() }?.code == -412)
        }
        // The same name for something that is public is loaded, not found.
        #expect(try await cache.value(from: outside, id: "film", options: strict) == "outside.example")
        #expect(try await cache.value(from: outside, id: "film", options: strict) == "outside.example")
        // And the other way round nothing changes.
        #expect(try await cache.value(from: inside, id: "film", options: lax) == "inside.example")
    }

    @Test func whatIsPublicIsStoredUnderTheStrictPolicyToo() async throws {
        let http = network { ["Cache-Control": "max-age=600"] }
        let outside = try #require(URL(string: "http://outside.example/a"))
        let strict = options(http, .publicOnly)
        for _ in 0..<3 {
            #expect(try await cache.value(from: outside, options: strict) == "outside.example")
        }
        #expect(http.requests.all.count == 1)
    }

    @Test func aLoadUnderALaxPolicyIsNotJoined() async throws {
        let strict = URLAccessPolicy.publicOnly
        var proxied = strict
        proxied.trustsProxy = true
        let http = network { [:] }
        let url = try #require(URL(string: "http://outside.example/a"))
        let keys = [URLAccessPolicy.userInitiated, strict, proxied].map { policy in
            NetworkFetcher<String>(url: url, options: options(http, policy)).key
        }
        #expect(Set(keys).count == 3)
        let named = [URLAccessPolicy.userInitiated, strict, proxied].map { policy in
            NetworkFetcher<String>(url: url, id: "film", options: options(http, policy)).key
        }
        #expect(Set(named).count == 3)
        #expect(named[0] == "film")
    }

    // MARK: No content

    @Test(arguments: [204, 205]) func aReplyWithoutContentIsNoValue(_ status: Int) async throws {
        let http = ScriptedLoader { (request, _) throws(NetworkError) in
            answer(request, status, ["Cache-Control": "max-age=600"])
        }
        let url = try #require(URL(string: "http://outside.example/a"))
        let options = options(http, .userInitiated)
        for _ in 0..<2 {
            guard case .status(_, let head) = await networkFailure({
                _ = try await cache.value(from: url, options: options)
            }) else {
                Issue.record("no failure")
                return
            }
            #expect(head.status == status)
        }
        #expect(http.requests.all.count == 2)
    }
}

#if os(Linux)
/// Parts of private files are not the beginnings of public ones.
struct PublicOnlyDownloadTests {
    @Test func whatALaxPolicyBeganIsNotGoneOnWith() async throws {
        let content = pattern(20_000), site = FileSite(content), destination = try Destination(), turn = Counter()
        let server = try LoopbackServer { site.reply(to: $0, upTo: turn.add(1) == 1 ? 8000 : nil) }
        let lax = makeDownloader()
        _ = await failure { _ = try await lax.download(patient(server.url("/")), to: destination.path) }
        #expect(destination.names == ["file.vitrine-head", "file.vitrine-part", "file.vitrine-sums"])
        let strict = makeDownloader { $0.policy = .publicOnly }
        let error = await failure { _ = try await strict.download(patient(server.url("/")), to: destination.path) }
        guard case .refused = error else { Issue.record("\(String(describing: error))"); return }
        #expect(destination.names.isEmpty)
    }
}
#endif
