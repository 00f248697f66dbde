import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
@_spi(HTTPCacheEngine) import VitrineNetwork

/// Large bodies that break off are gone on with.
struct PartialFetchTests {
    /// A server of one large body, which breaks off until it is told otherwise.
    private final class Film: Sendable {
        let body: [UInt8]
        let state: Locked<(tag: String, breaksAt: Int?)>

        init(_ count: Int = 3 << 20, breaksAt: Int?) {
            body = pattern(count)
            state = Locked((tag: "\"1\"", breaksAt: breaksAt))
        }

        func serve() throws -> LoopbackServer {
            try LoopbackServer { [self] request in
                let (tag, breaksAt) = state.withLock { $0 }
                let start = request.header("Range").flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0
                let isPart = start > 0 && request.header("If-Range") == tag
                let from = isPart ? start : 0
                let head = [
                    "HTTP/1.1 \(isPart ? 206 : 200) Status", "ETag: \(tag)", "Cache-Control: max-age=60",
                    "Content-Length: \(body.count - from)",
                ] + (isPart ? ["Content-Range: bytes \(from)-\(body.count - 1)/\(body.count)"] : [])
                let end = breaksAt.map { min($0, body.count) } ?? body.count
                let part: LoopbackServer.Step = .bytes(Array(body[from..<max(from, end)]))
                return [.text(head.joined(separator: "\r\n") + "\r\n\r\n"), part] + (breaksAt == nil ? [] : [.close])
            }
        }
    }

    private func names(_ directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }

    private func directory(_ fixture: FetchFixture<[UInt8]>) throws -> String {
        try #require(fixture.options.partialDirectory)
    }

    @Test func theRestIsAskedForTheNextTime() async throws {
        let film = Film(breaksAt: 2 << 20)
        let server = try film.serve()
        let fixture = try FetchFixture<[UInt8]>()
        let url = server.url("/film"), key = fixture.fetcher(url).key
        guard case .truncated = await networkFailure({ _ = try await fixture.value(url) }) else {
            Issue.record("not told that it broke off")
            return
        }
        #expect(try await fixture.cache.info(forKey: key) == nil)
        #expect(names(try directory(fixture)).count == 3)
        film.state.withLock { $0.breaksAt = nil }
        #expect(try await fixture.value(url) == film.body)
        let last = try #require(server.requests.last)
        #expect(last.header("If-Range") == "\"1\"")
        let start = try #require(last.header("Range").flatMap { Int($0.dropFirst(6).dropLast()) })
        #expect(start > 0)
        #expect(start <= 2 << 20)
        #expect(names(try directory(fixture)).isEmpty)
        // Stored like any other, as a whole.
        let info = try #require(try await fixture.cache.info(forKey: key))
        let head = try StoredResponse(bytes: info.validator)
        #expect(head.status == 200)
        #expect(head.bodyLength == film.body.count)
        #expect(!head.headers.contains("Content-Range"))
        #expect(info.expires == fixture.options.clock.now + .seconds(60))
        #expect(try await fixture.another().value(from: fixture.fetcher(url)) == film.body)
    }

    @Test func theRestIsAskedForByAnotherProcess() async throws {
        let film = Film(breaksAt: 2 << 20)
        let server = try film.serve()
        var fixture = try FetchFixture<[UInt8]>()
        let url = server.url("/film")
        _ = await networkFailure { _ = try await fixture.value(url) }
        // A place this process has not looked at yet.
        let other = fixture.directory.file("other")
        try FileManager.default.moveItem(atPath: try directory(fixture), toPath: other)
        fixture.options.partialDirectory = other
        film.state.withLock { $0.breaksAt = nil }
        #expect(try await fixture.value(url) == film.body)
        #expect(server.requests.last?.header("If-Range") == "\"1\"")
        #expect(names(other).isEmpty)
    }

    @Test func aChangedSourceBeginsAnew() async throws {
        let film = Film(breaksAt: 2 << 20)
        let server = try film.serve()
        let fixture = try FetchFixture<[UInt8]>()
        let url = server.url("/film")
        _ = await networkFailure { _ = try await fixture.value(url) }
        film.state.withLock { $0 = ("\"2\"", nil) }
        #expect(try await fixture.value(url) == film.body)
        #expect(server.requests.last?.header("If-Range") == "\"1\"")
        #expect(names(try directory(fixture)).isEmpty)
    }

    @Test func smallBodiesAndThoseOfWhoDoesNotWantItGoWithoutFiles() async throws {
        let film = Film(500_000, breaksAt: 400_000)
        let server = try film.serve()
        let fixture = try FetchFixture<[UInt8]>()
        _ = await networkFailure { _ = try await fixture.value(server.url("/small")) }
        #expect(names(try directory(fixture)).isEmpty)
        let large = Film(breaksAt: 2 << 20)
        let second = try large.serve()
        var without = try FetchFixture<[UInt8]>()
        without.options.resumesLargeBodies = false
        _ = await networkFailure { _ = try await without.value(second.url("/film")) }
        #expect(names(try directory(without)).isEmpty)
        large.state.withLock { $0.breaksAt = nil }
        #expect(try await without.value(second.url("/film")) == large.body)
        #expect(second.requests.allSatisfy { $0.header("Range") == nil })
    }

    @Test func withoutAPlaceForFilesBodiesAreLoadedAllTheSame() async throws {
        let film = Film(breaksAt: nil)
        let server = try film.serve()
        var fixture = try FetchFixture<[UInt8]>()
        try fixture.directory.write("a file", to: "taken")
        fixture.options.partialDirectory = fixture.directory.file("taken")
        #expect(try await fixture.value(server.url("/film")) == film.body)
    }
}
