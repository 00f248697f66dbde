import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServerTestSupport
import Synchronization
import Testing

import VitrineNetwork
import VitrineServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Runs a program. Returns its exit status and its output.
func run(_ program: String, _ arguments: [String]) async throws -> (status: Int32, output: String) {
    let process = try Program(program, arguments, mergesErrors: true)
    process.closeInput()
    await process.waitUntilEnd()
    return (process.status ?? 0, process.output)
}

private let hasCurl = FileManager.default.isExecutableFile(atPath: "/usr/bin/curl")
private let hasOpenSSL = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")

@Suite(.serialized) struct ListenerTests {
    @Test func answersRequestsWithIdentifiersAndDates() async throws {
        try await TestServer.run { server in
            let answer = try await get(server.port, "/a?b")
            #expect(answer.status == 200 && answer.body == "/a")
            #expect(answer.fields["date"]?.hasSuffix(" GMT") == true)
            #expect(answer.fields["x-request-id"]?.isEmpty == false)
            #expect(answer.fields["connection"] == nil)
            let own = try await get(server.port, "/a", ["X-Request-ID": "from-client.1"])
            #expect(own.fields["x-request-id"] == "from-client.1")
            let bad = try await get(server.port, "/a", ["X-Request-ID": "a b\"c"])
            #expect(bad.fields["x-request-id"] != "a b\"c")
            #expect(server.log.lines.contains { $0.contains("\"addresses\":\"127.0.0.1:\(server.port)\"") })
            try await eventually("requests are logged") { server.log.lines.count { $0.contains("\"request\"") } == 3 }
            let line = try #require(server.log.lines.first { $0.contains("from-client.1") })
            let values = try SettingValue.json(Data(line.utf8))
            #expect(values["status"] == .integer(200) && values["path"] == .text("/a"))
            #expect(values["client"] == .text("127.0.0.1"))
        }
    }

    @Test func datesAreInTheFixedForm() {
        // The example of RFC 9110, section 5.6.7.
        #expect(HTTPDate.text(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    @Test func healthNeedsNoWorkAndIsNotLogged() async throws {
        try await TestServer.run({ $0.rateLimit = 0.001; $0.rateBurst = 1 }) { server in
            for _ in 0..<20 {
                #expect(try await get(server.port, "/health").body == "ok\n")
                #expect(try await get(server.port, "/ready").body == "ready\n")
            }
            let head = try await get(server.port, "/health", method: "HEAD")
            #expect(head.status == 200 && head.fields["content-length"] == "3")
            #expect(!server.log.lines.contains { $0.contains("/health") })
            #expect(try await get(server.adminPort, "/ready").status == 200)
        }
    }

    @Test func errorsAreJSONWithoutDetails() async throws {
        struct Secret: Error {}
        try await TestServer.run(respond: { request, _ in
            if request.uri.path == "/known" {
                throw RequestError(422, code: "not-an-image", reason: "The source is not an image.")
            }
            throw Secret()
        }) { server in
            let known = try await get(server.port, "/known")
            #expect(known.status == 422)
            #expect(known.body == "{\"code\":\"not-an-image\",\"reason\":\"The source is not an image.\"}\n")
            #expect(known.fields["content-type"] == "application/json")
            let unknown = try await get(server.port, "/unknown")
            #expect(unknown.status == 500 && !unknown.body.contains("Secret"))
            #expect(unknown.body.contains("\"internal\""))
            #expect(server.log.lines.contains { $0.contains("\"level\":\"error\"") && $0.contains("Secret") })
        }
    }

