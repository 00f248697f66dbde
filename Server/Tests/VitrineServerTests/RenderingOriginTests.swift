#if os(Linux)
import Foundation
import ServerTestSupport
import Synchronization
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineServer

/// Origins that are slow, broken or hostile.
@Suite struct RenderingOriginTests {
    typealias Step = ScriptedOrigin.Step

    /// An answer of an origin, and the answer to the client.
    struct Case: Sendable, CustomStringConvertible {
        let name: String
        let status: Int
        let code: String
        let steps: [Step]
        var description: String { name }

        init(_ name: String, _ status: Int, _ code: String, _ steps: [Step]) {
            (self.name, self.status, self.code, self.steps) = (name, status, code, steps)
        }

        init(_ name: String, _ status: Int, _ code: String, _ text: String, _ rest: [Step] = [.close]) {
            self.init(name, status, code, [.text(text)] + rest)
        }
    }

    private static let page = Array("<!doctype html><html><body>no picture</body></html>".utf8)
    private static let zeros = [UInt8](repeating: 0, count: 16_384)
    private static let ok = "HTTP/1.1 200 OK\r\n"
    private static let huge = "Content-Length: 90000000000\r\n\r\n"
    private static let chunked = "Transfer-Encoding: chunked\r\n\r\n"

    static let cases: [Case] = [
        Case("declared too large", 413, "source-too-large", ok + huge, [.endless(zeros)]),
        Case("declared too large, silent", 413, "source-too-large", ok + huge, [.hang]),
        Case("endless", 413, "source-too-large", ok + "\r\n", [.endless(zeros)]),
        Case(
            "endless chunks", 413, "source-too-large", ok + "Transfer-Encoding: chunked\r\n\r\n",
            [.endless(Array("1000\r\n".utf8) + zeros.prefix(4_096) + [13, 10])]),
        Case("silent", 504, "source-timeout", [.hang]),
        Case("silent in the head", 504, "source-timeout", ok + "X: ", [.hang]),
        Case("silent in the body", 504, "source-timeout", ok + "Content-Length: 9000\r\n\r\nabc", [.hang]),
        Case("slow head", 504, "source-timeout", ok + "X: ", [.trickle([97])]),
        Case("slow body", 504, "source-timeout", ok + "\r\n", [.trickle([97])]),
        Case("endless head", 502, "source-invalid", ok, [.endless(Array("X-Field: abcdefghijklmnopq\r\n".utf8))]),
        Case("endless field", 502, "source-invalid", ok + "X: ", [.endless(Array("aaaaaaaaaaaaaaaaaaaaaaaa".utf8))]),
        Case("cut", 502, "source-truncated", ok + "Content-Length: 9000\r\n\r\nabc"),
        Case("cut chunks", 502, "source-truncated", ok + "Transfer-Encoding: chunked\r\n\r\n9000\r\nabc"),
        Case("cut before the last chunk", 502, "source-truncated", ok + chunked + "3\r\nabc\r\n"),
        Case("reset", 502, "source-truncated", ok + "Content-Length: 9000\r\n\r\nabc", [.reset]),
        Case("wrong chunk", 502, "source-truncated", ok + "Transfer-Encoding: chunked\r\n\r\nZZ\r\nabc\r\n"),
        Case("two lengths", 502, "source-invalid", ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
        Case("no number", 502, "source-invalid", ok + "Content-Length: many\r\n\r\nabcd"),
        Case("no HTTP", 502, "source-invalid", "220 mail.example ESMTP\r\n"),
        Case("wrong coding", 502, "source-invalid", ok + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"),
        Case("bomb of gzip", 413, "source-too-large", bomb("gzip", made(by: "gzip -9"))),
        Case("bomb of deflate", 413, "source-too-large", bomb("deflate", made(by: deflate))),
        Case("bomb of brotli", 413, "source-too-large", bomb("br", brotliZeros)),
        Case("bomb of zstd", 413, "source-too-large", bomb("zstd", zstdZeros)),
        Case("bomb in a bomb", 413, "source-too-large", bomb("gzip, gzip", made(by: "gzip -9 | gzip -9"))),
        Case("page", 422, "not-an-image", ScriptedOrigin.answer(page, ["Content-Type: text/html"])),
        Case("page as a picture", 422, "not-an-image", ScriptedOrigin.answer(page, ["Content-Type: image/jpeg"])),
        Case("empty", 422, "not-an-image", ScriptedOrigin.answer([])),
        Case("no content", 502, "source-failed", "HTTP/1.1 204 No Content\r\n\r\n"),
        Case("picture cut in its header", 422, "damaged-image", picture(200)),
        Case("missing", 404, "source-not-found", ScriptedOrigin.answer(page, status: 404)),
        Case("gone", 410, "source-gone", ScriptedOrigin.answer(page, status: 410)),
        Case("denied", 502, "source-denied", ScriptedOrigin.answer(page, status: 403)),
        Case("failing", 502, "source-failed", ScriptedOrigin.answer(page, status: 500)),
        Case("late", 504, "source-timeout", ScriptedOrigin.answer(page, status: 504)),
        Case("unasked 304", 502, "source-failed", "HTTP/1.1 304 Not Modified\r\n\r\n"),
        Case("redirect to itself", 502, "source-redirects", redirect("/hidden-name")),
        Case("redirect to nothing", 502, "source-failed", "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"),
        Case("redirect to a file", 403, "source-not-allowed", redirect("file:///etc/passwd")),
        Case("redirect to local", 403, "source-not-allowed", redirect("local:///lake.jpg")),
        Case("redirect to data", 403, "source-not-allowed", redirect("data:image/gif;base64,R0lGODlh")),
        Case("redirect to a network", 403, "source-not-allowed", redirect("http://10.0.0.1/hidden-name")),
        Case("redirect to metadata", 403, "source-not-allowed", redirect("http://169.254.169.254/latest")),
    ]

    private static func redirect(_ location: String) -> [Step] {
        [.text("HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n")]
    }

    private static func picture(_ count: Int) -> [Step] {
        ScriptedOrigin.answer(Array(((try? Samples.bytes("lake.jpg")) ?? []).prefix(count)))
    }

    /// A picture that is 64 MB of zeros when its coding is undone.
    private static func bomb(_ coding: String, _ body: [UInt8]) -> [Step] {
        ScriptedOrigin.answer(body, ["Content-Encoding: \(coding)"])
    }

    /// The output of a command for 64 MB of zeros.
    private static func made(by command: String) -> [UInt8] {
        (try? ChildProcess.run("/bin/sh", ["-c", "head -c 64000000 /dev/zero | \(command)"]).output) ?? []
    }

    private static let deflate =
        "python3 -c 'import sys, zlib; sys.stdout.buffer.write(zlib.compress(sys.stdin.buffer.read()))'"

    /// RFC 8878: a frame without a size, of 489 blocks that repeat one byte 131,072 times.
    private static let zstdZeros: [UInt8] =
        [0x28, 0xB5, 0x2F, 0xFD, 0, 0x58] + (0..<489).flatMap { [$0 == 488 ? 3 : 2, 0, 0x10, 0] }

    /// RFC 7932, as an encoder writes them.
    private static let brotliZeros = Array(
        Data(
            base64Encoded: "y///P/gnAOKxQCD3/o///3/wTwDEYRGA7v0f////4J8AiMMCAN37P/7//8E/ARCHBQC693/8//+D"
                + "fwIgDgsAdO//+P//B/8EQBwWAOje//H//w/+CYA4LADQvf/L/0co/BMAcVgAoHsIBQ==") ?? Data())

    @Test(arguments: cases)
    func originsThatFailAreErrorsOfTheirOwn(example: Case) async throws {
        let origin = try ScriptedOrigin { _ in example.steps }
        try await RunningServer.run({
            // Only what is slow by itself ends by its time.
            ($0.maximumSourceBytes, $0.downloadTimeout) = (2_000_000, example.status == 504 ? 0.5 : 60)
            $0.timeout = 60
        }) { server in
            let source = origin.url("hidden-name")
            let answer = try await server.get(source)
            #expect(answer.status == example.status && answer.code == example.code, "\(answer)")
            for secret in ["hidden-name", "127.0.0.1", "\(origin.port)", "10.0.0.1", "169.254", "/etc"] {
                #expect(!answer.body.contains(secret), "\(answer.body)")
                #expect(!answer.fields.values.contains { $0.contains(secret) }, "\(answer.fields)")
            }
            #expect(answer.fields["content-type"] == "application/json")
            let lifetime = answer.fields["cache-control"]?.split(separator: "=").last.flatMap { Int($0) } ?? 0
            #expect(lifetime <= 5, "\(answer.fields)")
            // What is too long is cut off while it comes: buffers of sockets are all that goes beyond the limit.
            #expect(origin.sentBytes < 16_000_000, "\(origin.sentBytes)")
            #expect(try await server.renderer.results.count(of: .original) == 0)
            // Another size does not ask again, and finds no place that is still held.
            let asked = origin.received.count
            #expect(try await server.get(source, "w:30").status == example.status)
            #expect(origin.received.count == asked)
            try await wait { server.isIdle }
            #expect(try await server.get("local:///leaf.png").status == 200)
        }
    }

    /// Bytes behind the declared end belong to no picture and to no later answer.
    @Test func bytesBehindTheEndAreNotUsed() async throws {
        let body = try Samples.bytes("leaf.png")
        let smuggled = "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
        let head = Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n".utf8)
        // All at once: what comes later looks like an answer to a request that was sent meanwhile.
        let origin = try ScriptedOrigin { _ in [.bytes(head + body + Array(smuggled.utf8))] }
        try await RunningServer.run { server in
            for name in ["a", "b", "c"] {
                let answer = try await server.get(origin.url(name))
                #expect(answer.status == 200)
            }
        }
    }

    @Test func aPictureCutInTheMiddleIsOneResultOrOneError() async throws {
        let whole = try Samples.bytes("lake.jpg")
        let origin = try ScriptedOrigin { _ in ScriptedOrigin.answer(Array(whole.prefix(whole.count / 2))) }
        try await RunningServer.run { server in
            let first = try await server.get(origin.url("a"))
            #expect(first.status == 422 && first.code == "damaged-image", "\(first.status) \(first.body.prefix(200))")
        }
    }

    // MARK: Credentials

    @Test func credentialsStayWithTheirHost() async throws {
        let body = try Samples.bytes("leaf.png")
        let other = try ScriptedOrigin { _ in ScriptedOrigin.answer(body) }
        let port = other.port
        let origin = try ScriptedOrigin { received in
            switch received.target {
            case "/other-port": Self.redirect("http://127.0.0.1:\(port)/a")
            case "/other-name": Self.redirect("http://localhost:\(port)/b")
            case "/same": Self.redirect("/picture")
            default: ScriptedOrigin.answer(body)
            }
        }
        try await RunningServer.run({
            $0.sourceHeaders = ["127.0.0.1": ["Authorization": "Bearer s3cret", "X-Token": "t0ken"]]
        }) { server in
            for name in ["same", "other-port", "other-name"] {
                let answer = try await server.get(origin.url(name))
                #expect(answer.status == 200, "\(name)")
            }
            let redirected = origin.received.filter { $0.target == "/picture" }
            #expect(redirected.count == 1 && redirected[0].head.contains("bearer s3cret"))
            #expect(other.received.count == 2)
            for received in other.received {
                #expect(!received.head.contains("s3cret") && !received.head.contains("t0ken"), "\(received.head)")
            }
        }
    }

    // MARK: Private addresses

    @Test func exceptionsOpenTheirOwnKindOfAddressOnly() async throws {
        let body = try Samples.bytes("leaf.png")
        let origin = try ScriptedOrigin { _ in ScriptedOrigin.answer(body) }
        func status(
            _ address: String, _ change: @Sendable @escaping (inout ServerConfiguration) -> Void
        ) async throws -> Int {
            let box = StatusBox()
            try await RunningServer.run({
                $0.allowLoopbackSources = false
                $0.downloadTimeout = 60
                change(&$0)
            }) { box.set(try await $0.get(address).status) }
            return box.value
        }
        let own = origin.url("a")
        #expect(try await status(own) { _ in } == 403)
        #expect(try await status(own) { $0.allowPrivateSources = true } == 403)
        #expect(try await status(own) { $0.allowLinkLocalSources = true } == 403)
        #expect(try await status("http://localhost:\(origin.port)/a") { $0.allowPrivateSources = true } == 403)
        #expect(origin.connections == 0)
        #expect(try await status(own) { $0.allowLoopbackSources = true } == 200)
        #expect(try await status("http://localhost:\(origin.port)/a") { $0.allowLoopbackSources = true } == 200)
        // Neither is open to this machine's metadata service or to networks.
        for address in ["http://169.254.169.254/a", "http://10.0.0.1/a", "http://[fe80::1]/a", "http://0.0.0.0/a"] {
            #expect(try await status(address) { $0.allowLoopbackSources = true } == 403, "\(address)")
        }
        for address in ["http://169.254.169.254/a", "http://127.0.0.1:9/a", "http://[::1]:9/a"] {
            #expect(try await status(address) { $0.allowPrivateSources = true } == 403, "\(address)")
        }
    }
}

private final class StatusBox: Sendable {
    private let status = Mutex(0)
    var value: Int { status.withLock { $0 } }
    func set(_ new: Int) { status.withLock { $0 = new } }
}
#endif
