#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineNetwork

/// A transfer that ends without a final head is an error, whatever ends it, and the next request works.
struct TruncatedHeadTests {
    private static let good = "/good"

    /// What a loader makes of replies, by number of target, one after the other over the same loader.
    private func errors(_ replies: [[LoopbackServer.Step]]) async throws -> [NetworkError?] {
        let server = try LoopbackServer { request in
            guard let number = Int(request.target.dropFirst()) else { return [.reply(body: [1, 2, 3])] }
            return replies[number]
        }
        let loader = makeLoader()
        var errors: [NetworkError?] = []
        for number in replies.indices {
            errors.append(await failure { _ = try await loader.whole(patient(server.url("/\(number)"))) })
        }
        #expect(try await loader.whole(patient(server.url(Self.good))).1 == [1, 2, 3])
        return errors
    }

    private func expectBroken(_ error: NetworkError?, _ name: String) {
        switch error {
        case .truncated, .invalidResponse: break
        default: Issue.record("\(name): \(String(describing: error))")
        }
    }

    @Test(arguments: ["", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"])
    func everyBeginningOfAReplyIsAnError(_ interim: String) async throws {
        let whole = Array(
            (interim + "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 5\r\n\r\nhello").utf8)
        for end in [LoopbackServer.Step.close, .reset] {
            let errors = try await errors(whole.indices.map { [.bytes(Array(whole[..<$0])), end] })
            #expect(errors.count == whole.count)
            for (count, error) in errors.enumerated() { expectBroken(error, "\(count) bytes") }
        }
    }

    @Test func everyBeginningOfAChunkedReplyIsAnError() async throws {
        let whole = Array("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\r\nhello\r\n0\r\n\r\n".utf8)
        // The last line break is no loss.
        let errors = try await errors((0..<(whole.count - 2)).map { [.bytes(Array(whole[..<$0])), .close] })
        for (count, error) in errors.enumerated() { expectBroken(error, "\(count) bytes") }
    }

    @Test(arguments: [
        "HTTP/1.1 100 C\r\n\r\n", "HTTP/1.1 103 E\r\n\r\n", "HTTP/1.1 199 E\r\n\r\n", "HTTP/1.1 102 P\r\nA: b\r\n\r\n",
        "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\n\r\n", "HTTP/1.1 100 C\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 000 N\r\n\r\n", "HTTP/1.1 099 N\r\nContent-Length: 5\r\n\r\nhello", "", "hello", "<html>hello</html>",
        "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "HTTP/2 ", "HTTP/1.1 1", "HTTP/",
    ])
    func repliesWithoutAFinalHeadAreErrors(_ text: String) async throws {
        expectBroken(try await errors([[.text(text), .close]])[0], text)
    }

    /// Nobody has asked for another protocol (RFC 9110, section 15.2.2).
    @Test(arguments: [
        "", "Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n", "Connection: upgrade\r\nUpgrade: h2c\r\n\r\nhello",
    ])
    func switchingToAnotherProtocolIsAnError(_ rest: String) async throws {
        let text = "HTTP/1.1 101 Switching Protocols\r\n" + (rest.isEmpty ? "\r\n" : rest)
        for end in [LoopbackServer.Step.close, .hang] {
            guard case .invalidResponse = try await errors([[.text(text), end]])[0] else {
                Issue.record("\(text)")
                continue
            }
        }
    }

    @Test func endlessInterimResponsesAreAnError() async throws {
        let error = try await errors([[.endless(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))]])[0]
        guard case .headerTooLarge = error else { Issue.record("\(String(describing: error))"); return }
    }

    @Test func fetchesAndDownloadsFailAsWell() async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Le"
        let server = try LoopbackServer { request in
            [.text(request.target == "/101" ? "HTTP/1.1 101 S\r\n\r\nhello" : head), .close]
        }
        let fixture = try FetchFixture<String>(), destination = try Destination()
        for target in ["/cut", "/101"] {
            let url = server.url(target)
            expectBroken(await networkFailure { _ = try await fixture.value(url) }, target)
            let loader = makeDownloader(repetitions: 1)
            expectBroken(
                await failure { _ = try await loader.download(patient(url), to: destination.path) }, target)
            expectBroken(await failure { _ = try await loader.load(patient(url)) }, target)
            #expect(destination.names.isEmpty)
        }
    }

    @Test func cancellingEndsAWaitForTheRestOfAHead() async throws {
        let server = try LoopbackServer { _ in [.text("HTTP/1.1 200 OK\r\nContent-Le"), .hang] }
        let loader = makeLoader()
        let task = Task { try await loader.load(patient(server.url("/"))) }
        while server.requests.isEmpty { await Task.yield() }
        task.cancel()
        let error = await failure { _ = try await task.value }
        guard case .cancelled = error else { Issue.record("\(String(describing: error))"); return }
        await server.waitUntilUnused()
    }

    // MARK: Numbers that do not fit

    @Test(arguments: [
        "9223372036854775807", "9223372036854775806", "9223372036854775808", "18446744073709551615",
        "18446744073709551616", "99999999999999999999999999", "9007199254740993",
    ])
    func lengthsNearTheEndOfNumbersAreErrors(_ length: String) async throws {
        let tag = "ETag: \"1\"\r\n"
        let server = try LoopbackServer { request in
            switch request.target {
            case "/part" where request.header("Range") != nil:
                [
                    .text("HTTP/1.1 206 P\r\n\(tag)Content-Range: bytes 5-\(length)/\(length)\r\n\r\nx"), .close,
                ]
            case "/total" where request.header("Range") != nil:
                [.text("HTTP/1.1 206 P\r\n\(tag)Content-Range: bytes 0-4/\(length)\r\n\r\nhello"), .close]
            default: [.text("HTTP/1.1 200 OK\r\n\(tag)Content-Length: \(length)\r\n\r\nhello"), .close]
            }
        }
        let fixture = try FetchFixture<String>()
        for target in ["/whole", "/part", "/total"] {
            let destination = try Destination(), url = server.url(target)
            var options = DownloadOptions()
            #expect(await networkFailure { _ = try await fixture.value(url) } != nil)
            var request = patient(url)
            request.maximumBodySize = .unlimited
            for connections in [1, 4, Int.max] {
                options.connections = connections
                for _ in 0..<2 {
                    let error = await failure { [request, options] in
                        _ = try await makeDownloader(repetitions: 1).download(
                            request, to: destination.path, options: options)
                    }
                    #expect(error != nil, "\(target)")
                }
            }
            #expect(destination.bytes == nil)
        }
    }

    @Test func limitsWithoutALimitDoNotOverflow() async throws {
        let server = try LoopbackServer { _ in [.reply(body: pattern(300_000))] }
        let loader = makeLoader { configuration in
            configuration.receiveWindow = .unlimited
            configuration.headerSize = .unlimited
            configuration.headerCount = .max
            configuration.connectionsPerHost = .max
            configuration.connections = .max
        }
        var request = patient(server.url("/"))
        request.maximumBodySize = .unlimited
        request.totalTimeout = .seconds(Int64.max)
        request.idleTimeout = .seconds(Int64.max)
        request.connectTimeout = .seconds(Int64.max)
        #expect(try await loader.whole(request).1 == pattern(300_000))
    }
}
#endif