    @Test func tooManyRequestsOfAClientAreRefused() async throws {
        try await TestServer.run({ configuration in
            configuration.rateLimit = 0.001
            configuration.rateBurst = 2
            configuration.trustedProxies = (try? [AddressRange("127.0.0.1")]) ?? []
        }) { server in
            for _ in 0..<2 { #expect(try await get(server.port, "/a").status == 200) }
            let refused = try await get(server.port, "/a")
            #expect(refused.status == 429 && refused.body.contains("\"rate-limit\""))
            let wait = try #require(Int(refused.fields["retry-after"] ?? ""))
            #expect((1...1_000).contains(wait))
            // Another client behind the same proxy.
            #expect(try await get(server.port, "/a", ["X-Forwarded-For": "192.0.2.1"]).status == 200)
            let metrics = try await get(server.adminPort, "/metrics").body
            #expect(metrics.contains("vitrine_refusals_total{reason=\"rate-limit\"} 1\n"))
            #expect(metrics.contains("vitrine_requests_total{route=\"image\",status=\"429\"} 1\n"))
        }
    }

    @Test func statusesHaveTheirPhrases() async throws {
        try await TestServer.run(respond: { request, _ in
            throw RequestError(Int(request.uri.path.dropFirst()) ?? 500, code: "any", reason: "Any.")
        }) { server in
            let port = server.port
            for (status, phrase) in [(404, "Not Found"), (422, "Unprocessable Entity"), (503, "Service Unavailable")] {
                let text = try await onThread {
                    let client = try PlainClient(port: port)
                    try client.send("GET /\(status) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    return client.readToEnd()
                }
                #expect(text.hasPrefix("HTTP/1.1 \(status) \(phrase)\r\n"), "\(text)")
            }
        }
    }

    @Test func malformedRequestsAreAnswered400() async throws {
        try await TestServer.run { server in
            let port = server.port
            for (text, wanted) in [
                ("GET / HTTP/1.1\r\nbad field\r\n\r\n", 400), ("\u{16}\u{3}\u{1}\r\n\r\n", 400),
                // Only HTTP/2 has the method.
                ("PRI / HTTP/1.1\r\nx y\r\n\r\n", 505),
            ] {
                let status = try await onThread {
                    let client = try PlainClient(port: port)
                    try client.send(text)
                    return try client.answer().status
                }
                #expect(status == wanted, "\(text.debugDescription)")
            }
            #expect(try await get(port, "/a").status == 200)
        }
    }

    @Test func headsAreBoundedInSizeAndTime() async throws {
        try await TestServer.run({
            $0.maximumHeaderBytes = 4096
            $0.keepAliveTimeout = 1
        }) { server in
            let port = server.port
            let long = try await get(port, "/" + String(repeating: "a", count: 10_000))
            #expect(long.status == 400 || long.status == 431 || long.status == 414)
            // A client that sends nothing, and one that stops within its request.
            for text in ["", "GE", "GET / HTTP/1.1\r\nHost:"] {
                let isClosed = try await onThread {
                    let client = try PlainClient(port: port)
                    if !text.isEmpty { try client.send(text) }
                    return try client.isAtEnd()
                }
                #expect(isClosed, "\(text.debugDescription)")
            }
            // An idle connection.
            let isClosed = try await onThread {
                let client = try PlainClient(port: port)
                _ = try client.request("/a")
                return try client.isAtEnd()
            }
            #expect(isClosed)
        }
    }

    @Test func connectionsAreBounded() async throws {
        try await TestServer.run({ $0.maximumConnections = 2 }) { server in
            let port = server.port
            let clients = try await onThread {
                let clients = try (0..<2).map { _ in try PlainClient(port: port) }
                for client in clients { _ = try client.request("/a") }
                return ClientBox(clients)
            }
            let waiting = Task { try await get(port, "/b") }
            try await Task.sleep(for: .milliseconds(100))
            let metrics = try await get(server.adminPort, "/metrics").body
            #expect(metrics.contains("vitrine_connections{listener=\"main\"} 2\n"))
            clients.removeAll()
            #expect(try await waiting.value.status == 200)
        }
    }

    @Test func unixSocketsAreServedAndRemoved() async throws {
        let path = "/tmp/vitrine-\(UUID().uuidString.prefix(8)).sock"
        try await TestServer.run({ $0.bind = [.unix(path)] }) { _ in
            let answer = try await onThread { try PlainClient(path: path).request("/a") }
            #expect(answer.status == 200)
            // A second server must not take it.
            await #expect(throws: ConfigurationError("bind: unix:\(path) is in use by another program")) {
                try await TestServer.run({ $0.bind = [.unix(path)] }) { _ in }
            }
            #expect(try await onThread { try PlainClient(path: path).request("/a") }.status == 200)
        }
        #expect(!FileManager.default.fileExists(atPath: path))
        // The socket of a program that was killed is no obstacle, another file is.
        let left = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafeBytes(of: &address) { bytes in
            bytes.baseAddress.map {
                Glibc.bind(left, $0.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
            }
        }
        #expect(bound == 0)
        close(left)
        try await TestServer.run({ $0.bind = [.unix(path)] }) { _ in
            let answer = try await onThread { try PlainClient(path: path).request("/a") }
            #expect(answer.status == 200)
        }
        try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
        defer { unlink(path) }
        await #expect(throws: ConfigurationError("bind: unix:\(path) is a file that is not a socket")) {
            try await TestServer.run({ $0.bind = [.unix(path)] }) { _ in }
        }
        #expect(FileManager.default.contents(atPath: path) == Data("precious".utf8))
    }

    @Test func addressesThatCannotBeUsedAreNamed() async throws {
        try await TestServer.run { server in
            let port = server.port
            for (change, reason): ((inout ServerConfiguration) -> Void, String) in [
                (
                    { $0.bind = [.tcp(host: "127.0.0.1", port: port)] },
                    "bind: 127.0.0.1:\(port) is in use by another program"
                ),
                (
                    { $0.adminBind = [.tcp(host: "127.0.0.1", port: port)] },
                    "admin-bind: 127.0.0.1:\(port) is in use by another program"
                ),
                (
                    {
                        $0.allowUnsigned = true
                        $0.bind = [.tcp(host: "192.0.2.1", port: 0)]
                    }, "bind: 192.0.2.1:0 is not an address of this machine"
                ),
            ] {
                await #expect(throws: ConfigurationError(reason)) { try await TestServer.run(change) { _ in } }
            }
        }
    }

    @Test(.enabled(if: hasCurl, "curl is not installed"))
    func clientsMaySpeakHTTP2InCleartext() async throws {
        try await TestServer.run { server in
            let (status, output) = try await run(
                "/usr/bin/curl",
                [
                    "-sS", "--http2-prior-knowledge", "-w", " %{http_version} %{http_code}",
                    "http://127.0.0.1:\(server.port)/a/b",
                ])
            #expect(status == 0 && output == "/a/b 2 200", "\(output)")
        }
        try await TestServer.run({ $0.http2 = false }) { server in
            let (status, _) = try await run(
                "/usr/bin/curl", ["-sS", "--http2-prior-knowledge", "http://127.0.0.1:\(server.port)/a/b"])
            #expect(status != 0)
            #expect(try await get(server.port, "/a").status == 200)
        }
    }

    /// A self-signed certificate with this name, and its key.
    private func certificate(_ name: String, in directory: URL) async throws -> (certificate: String, key: String) {
        let certificate = directory.appendingPathComponent("\(name).pem").path
        let key = directory.appendingPathComponent("\(name).key").path
        let (status, output) = try await run(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                "-out", certificate, "-days", "2", "-subj", "/CN=\(name)", "-addext", "subjectAltName=IP:127.0.0.1",
            ])
        #expect(status == 0, "\(output)")
        return (certificate, key)
    }

