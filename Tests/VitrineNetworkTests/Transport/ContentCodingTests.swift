#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

struct ContentCodingTests {
    @Test func undoesGzipAndSaysSo() async throws {
        let plain = pattern(50_000)
        let packed = try gzip(plain)
        let server = try LoopbackServer { _ in [.reply(200, ["Content-Encoding: gzip"], body: packed)] }
        let loader = makeLoader()
        let (head, body) = try await loader.whole(patient(server.url("/")))
        #expect(body == plain)
        #expect(head.decodedFrom == "gzip")
        #expect(head.contentLength == nil)
        #expect(!head.headers.contains("Content-Encoding"))
        let accepted = try #require(server.requests.first?.header("Accept-Encoding"))
        for coding in ["gzip", "br", "zstd"] { #expect(accepted.contains(coding)) }
        var raw = patient(server.url("/"))
        raw.acceptsCompression = false
        let (rawHead, rawBody) = try await loader.whole(raw)
        #expect(rawBody == packed)
        #expect(rawHead.headers["Content-Encoding"] == "gzip")
        #expect(server.requests.last?.header("Accept-Encoding") == nil)
    }

    @Test func bombsStopAtTheLimitWhoeverReads() async throws {
        let bomb = try gzip([UInt8](repeating: 0, count: 64 << 20))
        #expect(bomb.count < 100_000)
        let server = try LoopbackServer { _ in [.reply(200, ["Content-Encoding: gzip"], body: bomb)] }
        let loader = makeLoader()
        var request = patient(server.url("/"))
        request.maximumBodySize = .megabytes(10)
        let collected = await failure { _ = try await loader.whole(request) }
        guard case .bodyTooLarge = collected else { Issue.record("\(String(describing: collected))"); return }
        // Chunk by chunk nobody holds more than what one reading decodes to.
        let response = try await loader.load(request)
        var largest = 0
        let read = await failure {
            for try await chunk in response.body { largest = max(largest, chunk.count) }
        }
        guard case .bodyTooLarge = read else { Issue.record("\(String(describing: read))"); return }
        #expect(largest <= 40 << 20)
    }

    @Test func brokenCodingIsAnError() async throws {
        let packed = try gzip(pattern(50_000))
        var broken = packed
        broken[100] ^= 0xFF
        let bytes = broken
        let server = try LoopbackServer { _ in [.reply(200, ["Content-Encoding: gzip"], body: bytes)] }
        let error = await failure { _ = try await makeLoader().whole(patient(server.url("/"))) }
        guard case .invalidResponse = error else { Issue.record("\(String(describing: error))"); return }
    }

    // MARK: The end of a coding

    /// A coding with a whole body of it. brotli and zstd are those of `CodedBodies`.
    private static func packed(_ coding: String) throws -> (plain: [UInt8], packed: [UInt8]) {
        switch coding {
        case "gzip", "x-gzip": (pattern(50_000), try gzip(pattern(50_000)))
        case "deflate": (pattern(50_000), try zlib(pattern(50_000)))
        case "raw deflate": (pattern(50_000), Array(try zlib(pattern(50_000)).dropFirst(2).dropLast(4)))
        case "br": (CodedBodies.plain, CodedBodies.brotli)
        default: (CodedBodies.plain, CodedBodies.zstd)
        }
    }

    /// What zlib makes of bytes: the data of gzip(1) in the frame of RFC 1950.
    private static func zlib(_ bytes: [UInt8]) throws -> [UInt8] {
        let (a, b) = bytes.reduce((1, 0)) { sums, byte in
            let a = (sums.0 + Int(byte)) % 65521
            return (a, (sums.1 + a) % 65521)
        }
        let sum = [b >> 8, b & 255, a >> 8, a & 255].map { UInt8($0) }
        return [0x78, 0x9C] + (try gzip(bytes).dropFirst(10).dropLast(8)) + sum
    }

    private static let codings = ["gzip", "x-gzip", "deflate", "raw deflate", "br", "zstd"]

    /// Serves bodies with a length, in chunks, and until the connection ends.
    private static let framings: [@Sendable (String, [UInt8]) -> [LoopbackServer.Step]] = [
        { [.reply(200, ["Content-Encoding: \($0)"], body: $1)] },
        { coding, body in
            let head = "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nTransfer-Encoding: chunked\r\n\r\n"
            let chunk = body.isEmpty ? [] : Array((String(body.count, radix: 16) + "\r\n").utf8) + body + [13, 10]
            return [.text(head), .bytes(chunk), .text("0\r\n\r\n")]
        },
        { coding, body in
            [.text("HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\n\r\n"), .bytes(body), .close]
        },
    ]

    /// A transport of another kind, which leaves the coding to the loader.
    private struct Plain: HTTPTransport {
        let fields: HTTPHeaders
        let body: [UInt8]
        func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
            HTTPResponse(head: HTTPResponseHead(headers: fields, url: request.url), body: ResponseBody(body))
        }
    }

