import Foundation
import Hummingbird
import HummingbirdCore
import NIOCore
import Testing

import VitrineServer

/// Slow and silent clients, and connections that no timer would end.
@Suite(.serialized) struct SlowClientTests {
    // MARK: The program

    private static let bodySize = 24_000_000
    private static let path = "/insecure/raw:1/plain/local:///large.bin"

    private static func start(
        _ directory: TemporaryDirectory, _ flags: [String]
    ) async throws -> (process: ServerProcess, port: Int, admin: Int) {
        let large = URL(filePath: directory.path + "/large.bin")
        try Data((0..<bodySize).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }).write(to: large)
        let process = try ServerProcess(ImageServerProcess.loopback + ["--local-root", directory.path] + flags)
        let ports = try await process.ports()
        return (process, ports.main, ports.admin)
    }

    /// Megabytes that a process has in memory.
    private static func memory(_ pid: pid_t) -> Int {
        let text = try? String(contentsOfFile: "/proc/\(pid)/statm", encoding: .utf8)
        let pages = text?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * 4_096 / 1_000_000
    }

    #if os(Linux)
    /// With a cache, clients share the bytes; without, each has its own.
    @Test(arguments: [("64MiB", 150), ("0", 12 * 24 + 250)])
    func answersThatNobodyReadsAreBounded(cache: String, limit: Int) async throws {
        let directory = try TemporaryDirectory()
        let (process, port, admin) = try await Self.start(directory, ["--send-timeout", "15", "--memory-cache", cache])
        #expect(try await get(port, Self.path, method: "HEAD").status == 200)
        let before = Self.memory(process.pid)
        // 12 × 40 × 24 MB, if answers were made ahead of their client.
        let clients = try await onThread {
            let request = "GET \(Self.path) HTTP/1.1\r\nHost: a\r\n\r\n"
            let clients = try (0..<12).map { _ in try PlainClient(port: port) }
            for client in clients { try client.send(String(repeating: request, count: 40)) }
            return ClientBox(clients)
        }
        @Sendable func connections() async throws -> Int {
            let metrics = try await get(admin, "/metrics").body
            let line = metrics.split(separator: "\n").first { $0.hasPrefix("vitrine_connections{listener=\"main\"}") }
            return line?.split(separator: " ").last.flatMap { Int($0) } ?? -1
        }
        try await eventually("all are connected") { try await connections() == 12 }
        var most = 0
        // The server is healthy meanwhile, and ends them although they stay.
        while try await connections() > 0 {
            most = max(most, Self.memory(process.pid))
            #expect(try await get(port, "/health").body == "ok\n")
        }
        #expect(most - before < limit, "\(before) MB, then \(most) MB")
        #expect(try await get(port, "/ready").status == 200)
        #expect(try await get(port, Self.path, method: "HEAD").fields["content-length"] == "\(Self.bodySize)")
        clients.removeAll()
        process.send(SIGTERM)
        #expect(try await process.waitUntilEnd() == 0, "\(process.output)")
    }

    @Test func aSlowClientThatReadsGetsItsWholeAnswer() async throws {
        let directory = try TemporaryDirectory()
        let (process, port, _) = try await Self.start(directory, ["--send-timeout", "2"])
        let (count, seconds) = try await onThread { () -> (Int, Double) in
            let client = try PlainClient(port: port)
            try client.send("GET \(Self.path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            let begin = ContinuousClock.now
            var count = 0
            while true {
                let part = try client.readPart(1_500_000)
                if part == 0 { break }
                count += part
                usleep(200_000)
            }
            return (count, (ContinuousClock.now - begin) / .seconds(1))
        }
        #expect(count > Self.bodySize && count < Self.bodySize + 2_000)
        // Longer than the limit for a client that reads nothing.
        #expect(seconds > 2.5)
        process.send(SIGTERM)
        #expect(try await process.waitUntilEnd() == 0)
    }
    #endif

    // MARK: HTTP/2

    /// The preface and SETTINGS with the window of a stream (RFC 9113, sections 3.4 and 6.5.2).
    private static func preface(window: UInt32) -> [UInt8] {
        let value = (0..<4).map { UInt8(truncatingIfNeeded: window >> (24 - 8 * $0)) }
        return Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4] + value
    }

    /// HEADERS of “GET /” (RFC 7541, appendix A), with the flags END_STREAM and END_HEADERS.
    private static let request: [UInt8] = [0, 0, 6, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84, 0x41, 1, 0x61]

    private static func large(_ request: Request, _ context: ServerRequestContext) -> Response {
        Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(repeating: 7, count: 50_000_000)))
    }

    @Test func connectionsWithoutStreamsEnd() async throws {
        try await TestServer.run({ $0.keepAliveTimeout = 1 }) { server in
            let port = server.port
            let types = try await onThread {
                let client = try PlainClient(port: port)
                try client.send(Self.preface(window: 65_535))
                // It answers nothing, neither the settings nor the PING behind GOAWAY.
                return try client.frameTypesUntilEnd()
            }
            #expect(types.contains(7))
            // A head that goes on and on: HEADERS without END_HEADERS is no stream yet.
            let isEnded = try await onThread {
                let client = try PlainClient(port: port)
                try client.send(Self.preface(window: 65_535) + [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82])
                return try !client.frameTypesUntilEnd().isEmpty
            }
            #expect(isEnded)
            #expect(try await get(port, "/a").status == 200)
        }
    }

    @Test func streamsWhoseClientTakesNothingEnd() async throws {
        try await TestServer.run({
            ($0.keepAliveTimeout, $0.sendTimeout) = (1, 1)
        }, respond: { Self.large($0, $1) }) { server in
            let port = server.port
            let types = try await onThread {
                let client = try PlainClient(port: port)
                try client.send(Self.preface(window: 0) + Self.request)
                return try client.frameTypesUntilEnd()
            }
            // HEADERS came, no DATA, and RST_STREAM ended the stream.
            #expect(types.contains(1) && !types.contains(0) && types.contains(3), "\(types)")
        }
    }

    @Test func connectionsThatAreNotReadEnd() async throws {
        let started = OpenSignal()
        try await TestServer.run({
            ($0.keepAliveTimeout, $0.sendTimeout) = (3600, 1)
        }, respond: { request, context in
            started.open()
            return Self.large(request, context)
        }) { server in
            let port = server.port
            let client = try await onThread {
                let client = try PlainClient(port: port)
                // Also the window of the connection is as large as it may be.
                let update: [UInt8] = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7F, 0xFE, 0, 0]
                try client.send(Self.preface(window: 0x7FFF_FFFF) + update + Self.request)
                return ClientBox([client])
            }
            // The connection may end before this task runs again.
            await started.wait()
            try await eventually("the connection has ended") {
                try await get(server.adminPort, "/metrics").body
                    .contains("vitrine_connections{listener=\"main\"} 0\n")
            }
            client.removeAll()
        }
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/curl"), "curl is not installed"))
    func largeAnswersOfHTTP2AreWhole() async throws {
        try await TestServer.run({ $0.sendTimeout = 1 }, respond: { Self.large($0, $1) }) { server in
            // Longer than the limit for a client that reads nothing.
            let (status, output) = try await run(
                "/usr/bin/curl",
                [
                    "-sS", "--http2-prior-knowledge", "--limit-rate", "20M", "-o", "/dev/null",
                    "-w", "%{size_download}", "http://127.0.0.1:\(server.port)/",
                ])
            #expect(status == 0 && output == "50000000", "\(output)")
        }
    }

    // MARK: Half-closed connections, and handshakes

    @Test(arguments: [true, false])
    func halfClosedConnectionsEnd(http2: Bool) async throws {
        try await TestServer.run({
            ($0.keepAliveTimeout, $0.http2) = (3600, http2)
        }) { server in
            let port = server.port
            for text in ["", "GE", "PRI * HT", "GET / HTTP/1.1\r\nHost:", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
                let answer = try await onThread {
                    let client = try PlainClient(port: port)
                    if !text.isEmpty { try client.send(text) }
                    client.closeOutput()
                    return client.readToEnd()
                }
                #expect(!answer.contains("200 OK"), "\(text.debugDescription)")
            }
            // A client that has said all it wants gets its answer.
            let answer = try await onThread {
                let client = try PlainClient(port: port)
                try client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
                client.closeOutput()
                return client.readToEnd()
            }
            #expect(answer.contains("200 OK") && answer.hasSuffix("/a"), "\(answer)")
        }
    }

    @Test(.enabled(
        if: FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl"), "openssl is not installed"))
    func handshakesThatDoNotEndAreEnded() async throws {
        let directory = try TemporaryDirectory()
        let (status, output) = try await run(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-keyout", directory.path + "/key", "-out", directory.path + "/certificate", "-days", "2",
                "-subj", "/CN=a",
            ])
        #expect(status == 0, "\(output)")
        for isHalfClosed in [false, true] {
            try await TestServer.run({
                ($0.tlsCertificate, $0.tlsKey) = (directory.path + "/certificate", directory.path + "/key")
                $0.keepAliveTimeout = isHalfClosed ? 3600 : 1
            }) { server in
                let port = server.port
                // Nothing, the beginning of a record, and the beginning of a ClientHello.
                let beginnings: [[UInt8]] = [[], [0x16, 3], [0x16, 3, 1, 0, 0xF0, 1, 0, 0, 0xEC, 3, 3]]
                for bytes in beginnings {
                    let answer = try await onThread {
                        let client = try PlainClient(port: port)
                        try client.send(bytes)
                        if isHalfClosed { client.closeOutput() }
                        return client.readToEnd()
                    }
                    #expect(!answer.contains("HTTP"))
                }
                try await eventually("no connection is left") {
                    try await get(server.adminPort, "/metrics").body
                        .contains("vitrine_connections{listener=\"main\"} 0\n")
                }
            }
        }
    }
}
