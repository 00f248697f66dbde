#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineNetwork

/// Each reply that is wrong is a typed error or the right result, and the next request works.
struct HostileServerTests {
    /// Serves `steps`, to any request but `/good`, which gets a good reply.
    private func load(
        _ steps: [LoopbackServer.Step], _ change: (inout HTTPRequest) -> Void = { _ in }
    ) async throws -> Result<[UInt8], NetworkError> {
        let server = try LoopbackServer { $0.target == "/good" ? [.reply(body: [1, 2, 3])] : steps }
        let loader = makeLoader()
        var request = patient(server.url("/bad"))
        request.maximumBodySize = .megabytes(1)
        change(&request)
        let result: Result<[UInt8], NetworkError>
        do throws(NetworkError) {
            result = .success(try await loader.load(request).body.collect())
        } catch {
            result = .failure(error)
        }
        let (_, good) = try await loader.whole(patient(server.url("/good")))
        #expect(good == [1, 2, 3])
        return result
    }

    private func error(_ text: String, then steps: [LoopbackServer.Step] = [.close]) async throws -> NetworkError? {
        switch try await load([.text(text)] + steps) {
        case .success(let bytes):
            Issue.record("loaded \(bytes.count) bytes")
            return nil
        case .failure(let error): return error
        }
    }

    @Test func cutAtEveryKilobyteIsTruncated() async throws {
        let whole = Array("HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n".utf8) + pattern(20_000)
        for cut in stride(from: 0, through: 20_000, by: 1000) {
            for end in [LoopbackServer.Step.close, .reset] {
                let result = try await load([.bytes(Array(whole[..<cut])), end])
                guard case .failure(.truncated(_, let received, _)) = result else {
                    Issue.record("cut at \(cut): \(result)")
                    continue
                }
                #expect(received.bytes < 20_000)
            }
        }
    }