    @Test(arguments: codings, [0, 1, 2])
    func bodiesThatEndBeforeTheirCodingAreRefused(_ name: String, _ framing: Int) async throws {
        let (plain, packed) = try Self.packed(name)
        let coding = name == "raw deflate" ? "deflate" : name
        let body = Locked(packed)
        let server = try LoopbackServer { _ in Self.framings[framing](coding, body.withLock { $0 }) }
        let loader = makeLoader(), url = server.url("/")
        #expect(try await loader.whole(patient(url)).1 == plain)
        let cuts = [1, 2, 5, packed.count / 2, packed.count - 9, packed.count - 4, packed.count - 1]
        for cut in Set(cuts.filter { (1..<packed.count).contains($0) }) {
            body.withLock { $0 = Array(packed.prefix(cut)) }
            let error = await failure { _ = try await loader.whole(patient(url)) }
            guard case .truncated = error else {
                Issue.record("\(name) cut at \(cut): \(String(describing: error))")
                continue
            }
            let fields: HTTPHeaders = ["Content-Encoding": coding, "Content-Length": String(cut)]
            let other = NetworkLoader(Plain(fields: fields, body: Array(packed.prefix(cut))))
            #expect(await failure { _ = try await other.load(patient(url)).body.collect() } != nil)
        }
    }

    @Test func emptyBodiesAndOtherMembersAreWhole() async throws {
        let one = try gzip(Array("one".utf8)), two = try gzip(Array("two".utf8))
        let cases: [([UInt8], String)] = [
            ([], ""), (one + two, "onetwo"), (one + [0, 0, 0], "one"), (one + Array("junk".utf8), "one"),
        ]
        for (packed, plain) in cases {
            for framing in Self.framings {
                let server = try LoopbackServer { _ in framing("gzip", packed) }
                #expect(try await makeLoader().whole(patient(server.url("/"))).1 == Array(plain.utf8))
            }
        }
        // The second member is cut.
        let server = try LoopbackServer { _ in [.reply(200, ["Content-Encoding: gzip"], body: one + two.dropLast(3))] }
        #expect(await failure { _ = try await makeLoader().whole(patient(server.url("/"))) } != nil)
    }

    @Test func severalCodingsAreUndoneInOrder() async throws {
        let plain = pattern(5000), packed = try gzip(try Self.zlib(plain))
        let server = try LoopbackServer { _ in
            [.reply(200, ["Content-Encoding: deflate", "Content-Encoding: gzip"], body: packed)]
        }
        #expect(try await makeLoader().whole(patient(server.url("/"))).1 == plain)
        for line in ["rot13", "gzip, gzip, gzip, gzip, gzip"] {
            let server = try LoopbackServer { _ in [.reply(200, ["Content-Encoding: \(line)"], body: packed)] }
            let error = await failure { _ = try await makeLoader().whole(patient(server.url("/"))) }
            guard case .invalidResponse = error else { Issue.record("\(String(describing: error))"); return }
        }
    }

    @Test func wrongChecksumsAreRefused() async throws {
        var packed = try gzip(pattern(5000))
        packed[packed.count - 8] ^= 1
        let bytes = packed
        let server = try LoopbackServer { _ in [.reply(200, ["Content-Encoding: gzip"], body: bytes)] }
        #expect(await failure { _ = try await makeLoader().whole(patient(server.url("/"))) } != nil)
    }

    @Test func limitsCountBytesAsTheyAreRead() async throws {
        let plain = pattern(50_000), packed = try gzip(plain)
        let server = try LoopbackServer { request in
            request.target == "/packed"
                ? [.reply(200, ["Content-Encoding: gzip"], body: packed)]
                : [.text("HTTP/1.1 200 OK\r\n\r\n"), .bytes(plain), .close]
        }
        for target in ["/packed", "/plain"] {
            var request = patient(server.url(target))
            request.maximumBodySize = ByteCount(50_000)
            #expect(try await makeLoader().whole(request).1 == plain)
            request.maximumBodySize = ByteCount(49_999)
            let error = await failure { _ = try await makeLoader().whole(request) }
            guard case .bodyTooLarge = error else { Issue.record("\(String(describing: error))"); return }
        }
    }

    @Test func cutBodiesAreNeitherStoredNorDownloaded() async throws {
        let packed = try gzip(pattern(50_000))
        let server = try LoopbackServer { _ in
            [.reply(200, ["Content-Encoding: gzip", "Cache-Control: max-age=60"], body: Array(packed.dropLast(9)))]
        }
        let fixture = try FetchFixture<[UInt8]>()
        let fetcher = fixture.fetcher(server.url("/a"))
        #expect(await networkFailure { _ = try await fixture.cache.value(from: fetcher) } != nil)
        try await fixture.cache.flush()
        #expect(await fixture.cache.contains(fetcher.key, at: .disk) == false)
        let destination = try Destination()
        let request = patient(server.url("/a"))
        #expect(await failure { _ = try await makeDownloader().download(request, to: destination.path) } != nil)
        #expect(destination.bytes == nil)
    }
}
#endif
