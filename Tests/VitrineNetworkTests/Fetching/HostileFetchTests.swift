import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineNetwork

/// Bad answers: a typed error, nothing stored, and the next request tries again.
struct HostileFetchTests {
    /// A text that stands for a picture: nothing else is one.
    private struct Picture: CacheableValue, Equatable {
        let text: String
        init(_ text: String) { self.text = text }
        init(cacheBytes: [UInt8]) throws {
            text = try String(cacheBytes: cacheBytes)
            guard text.hasPrefix("picture") else { throw SomeError() }
        }
        func cacheBytes() -> [UInt8] { Array(text.utf8) }
        var cacheCost: Int { text.utf8.count }
        struct SomeError: Error {}
    }

    /// An answer and what loading it is to throw.
    private typealias Answer = (
        name: String, steps: [LoopbackServer.Step], isExpected: @Sendable (CacheError) -> Bool
    )

    private static let answers: [Answer] =
        [
            ("404 with a picture", [.reply(404, type, body: picture)], { status($0) == 404 }),
            ("500 with a picture", [.reply(500, type, body: picture)], { status($0) == 500 }),
            ("300 with a picture", [.reply(300, type, body: picture)], { status($0) == 300 }),
            ("304 to no condition", [.text("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n")], { status($0) == 304 }),
            (
                "206 to no range", [.reply(206, type + ["Content-Range: bytes 0-6/100"], body: picture)],
                { if case .invalidResponse = network($0) { true } else { false } }
            ),
            (
                "text/html named .png", [.reply(200, ["Content-Type: text/html"], body: picture)],
                { if case .contentType = network($0) { true } else { false } }
            ),
            (
                "no content type", [.reply(200, [], body: picture)],
                { if case .contentType = network($0) { true } else { false } }
            ),
            (
                "an error page that claims to be a picture", [.reply(200, type, body: Array("<html>".utf8))],
                { if case .invalidData = $0 { true } else { false } }
            ),
            (
                "cut", [begun("Content-Length: 100"), .close],
                { if case .truncated = network($0) { true } else { false } }
            ),
            (
                "reset", [begun("Content-Length: 100"), .reset], { network($0) != nil }
            ),
            (
                "chunks without an end",
                [begun("Transfer-Encoding: chunked", "7\r\npicture\r\n"), .close],
                { network($0) != nil }
            ),
            (
                "negative length", [begun("Content-Length: -5"), .close],
                { network($0) != nil }
            ),
            (
                "more than is accepted", [.reply(200, type, body: picture + pattern(2000))],
                { if case .bodyTooLarge = network($0) { true } else { false } }
            ),
            (
                "endless", [begun("X: y"), .endless(pattern(1000))],
                { if case .bodyTooLarge = network($0) { true } else { false } }
            ),
            (
                "redirect to itself", [.reply(302, ["Location: /a.png"])],
                { if case .tooManyRedirects(_, "the redirects form a loop") = network($0) { true } else { false } }
            ),
            ("no HTTP", [.text("hello\r\n\r\n"), .close], { network($0) != nil }),
        ]

    private static func begun(_ field: String, _ body: String = "picture") -> LoopbackServer.Step {
        .text("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\(field)\r\n\r\n\(body)")
    }

    private static let type = ["Content-Type: image/png", "Cache-Control: max-age=600"]
    private static let picture = Array("picture".utf8)

    private static func network(_ error: CacheError) -> NetworkError? { error.underlying as? NetworkError }

    private static func status(_ error: CacheError) -> Int? {
        if case .status(_, let head) = network(error) { head.status } else { nil }
    }

    private func fixture() throws -> FetchFixture<Picture> {
        var fixture = try FetchFixture<Picture>()
        fixture.options.contentTypes = ["image/*"]
        fixture.options.maximumBodySize = 1000
        return fixture
    }