    private func temporaryDirectory() throws -> URL {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        return directory
    }

    @Test(.enabled(if: hasCurl && hasOpenSSL, "curl or openssl is not installed"))
    func certificatesAreReloadedWithoutAnInterruption() async throws {
        let directory = try temporaryDirectory()
        defer { try? FileManager.default.removeItem(at: directory) }
        let first = try await certificate("first", in: directory)
        let second = try await certificate("second", in: directory)
        let used = (certificate: directory.path + "/used.pem", key: directory.path + "/used.key")
        func use(_ files: (certificate: String, key: String)) throws {
            for (from, to) in [(files.certificate, used.certificate), (files.key, used.key)] {
                try Data(contentsOf: URL(fileURLWithPath: from)).write(to: URL(fileURLWithPath: to))
            }
        }
        func fetch(_ port: Int, trusting certificate: String, _ more: [String] = []) async throws -> String {
            let (status, output) = try await run(
                "/usr/bin/curl",
                ["-sS", "--cacert", certificate, "-w", " %{http_version}"] + more + ["https://127.0.0.1:\(port)/a"])
            return status == 0 ? output : "status \(status)"
        }
        try use(first)
        try await TestServer.run({ ($0.tlsCertificate, $0.tlsKey) = used }) { server in
            let port = server.port
            #expect(try await fetch(port, trusting: first.certificate) == "/a 2")
            #expect(try await fetch(port, trusting: first.certificate, ["--http1.1"]) == "/a 1.1")
            #expect(try await fetch(port, trusting: second.certificate) == "status 60")
            // Without TLS, the connection ends; the server goes on.
            await #expect(throws: PlainClient.Failure.self) { try await get(port, "/a") }

            var configuration = ServerConfiguration()
            (configuration.tlsCertificate, configuration.tlsKey) = used
            let same = configuration
            try use(second)
            await server.server.reload { same }
            #expect(try await fetch(port, trusting: second.certificate) == "/a 2")
            #expect(try await fetch(port, trusting: first.certificate) == "status 60")

            // A key of another certificate changes nothing.
            try use((second.certificate, first.key))
            await server.server.reload { same }
            #expect(try await fetch(port, trusting: second.certificate) == "/a 2")
            #expect(server.log.lines.contains { $0.contains("is not the key of") })
            let metrics = try await get(server.adminPort, "/metrics").body
            #expect(metrics.contains("vitrine_reloads_total{result=\"success\"} 1\n"))
            #expect(metrics.contains("vitrine_reloads_total{result=\"failure\"} 1\n"))
        }
    }