    @Test func cutInChunksIsTruncated() async throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        for rest in ["", "5\r\nabc", "5\r\nabcde\r\n", "5\r\nabcde\r\n0\r\n"] {
            guard case .truncated = try await error(head + rest) else { Issue.record("\(rest)"); continue }
        }
    }

    @Test(arguments: ["-1", "abc", "1, 2", "99999999999999999999999", "0x10", "1\r\nContent-Length: 2"])
    func refusesWrongLengths(_ length: String) async throws {
        let error = try await error("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\nabcdefghij", then: [.close])
        switch error {
        case .invalidResponse, .truncated, .bodyTooLarge: break
        default: Issue.record("\(String(describing: error))")
        }
    }

    @Test func bytesBehindTheBodyAreNotPartOfIt() async throws {
        let result = try await load([.text("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n")])
        #expect(try result.get() == Array("abc".utf8))
    }

    @Test(arguments: [
        "zz\r\nabc\r\n0\r\n\r\n", "-5\r\nabcde\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFFF\r\nabc", "3\r\nabcdef\r\n0\r\n\r\n",
    ])
    func refusesWrongChunks(_ chunks: String) async throws {
        let error = try await error("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
        switch error {
        case .invalidResponse, .truncated: break
        default: Issue.record("\(String(describing: error))")
        }
    }

    @Test func endlessBodiesStopAtTheLimit() async throws {
        let chunk = Array("1000\r\n".utf8) + [UInt8](repeating: 65, count: 4096) + Array("\r\n".utf8)
        for steps: [LoopbackServer.Step] in [
            [.text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .endless(chunk)],
            [.text("HTTP/1.1 200 OK\r\n\r\n"), .endless(chunk)],
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000001\r\n\r\n"), .hang],
        ] {
            guard case .failure(.bodyTooLarge(_, .megabytes(1))) = try await load(steps) else {
                Issue.record("not refused")
                continue
            }
        }
    }

    @Test func collectingStopsAtItsOwnLimit() async throws {
        let server = try LoopbackServer { _ in
            [.text("HTTP/1.1 200 OK\r\n\r\n"), .endless([UInt8](repeating: 65, count: 4096))]
        }
        let response = try await makeLoader().load(patient(server.url("/")))
        guard case .bodyTooLarge = await failure({ _ = try await response.body.collect(upTo: .megabytes(2)) }) else {
            Issue.record("not refused")
            return
        }
        await server.waitUntilUnused()
    }

    @Test func endlessHeadersStopAtTheLimit() async throws {
        let many = String(repeating: "X-Field: value\r\n", count: 10_000)
        let long = "X-Field: " + String(repeating: "a", count: 70_000) + "\r\n"
        for lines in [many, long] {
            guard case .headerTooLarge = try await error("HTTP/1.1 200 OK\r\n" + lines + "\r\n") else {
                Issue.record("not refused")
                continue
            }
        }
        let result = try await load([.text("HTTP/1.1 200 OK\r\n"), .endless(Array("X: y\r\n".utf8))])
        guard case .failure(.headerTooLarge) = result else { Issue.record("\(result)"); return }
    }

    @Test(arguments: [
        "hello\r\n\r\n", "HTTP/0.9 200\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: \u{0}\r\n\r\n", "HTTP/1.1 99 OK\r\n\r\n", "HTTP/1.1 OK\r\n\r\n", "\r\n\r\n", "HTTP/1.1",
        "HTTP/1.1 200 OK\r\nContent-Encoding: rot13\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nA B: c\r\n\r\n",
    ])
    func refusesWhatIsNoHTTP(_ text: String) async throws {
        let error = try await error(text)
        switch error {
        case .invalidResponse, .truncated: break
        default: Issue.record("\(String(describing: error))")
        }
    }

    @Test func joinsFoldedLinesAndReadsLatin1() async throws {
        let server = try LoopbackServer { _ in
            [
                .text("HTTP/1.1 200 OK\r\nA: b\r\n  c\r\nL: caf"), .bytes([0xE9]),
                .text("\r\nContent-Length: 0\r\n\r\n"),
            ]
        }
        let (head, _) = try await makeLoader().whole(patient(server.url("/")))
        #expect(head.headers["A"] == "b c")
        #expect(head.headers["L"] == "café")
    }

    @Test func interimResponsesAreSwallowed() async throws {
        let result = try await load([
            .text("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"), .reply(body: [9]),
        ])
        #expect(try result.get() == [9])
    }

    @Test func silenceEndsByTheIdleTimeout() async throws {
        for steps: [LoopbackServer.Step] in [
            [.hang], [.text("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), .hang],
        ] {
            let result = try await load(steps) { $0.idleTimeout = .milliseconds(50) }
            guard case .failure(.timedOut(_, NetworkError.idleTimeout)) = result else { Issue.record("\(result)"); continue }
        }
    }

    @Test func dripEndsByTheTotalTimeout() async throws {
        // Never idle for long, never done.
        let result = try await load([.text("HTTP/1.1 200 OK\r\n\r\n"), .endless([65])]) {
            $0.totalTimeout = .milliseconds(100)
            $0.maximumBodySize = .unlimited
        }
        guard case .failure(.tookTooLong) = result else { Issue.record("\(result)"); return }
    }

    @Test func closedPortRefusesAndServesWhenItIsBack() async throws {
        let reserved = try ReservedPort(), port = reserved.number
        do { _ = try LoopbackServer(port: port) { _ in [.reply(body: [1])] } }
        let loader = makeLoader()
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/"))
        // The listener goes when its thread has noticed.
        var error: NetworkError?
        repeat { error = await failure { _ = try await loader.whole(HTTPRequest(url: url)) } } while error == nil
        switch error {
        case .notConnected, .truncated: break
        default: Issue.record("\(String(describing: error))")
        }
        let server = try LoopbackServer(port: port) { _ in [.reply(body: [2])] }
        #expect(try await loader.whole(patient(server.url("/"))).1 == [2])
        withExtendedLifetime(reserved) {}
    }

    @Test func unknownNamesAreTold() async throws {
        let url = try #require(URL(string: "http://no-such-host.invalid/"))
        let error = await failure { _ = try await makeLoader().load(patient(url)) }
        guard case .nameNotResolved(_, "no-such-host.invalid") = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func nothingIsLeftOpen() async throws {
        for _ in 0..<3 {
            let server = try LoopbackServer { request in
                switch request.target {
                case "/cut": [.text("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), .close]
                case "/reset": [.reset]
                case "/hang": [.text("HTTP/1.1 200 OK\r\n\r\nabc"), .hang]
                default: [.reply(body: pattern(5000))]
                }
            }
            do {
                let loader = makeLoader()
                for target in ["/cut", "/reset", "/hang", "/good", "/cut", "/good"] {
                    var request = patient(server.url(target))
                    request.idleTimeout = .milliseconds(20)
                    _ = await failure { _ = try await loader.whole(request) }
                }
            }
            await server.waitUntilUnused()
            // Closed by a thread of the loader's that may outlive it a little; nothing tells when.
            let port = server.port
            try await offPool {
                try waitUntil("all connections of the loader closed") { try Self.sockets(connectedTo: port) == 0 }
            }
        }
    }

    /// How many sockets of the machine are open to a port, by proc(5): local address, remote address, state, and as the
    /// tenth word the inode, which is 0 for those that nobody holds any more.
    private static func sockets(connectedTo port: Int) throws -> Int {
        let table = try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
        return table.split(separator: "\n").dropFirst().filter { line in
            let words = line.split(separator: " ")
            guard words.count > 9, let end = words[2].split(separator: ":").last else { return false }
            return Int(end, radix: 16) == port && words[9] != "0"
        }.count
    }

    // MARK: Bytes behind a body

    @Test(arguments: ["\r\n", "JUNK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nGREEN"], [true, false])
    func bytesBehindABodyAreNeverAnAnswer(_ junk: String, _ isLate: Bool) async throws {
        let hasRead = LoopbackServer.Barrier(), hasSent = LoopbackServer.Barrier(), turn = Counter()
        let server = try LoopbackServer { request in
            guard request.target == "/first" else { return [.reply(body: Array("right".utf8))] }
            turn.add(1)
            let reply = LoopbackServer.Step.reply(body: Array("first".utf8))
            return isLate ? [reply, .wait(hasRead), .text(junk), .wait(hasSent)] : [reply, .text(junk), .wait(hasSent)]
        }
        defer { hasSent.open() }
        let loader = makeLoader()
        #expect(try await loader.whole(patient(server.url("/first"))).1 == Array("first".utf8))
        hasRead.open()
        // The server cannot know when the bytes arrive. The client closes the connection when they do.
        hasSent.open()
        await server.waitUntilUnused()
        #expect(try await loader.whole(patient(server.url("/second"))).1 == Array("right".utf8))
        #expect(server.connectionCount == 2)
    }

    @Test func connectionsAreStillReused() async throws {
        let server = try LoopbackServer { _ in [.reply(body: [1, 2, 3])] }
        let loader = makeLoader()
        for _ in 0..<20 { #expect(try await loader.whole(patient(server.url("/"))).1 == [1, 2, 3]) }
        #expect(server.connectionCount == 1)
    }
}
#endif
