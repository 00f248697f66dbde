import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Synchronization
import Testing
import VitrineServer

/// A server on loopback and connections of plain bytes.
@Suite struct HTTPConnectionTests {
    private static let lakeGet = "GET /insecure/plain/lake.jpg HTTP/1.1\r\nHost: a\r\n"

    private static func answers(_ text: String?) -> [String] {
        (text ?? "").split(separator: "HTTP/1.1 ").map { String($0.prefix(3)) }
    }

    // MARK: Keeping connections

    @Test func connectionIsKeptAndPipelined() async throws {
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            for _ in 0..<3 {
                await connection.send(Self.lakeGet + "\r\n")
                #expect(await connection.readAnswer()?.hasPrefix("HTTP/1.1 200 OK\r\n") == true)
            }
            // A request that is rendered keeps the one behind it.
            for path in ["/insecure/plain/new1", "/insecure/plain/new2", "/health", "/insecure/plain/missing"] {
                await connection.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            }
            for status in ["200", "200", "200", "404"] {
                #expect(await connection.readAnswer()?.hasPrefix("HTTP/1.1 \(status)") == true)
            }
            await connection.send(Self.lakeGet + "Connection: close\r\n\r\n" + Self.lakeGet + "\r\n")
            let last = await connection.readText()
            #expect(Self.answers(last) == ["200"] && last?.contains("Connection: close\r\n") == true)
        }
    }

    @Test func answersHaveNoBodyWhereHTTPHasNone() async throws {
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            await connection.send(
                "HEAD /insecure/plain/a HTTP/1.1\r\nHost: a\r\n\r\n"
                    + "GET /insecure/plain/a HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n"
                    + "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nHEAD /insecure/plain/missing HTTP/1.1\r\nHost: a\r\n"
                    + "Connection: close\r\n\r\n")
            let text = try #require(await connection.readText())
            #expect(Self.answers(text) == ["200", "304", "204", "404"])
            #expect(text.components(separatedBy: "\r\n\r\n").dropLast().allSatisfy { $0.hasPrefix("HTTP/1.1 ") })
            #expect(text.contains("Date: "))
        }
    }

    @Test func oldClientGetsAnAnswerAndTheEnd() async throws {
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            await connection.send("GET /health HTTP/1.0\r\n\r\n")
            let text = try #require(await connection.readText())
            #expect(Self.answers(text) == ["200"] && text.hasSuffix("{\"status\":\"ok\"}\n"))
        }
    }

    @Test func halfClosedConnectionGetsItsAnswer() async throws {
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            await connection.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.closeOutput()
            #expect(Self.answers(await connection.readText()) == ["200"])
        }
    }

    @Test func absoluteTargetIsTakenAsSent() async throws {
        #expect(RequestTarget.path(of: "http://h/a/plain/http://x/%2f|^") == "/a/plain/http://x/%2f|^")
        #expect(RequestTarget.path(of: "http://h") == "/")
        #expect(RequestTarget.path(of: "http://h?a=1") == "/?a=1")
        #expect(RequestTarget.path(of: "*") == "*")
        #expect(RequestTarget.path(of: "a:80") == "a:80")
        try await HTTPTestServer.live(MemoryBackend(signs: true)) { port in
            let rest = "/w:1/plain/http://x/%2f[]"
            let connection = try RawConnection(port: port)
            let target = "/" + MemoryBackend.signature(of: rest) + rest
            await connection.send(
                "GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n"
                    + "GET http://a\(target) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(Self.answers(await connection.readText()) == ["200", "200"])
        }
    }

    @Test func answersCloseConnectionsWhileDraining() async throws {
        let drain = Atomic(false)
        try await HTTPTestServer.live(isDraining: { drain.load(ordering: .relaxed) }) { port in
            let connection = try RawConnection(port: port)
            await connection.send(Self.lakeGet + "\r\n")
            #expect(await connection.readAnswer()?.contains("Connection: close") == false)
            drain.store(true, ordering: .relaxed)
            await connection.send(Self.lakeGet + "\r\n")
            let last = await connection.readText()
            #expect(Self.answers(last) == ["200"] && last?.contains("Connection: close\r\n") == true)
        }
    }

    @Test func requestToChangeTheProtocolIsAnsweredAndTheLast() async throws {
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            await connection.send(Self.lakeGet + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n")
            #expect(Self.answers(await connection.readText()) == ["200"])
        }
    }

    /// Routes of the application whose bodies have no known length.
    @Test func otherRoutesOfTheApplicationAreFramed() async throws {
        let router = Router(context: ImageRequestContext.self)
        router.get("/stream") { _, _ in
            let pieces = AsyncStream<ByteBuffer> { continuation in
                for piece in ["one", "", "two, which is longer"] { continuation.yield(ByteBuffer(string: piece)) }
                continuation.finish()
            }
            return Response(status: .ok, body: ResponseBody(asyncSequence: pieces))
        }
        router.post("/upload") { request, _ in
            let body = try await request.body.collect(upTo: 100_000)
            return "\(body.readableBytes)"
        }
        router.add(HTTPTestServer.service(MemoryBackend()), at: "/images")
        let application = Application(router: router, server: .images(), logger: HTTPTestServer.logger)
        try await application.test(.live) { client async throws in
            let port = client.port ?? 0
            let new = try RawConnection(port: port)
            await new.send(
                "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"
                    + "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                    + "POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"
                    + "GET /images/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            let text = try #require(await new.readText())
            #expect(Self.answers(text) == ["200", "200", "200", "200"])
            let chunks = "chunked\r\n\r\n3\r\none\r\n14\r\ntwo, which is longer\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"
            #expect(text.contains(chunks))
            #expect(text.contains("\r\n\r\n3HTTP/1.1") && text.contains("\r\n\r\n4HTTP/1.1"))
            let old = try RawConnection(port: port)
            await old.send("GET /stream HTTP/1.0\r\n\r\n")
            #expect(await old.readText()?.hasSuffix("\r\n\r\nonetwo, which is longer") == true)
            let bad = try RawConnection(port: port)
            await bad.send("POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\nZZ\r\n")
            #expect(Self.answers(await bad.readText()) == ["400"])
        }
    }

    // MARK: Malformed requests

    /// Each is refused by one answer, and nothing behind it is taken for a request.
    @Test(arguments: [
        ("both lengths", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX", ["400", "413"]),
        ("encoding first", "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX", ["400", "413"]),
        ("two lengths", "Content-Length: 0\r\nContent-Length: 44\r\n\r\n", ["400", "413"]),
        ("list of lengths", "Content-Length: 0, 44\r\n\r\n", ["400", "413"]),
        ("signed length", "Content-Length: +5\r\n\r\nabcde", ["400", "413"]),
        ("negative length", "Content-Length: -1\r\n\r\n", ["400", "413"]),
        ("hexadecimal length", "Content-Length: 0x5\r\n\r\nabcde", ["400", "413"]),
        ("huge length", "Content-Length: 99999999999999999999999\r\n\r\n", ["400", "413"]),
        ("bad chunk size", "Transfer-Encoding: chunked\r\n\r\nZZ\r\nabc\r\n0\r\n\r\n", ["400", "413"]),
        ("huge chunk size", "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", ["400", "413"]),
        ("identity encoding", "Transfer-Encoding: identity\r\n\r\n", ["400", "413"]),
        ("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", ["400", "413"]),
        ("space before colon", "Content-Length : 0\r\n\r\n", ["400"]),
        ("bare name", "Nonsense\r\n\r\n", ["400"]),
        ("NUL in value", "X: a\0b\r\n\r\n", ["400"]),
        ("control character in name", "X\u{1}: a\r\n\r\n", ["400"]),
        ("second host", "Host: b\r\n\r\n", ["400"]),
        ("carriage return in value", "X: a\rY: b\r\n\r\n", ["400"]),
    ])
    func smugglingIsRefused(name: String, rest: String, statuses: [String]) async throws {
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            await connection.send(Self.lakeGet + rest + "GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            let text = await connection.readText()
            let answers = Self.answers(text)
            #expect(answers.count == 1 && statuses.contains(answers.first ?? ""), "\(name): \(text ?? "no end")")
            #expect(text?.contains("\"ok\"") == false)
            #expect(text?.contains("Connection: close\r\n") == true)
        }
    }

    @Test(arguments: [
        ("no host", "GET /health HTTP/1.1\r\n\r\n", "400"),
        ("unknown version", "GET /health HTTP/3.7\r\nHost: a\r\n\r\n", "505"),
        ("second version", "GET /health HTTP/2.0\r\nHost: a\r\n\r\n", "505"),
        ("no version", "GET /health\r\n\r\n", "505"),
        ("no method", "/health HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("NUL in the target", "GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0", "400"),
        ("rubbish", String(repeating: "\u{7}\n\r", count: 100), "400"),
        ("a proxy's greeting", "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n\r\n", "400"),
    ])
    func malformedHeadIsRefused(name: String, request: String, status: String) async throws {
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            await connection.send(request)
            let text = await connection.readText()
            #expect(Self.answers(text) == [status], "\(name): \(text ?? "no end")")
            #expect(text?.contains("\"status\":\(status)") == true)
        }
    }

    /// A continued line is one value or an error, never a second field.
    @Test func continuedLineIsNoField() async throws {
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            await connection.send(
                "GET /health HTTP/1.1\r\nHost: a\r\nX: 1\r\n Content-Length: 50\r\nConnection: close\r\n\r\n")
            let answers = Self.answers(await connection.readText())
            #expect(answers == ["200"] || answers == ["400"])
        }
    }

    @Test(arguments: [
        ("target of 20 KB", "414"), ("target of 100 KB", "431"), ("field of 40 KB", "431"), ("name of 40 KB", "431"),
        ("endless field", "431"), ("150 fields", "431"), ("70 KB in fields", "431"),
    ])
    func headersAreLimited(name: String, status: String) async throws {
        func letters(_ count: Int) -> String { String(repeating: "a", count: count) }
        let request =
            switch name {
            case "target of 20 KB": "GET /insecure/plain/\(letters(20_000)) HTTP/1.1\r\nHost: a\r\n\r\n"
            case "target of 100 KB": "GET /\(letters(100_000)) HTTP/1.1\r\nHost: a\r\n\r\n"
            case "field of 40 KB": Self.lakeGet + "X: \(letters(40_000))\r\n\r\n"
            case "name of 40 KB": Self.lakeGet + "\(letters(40_000)): x\r\n\r\n"
            case "endless field": Self.lakeGet + "X: \(letters(5_000_000))"
            case "150 fields": Self.lakeGet + String(repeating: "X: a\r\n", count: 150) + "\r\n"
            default: Self.lakeGet + String(repeating: "X: \(letters(1000))\r\n", count: 70) + "\r\n"
            }
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            await connection.send(request)
            let text = status == "414" ? await connection.readAnswer() : await connection.readText()
            #expect(Self.answers(text) == [status], "\(name): \(text?.prefix(500) ?? "no end")")
        }
    }

    @Test func refusalWaitsForTheAnswersBeforeIt() async throws {
        let backend = MemoryBackend()
        try await HTTPTestServer.live(backend) { port in
            let connection = try RawConnection(port: port)
            await connection.send("GET /insecure/plain/slow HTTP/1.1\r\nHost: a\r\n\r\nrubbish\r\n\r\n")
            try await backend.started.wait()
            backend.gate.open()
            #expect(Self.answers(await connection.readText()) == ["200", "400"])
        }
    }

    @Test func bodyOfAGetEndsTheConnection() async throws {
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            await connection.send(
                Self.lakeGet + "Content-Length: 44\r\n\r\nGET /insecure/plain/smuggled HTTP/1.1\r\n\r\nabcd")
            let text = await connection.readText()
            #expect(Self.answers(text) == ["413"])
            // An endless body is not read for ever, and the answer arrives all the same.
            let endless = try RawConnection(port: port)
            await endless.send(Self.lakeGet + "Content-Length: 100000000\r\n\r\n")
            async let sending: Void = endless.send([UInt8](repeating: 65, count: 50_000_000))
            #expect(Self.answers(await endless.readText()) == ["413"])
            await sending
        }
    }

    // MARK: Time limits

    private static var short: ConnectionLimits {
        var limits = ConnectionLimits()
        limits.idle = .milliseconds(400)
        limits.stall = .milliseconds(400)
        limits.lingering = .milliseconds(200)
        return limits
    }

    @Test func connectionsWithoutACompleteRequestEnd() async throws {
        try await HTTPTestServer.live(limits: Self.short) { port in
            for start in ["", "GET /health HT", "GET /health HTTP/1.1\r\nHost: a\r\nX: "] {
                let connection = try RawConnection(port: port)
                await connection.send(start)
                #expect(await connection.readText() != nil)
            }
            // Bytes that complete nothing do not count.
            let slow = try RawConnection(port: port)
            await slow.send("GET /health HTTP/1.1\r\nHost: a\r\nX: ")
            async let sending: Void = {
                for _ in 0..<40 {
                    await slow.send("a")
                    try? await Task.sleep(for: .milliseconds(50))
                }
            }()
            #expect(await slow.readText() == "")
            await sending
        }
    }

    @Test func longRenderIsNotIdle() async throws {
        let backend = MemoryBackend()
        try await HTTPTestServer.live(backend, limits: Self.short) { port in
            let connection = try RawConnection(port: port)
            await connection.send("GET /insecure/plain/slow HTTP/1.1\r\nHost: a\r\n\r\n")
            try await backend.started.wait()
            try await Task.sleep(for: .milliseconds(1200))
            backend.gate.open()
            #expect(await connection.readAnswer()?.hasPrefix("HTTP/1.1 200") == true)
        }
    }

    @Test func clientThatReadsNothingIsDropped() async throws {
        try await HTTPTestServer.live(limits: Self.short) { port in
            let first = try RawConnection(port: port)
            await first.send("HEAD /insecure/plain/huge HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(Self.answers(await first.readText()) == ["200"])
            // The image is in memory: the limit passes while nothing of it is read, also on a machine under load.
            let connection = try RawConnection(port: port, receiveBuffer: 4096)
            await connection.send("GET /insecure/plain/huge HTTP/1.1\r\nHost: a\r\n\r\n")
            try await Task.sleep(for: .seconds(5))
            let received = try #require(await connection.readAll())
            #expect(received.count < 16 << 20)
        }
    }

    @Test func clientThatReadsSlowlyGetsEverything() async throws {
        try await HTTPTestServer.live(limits: Self.short) { port in
            let connection = try RawConnection(port: port)
            await connection.send("GET /insecure/plain/huge HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            // 16 MB at 256 KB in 20 ms last three times longer than the limits.
            let received = try #require(await connection.readAll(pause: .milliseconds(20), piece: 256 << 10))
            #expect(received.count > 16 << 20)
        }
    }

    // MARK: Departure

    @Test(arguments: ["close", "reset", "half"])
    func renderIsCancelledWhenTheClientLeaves(way: String) async throws {
        let backend = MemoryBackend()
        try await HTTPTestServer.live(backend) { port in
            var connection: RawConnection? = try RawConnection(port: port)
            await connection?.send("GET /insecure/plain/slow HTTP/1.1\r\nHost: a\r\n\r\n")
            try await backend.started.wait()
            switch way {
            case "reset":
                connection?.resetAtEnd()
                connection = nil
            case "half": connection?.closeOutput()
            default: connection = nil
            }
            try await backend.cancelled.wait()
            // The server goes on.
            let other = try RawConnection(port: port)
            await other.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(await other.readAnswer()?.hasPrefix("HTTP/1.1 200") == true)
        }
    }

    /// A client that closes its side has said all it wants, and waits for its answer.
    @Test(arguments: ["", "Connection: close\r\n"])
    func halfClosedClientsGetTheirAnswer(_ field: String) async throws {
        let backend = MemoryBackend()
        try await HTTPTestServer.live(backend) { port in
            let connection = try RawConnection(port: port)
            await connection.send("GET /insecure/plain/slow HTTP/1.1\r\nHost: a\r\n\(field)\r\n")
            try await backend.started.wait()
            connection.closeOutput()
            // The server notices it meanwhile.
            let other = try RawConnection(port: port)
            for _ in 0..<200 {
                await other.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(await other.readAnswer()?.hasPrefix("HTTP/1.1 200") == true)
            }
            backend.gate.open()
            #expect(await connection.readAnswer()?.hasPrefix("HTTP/1.1 200") == true)
        }
    }

    @Test func renderIsCancelledOnHummingbirdsOwnConnections() async throws {
        let backend = MemoryBackend()
        let router = Router(context: ImageRequestContext.self)
        router.add(HTTPTestServer.service(backend), at: "/images")
        try await Application(router: router, logger: HTTPTestServer.logger).test(.live) { client in
            let connection = try RawConnection(port: client.port ?? 0)
            for source in ["a", "b"] {
                await connection.send("GET /images/insecure/plain/\(source) HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(await connection.readAnswer()?.hasPrefix("HTTP/1.1 200") == true)
            }
            await connection.send("GET /images/insecure/plain/slow HTTP/1.1\r\nHost: a\r\n\r\n")
            try await backend.started.wait()
            connection.closeOutput()
            try await backend.cancelled.wait()
        }
    }

    @Test func serverEndsWhileConnectionsAreKept() async throws {
        // The tests of this suite would not end otherwise: idle connections are closed when the server stops.
        let kept = Kept()
        try await HTTPTestServer.live { port in
            let connection = try RawConnection(port: port)
            await connection.send(Self.lakeGet + "\r\n")
            _ = await connection.readAnswer()
            await kept.keep(connection)
        }
        #expect(await kept.connection?.readText() == "")
    }

    private actor Kept {
        var connection: RawConnection?

        func keep(_ connection: RawConnection) { self.connection = connection }
    }
}
