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
}
#endif