    @Test func filesThatAreNoCertificatesAreNamed() throws {
        #expect(throws: ConfigurationError("tls-certificate: /dev/null is not a PEM file of certificates")) {
            try TLSContext(certificate: "/dev/null", key: "/dev/null", http2: true)
        }
    }

    // MARK: Stopping

    @Test func keepAliveClientsLoseNoRequestWhenTheServerStops() async throws {
        let load = KeepAliveLoad()
        try await TestServer.run({
            $0.lameDuck = 300
            $0.logRequests = false
        }) { server in
            load.start(clients: 8, port: server.port, path: "/a", reconnects: true)
            load.start(clients: 8, port: server.port, path: "/a", reconnects: false)
            let port = server.port
            let adminPort = server.adminPort
            // It says nothing until the server has stopped.
            let idle = try await onThread {
                let client = try PlainClient(port: port)
                _ = try client.request("/a")
                return ClientBox([client])
            }
            try await eventually("clients are served") { load.answered > 500 }
            #expect(load.closed == 0)
            server.server.stop()
            try await eventually("clients are told to leave") { load.closed > 16 }
            #expect(try await get(port, "/ready").status == 503)
            #expect(try await get(adminPort, "/ready").body == "draining\n")
            #expect(try await get(port, "/health").status == 200)
            let answer = try await get(port, "/new-connection")
            #expect(answer.status == 200 && answer.fields["connection"] == "close")
            let closed = load.closed
            try await eventually("more clients are told") { load.closed > closed + 8 }
            load.stop()
            try await eventually("clients have ended") { !load.isRunning }
            server.server.endLameDuck()
            let isClosed = try await onThread { try idle.isAtEnd() }
            #expect(isClosed)
        }
        #expect(load.failures.isEmpty, "\(load.failures)")
        #expect(load.closed >= 16)
    }

    @Test func requestsUnderWayAreAnsweredAfterTheSocketIsClosed() async throws {
        let gate = OpenSignal()
        let started = Mutex(0)
        try await TestServer.run(respond: { request, _ in
            started.withLock { $0 += 1 }
            await gate.wait()
            return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: "late")))
        }) { server in
            let port = server.port
            let waiting = (0..<4).map { _ in Task { try await get(port, "/slow") } }
            try await eventually("requests are under way") { started.withLock { $0 } == 4 }
            let debug = try await get(server.adminPort, "/debug").body
            #expect(debug.components(separatedBy: "\"path\":\"/slow\"").count == 5)
            server.server.stop()
            try await eventually("the socket is closed") {
                do {
                    _ = try await get(port, "/health")
                    return false
                } catch PlainClient.Failure.connect {
                    return true
                } catch {
                    return false
                }
            }
            gate.open()
            for task in waiting {
                let answer = try await task.value
                #expect(answer.status == 200 && answer.body == "late")
                #expect(answer.fields["connection"] == "close")
            }
        }
    }

    /// A connection may be accepted just before the socket closes, while the loop that is to serve it is busy.
    @Test func connectionsThatAreAcceptedDuringTheStopAreAnsweredOrClosed() async throws {
        for _ in 0..<20 {
            let load = KeepAliveLoad()
            try await TestServer.run({ $0.logRequests = false }) { server in
                for _ in 0..<8 { load.startConnecting(port: server.port) }
                try await eventually("clients are served") { load.answered > 40 }
                let isStopped = Mutex(false)
                for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() {
                    Thread.detachNewThread {
                        while !isStopped.withLock({ $0 }) { _ = try? loop.submit { usleep(5000) }.wait() }
                    }
                }
                server.server.stop()
                try await eventually("clients have ended") { !load.isRunning }
                isStopped.withLock { $0 = true }
            }
            #expect(load.failures.isEmpty, "\(load.failures)")
        }
    }

    @Test func requestsThatTakeTooLongDoNotHoldTheServer() async throws {
        let gate = OpenSignal()
        let clock = ContinuousClock()
        var took = Duration.zero
        let started = Mutex(false)
        try await TestServer.run({ $0.stopTimeout = 0.2 }, respond: { _, _ in
            started.withLock { $0 = true }
            await withTaskCancellationHandler { await gate.wait() } onCancel: { gate.open() }
            return Response(status: .ok)
        }) { server in
            let port = server.port
            let waiting = Task { try await get(port, "/slow") }
            try await eventually("the request is under way") { started.withLock { $0 } }
            let begin = clock.now
            server.server.stop()
            await #expect(throws: PlainClient.Failure.closed) { try await waiting.value }
            took = clock.now - begin
            gate.open()
        }
        #expect(took < .seconds(10))
    }

    @Test(.enabled(if: hasCurl, "curl is not installed"))
    func clientsOfHTTP2AreServedWhileTheServerStops() async throws {
        let gate = OpenSignal()
        try await TestServer.run({ $0.lameDuck = 300 }, respond: { request, _ in
            if request.uri.path == "/slow" { await gate.wait() }
            return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: "done")))
        }) { server in
            let url = "http://127.0.0.1:\(server.port)"
            let slow = Task { try await run("/usr/bin/curl", ["-sS", "--http2-prior-knowledge", "\(url)/slow"]) }
            let metrics = server.server.metrics
            try await eventually("the request is under way") { metrics.inFlight.current == 1 }
            server.server.stop()
            let drain = server.server.drain
            try await eventually("the server stops") { drain.isDraining }
            let new = try await run("/usr/bin/curl", ["-sS", "--http2-prior-knowledge", "\(url)/new"])
            #expect(new.output == "done")
            server.server.endLameDuck()
            gate.open()
            #expect(try await slow.value.output == "done")
        }
    }

    // MARK: Reload and administration

    @Test func reloadAppliesWhatMayChange() async throws {
        let seen = Mutex<[Int]>([])
        let refuse = Mutex(false)
        try await TestServer.run(reload: { configuration in
            if refuse.withLock({ $0 }) { throw ConfigurationError("presets: no") }
            seen.withLock { $0.append(configuration.quality) }
        }) { server in
            var new = ServerConfiguration()
            new.quality = 55
            new.workers = 7
            new.rateLimit = 0.001
            new.rateBurst = 1
            let first = new
            await server.server.reload { first }
            #expect(seen.withLock { $0 } == [55])
            #expect(server.log.lines.contains { $0.contains("need a restart") && $0.contains("workers") })
            let config = try await get(server.adminPort, "/config").body
            #expect(config.contains("\"quality\":55") && config.contains("\"workers\":0"))
            #expect(try await get(server.port, "/a").status == 200)
            #expect(try await get(server.port, "/a").status == 429)

            // A refused configuration changes nothing.
            refuse.withLock { $0 = true }
            new.quality = 66
            let second = new
            await server.server.reload { second }
            await server.server.reload { throw ConfigurationError("quality: no") }
            #expect(try await get(server.adminPort, "/config").body.contains("\"quality\":55"))
            #expect(server.log.lines.count { $0.contains("is not reloaded") } == 2)
        }
    }

    @Test func adminPathsAnswer() async throws {
        let purged = Mutex<[PurgeRequest]>([])
        try await TestServer.run({
            $0.thumborKey = "topsecret"
        }, purge: { request in
            purged.withLock { $0.append(request) }
            if request == .tag("broken") { throw RequestError(500, code: "x", reason: "y") }
            return 3
        }) { server in
            let port = server.adminPort
            let metrics = try await get(port, "/metrics")
            #expect(metrics.fields["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
            #expect(metrics.body.contains("vitrine_connections{listener=\"admin\"} 1\n"))
            #expect(metrics.body.contains("vitrine_draining 0\n"))
            #expect(try await get(port, "/health").body == "ok\n")
            let config = try await get(port, "/config").body
            #expect(config.contains("\"thumbor-key\":\"***\"") && !config.contains("topsecret"))
            #expect(
                try await get(port, "/debug").body
                    == "{\"draining\":false,\"errors\":[],\"in_flight\":[],\"slowest\":[]}\n")
            #expect(try await get(port, "/nothing").status == 404)
            let wrong = try await get(port, "/purge")
            #expect(wrong.status == 405 && wrong.fields["allow"] == "POST")
            #expect(try await get(port, "/metrics", method: "POST").status == 405)

            let type = ["Content-Type": "application/json"]
            for (body, request) in [
                ("{\"source\":\"https://a/b\"}", PurgeRequest.source("https://a/b")),
                ("{\"prefix\":\"https://a/\"}", .prefix("https://a/")), ("{\"tag\":\"t\"}", .tag("t")),
                ("{\"all\":true}", .all),
            ] {
                let answer = try await get(port, "/purge", method: "POST", type, body: body)
                #expect(answer.status == 200 && answer.body == "{\"purged\":3}\n")
                #expect(purged.withLock { $0.last } == request)
            }
            let count = purged.withLock { $0.count }
            for body in ["{}", "[]", "{\"all\":false}", "{\"source\":\"\"}", "{\"source\":\"a\",\"all\":true}", "x"] {
                #expect(try await get(port, "/purge", method: "POST", type, body: body).status == 400, "\(body)")
            }
            // What a page in a browser can send.
            let all = "{\"all\":true}"
            for fields in [["Content-Type": "text/plain"], type.merging(["Origin": "http://a"]) { $1 }] {
                #expect(try await get(port, "/purge", method: "POST", fields, body: all).status == 415)
            }
            #expect(purged.withLock { $0.count } == count)
            #expect(try await get(port, "/purge", method: "POST", type, body: "{\"tag\":\"broken\"}").status == 500)
        }
        try await TestServer.run { server in
            let answer = try await get(
                server.adminPort, "/purge", method: "POST", ["Content-Type": "application/json"],
                body: "{\"all\":true}")
            #expect(answer.status == 501)
        }
    }
}