    @Test func badAnswersAreErrorsAndNothingIsStored() async throws {
        for (name, steps, isExpected) in Self.answers {
            let pages = Pages()
            pages["/a.png"] = .init(steps: steps)
            let server = try pages.serve()
            let fixture = try fixture()
            fixture.cache.register(CacheFormat("loud") { Picture($0.text.uppercased()) })
            let url = server.url("/a.png"), key = fixture.fetcher(url).key
            for format in fixture.cache.formatNames {
                do throws(CacheError) {
                    let value = try await fixture.cache.value(from: fixture.fetcher(url), format: format)
                    Issue.record("\(name): gave \(value)")
                } catch {
                    #expect(isExpected(error), "\(name): \(error)")
                }
                #expect(await fixture.cache.depth(of: key, format: format) == .source, "\(name)")
                #expect(try await fixture.cache.info(forKey: key, format: format) == nil, "\(name)")
            }
            // Nothing is poisoned: the next request tries again, and gets what is there now.
            pages["/a.png"] = .init("picture", ["Cache-Control: max-age=600"])
            let value = try await fixture.value(url)
            #expect(value == Picture("picture"), "\(name)")
        }
    }

    @Test func badAnswersLeaveWhatIsStored() async throws {
        // Answers that may be stored themselves take the value's place.
        let others = ["304 to no condition", "404 with a picture", "300 with a picture"]
        for (name, steps, _) in Self.answers where !others.contains(name) {
            let pages = Pages()
            pages["/a.png"] = .init("picture", tag: "\"1\"", ["Cache-Control: max-age=60"])
            let server = try pages.serve()
            let fixture = try fixture()
            let url = server.url("/a.png")
            _ = try await fixture.value(url)
            pages["/a.png"] = .init(steps: steps)
            #expect(
                await cacheCode { _ = try await fixture.cache.refresh(from: fixture.fetcher(url)) } != nil, "\(name)")
            let value = try await fixture.value(url)
            #expect(value == Picture("picture"), "\(name)")
            #expect(try await fixture.another().value(from: fixture.fetcher(url)) == value, "\(name)")
        }
    }

    @Test func cutAtEveryPlaceNothingIsStored() async throws {
        let body = Array("picture".utf8) + [UInt8](repeating: 0x20, count: 20 << 10)
        let pages = Pages()
        let server = try pages.serve()
        var fixture = try FetchFixture<Picture>()
        fixture.options.contentTypes = ["image/*"]
        let url = server.url("/a.png"), key = fixture.fetcher(url).key
        let head = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: \(body.count)\r\nETag: \"1\"\r\n\r\n"
        for length in stride(from: 0, to: body.count, by: 1 << 10) {
            pages["/a.png"] = .init(steps: [.text(head), .bytes(Array(body[..<length])), .close])
            let failure = await networkFailure { _ = try await fixture.value(url) }
            guard case .truncated = failure else {
                Issue.record("\(length): \(String(describing: failure))")
                continue
            }
            #expect(try await fixture.cache.info(forKey: key) == nil)
        }
        pages["/a.png"] = .init(steps: [.text(head), .bytes(body)])
        #expect(try await fixture.value(url).cacheBytes() == body)
    }

    @Test func stored304WhoseBodyHasGoneIsLoadedAgain() async throws {
        let pages = Pages()
        pages["/a.png"] = .init("picture", tag: "\"1\"", ["Cache-Control: max-age=60"])
        let server = try pages.serve()
        let fixture = try fixture()
        let url = server.url("/a.png"), key = fixture.fetcher(url).key
        _ = try await fixture.value(url)
        fixture.clock.advance(by: .seconds(61))
        // Gone while the server is asked.
        let remover = fixture.cache
        let fetcher = Removing(fixture.fetcher(url)) { await remover.remove(key) }
        #expect(try await fixture.cache.value(from: fetcher) == Picture("picture"))
        #expect(server.requests.map { $0.header("If-None-Match") } == [nil, "\"1\"", nil])
    }

    /// Removes the entry once the server has answered.
    private struct Removing: Fetcher {
        let base: NetworkFetcher<Picture>
        let remove: @Sendable () async -> Void
        init(_ base: NetworkFetcher<Picture>, _ remove: @escaping @Sendable () async -> Void) {
            self.base = base
            self.remove = remove
        }
        var key: CacheKey { base.key }
        var revalidates: Bool { true }
        func fetch(_ context: FetchContext) async throws -> FetchResult<Picture> {
            let fetched = try await base.fetch(context)
            if context.stored != nil { await remove() }
            return fetched
        }
    }

    @Test func aPrefetchedErrorPageIsNotTakenForAPicture() async throws {
        let pages = Pages()
        pages["/a.png"] = .init("<html>", ["Cache-Control: max-age=600"])
        let server = try pages.serve()
        let fixture = try fixture()
        let url = server.url("/a.png")
        try await fixture.cache.prefetch(from: fixture.fetcher(url))
        pages["/a.png"] = .init("picture", ["Cache-Control: max-age=600"])
        #expect(try await fixture.value(url) == Picture("picture"))
    }

    @Test func connectionsAndFilesDoNotLeak() async throws {
        let pages = Pages()
        let server = try pages.serve()
        let counter = Counter()
        do {
            let fixture = try fixture()
            for (_, steps, _) in Self.answers {
                pages["/a.png"] = .init(steps: steps)
                if await cacheCode({ _ = try await fixture.value(server.url("/a.png")) }) != nil { counter.add(1) }
            }
        }
        #expect(counter.value == Self.answers.count)
        // All are closed when the loader goes.
        await server.waitUntilUnused()
    }

    @Test func aValidatorThatCannotBeSentDoesNotPoisonItsKey() async throws {
        for tag in ["\"a\u{7F}\"", "\"a\u{1}\"", "\"" + String(repeating: "e", count: 40_000) + "\""] {
            let pages = Pages()
            pages["/a.png"] = .init("picture one", ["Cache-Control: max-age=60", "ETag: \(tag)"])
            let server = try pages.serve()
            let fixture = try fixture()
            let url = server.url("/a.png")
            #expect(try await fixture.value(url) == Picture("picture one"))
            pages["/a.png"] = .init("picture two", ["Cache-Control: max-age=60", "ETag: \(tag)"])
            fixture.clock.advance(by: .seconds(61))
            #expect(try await fixture.value(url) == Picture("picture two"))
            #expect(server.requests.allSatisfy { $0.header("If-None-Match") == nil })
        }
    }

    /// Never silent for long, never done.
    @Test func dripEndsByTheTotalTimeout() async throws {
        let pages = Pages()
        pages["/a.png"] = .init(steps: [Self.begun("X: y"), .trickle(pattern(1))])
        let server = try pages.serve()
        var fixture = try fixture()
        fixture.options.maximumBodySize = .unlimited
        fixture.options.totalTimeout = .milliseconds(200)
        var failure: NetworkError?, calls = 0
        // On a busy machine a call may end before the server has read its request.
        while server.requests.isEmpty {
            failure = await networkFailure { _ = try await fixture.value(server.url("/a.png")) }
            guard case .tookTooLong = failure else { Issue.record("\(String(describing: failure))"); return }
            calls += 1
        }
        #expect(server.requests.count <= calls)
        #expect("\(try #require(failure))".contains("time limit"))
        // A request's own limit counts before that of the options.
        fixture.options.totalTimeout = nil
        var request = patient(server.url("/a.png"))
        request.totalTimeout = .milliseconds(100)
        let fetcher = NetworkFetcher<Picture>(request: request, options: fixture.options)
        let own = await networkFailure { _ = try await fixture.cache.value(from: fetcher) }
        guard case .tookTooLong = own else { Issue.record("\(String(describing: own))"); return }
    }
}
