import Foundation
import HTTPTypes
import NIOCore
import ServerTestSupport
import Synchronization
import Testing
import VitrineImaging
import VitrineServer

/// The whole program by real HTTP. Each answer is asked for twice where that matters: made, and from memory.
@Suite struct HTTPProgramTests {
    private static let lake = "/insecure/rs:fit:120:120/plain/local:///lake.jpg"

    /// A URL of a picture that stays fresh for an hour. Files are looked at again each second.
    private static func lasting(_ origin: Origin) -> String {
        "/insecure/rs:fit:120:120/plain/\(origin.url("lake.jpg"))"
    }

    private static func maximumAge(_ reply: HTTPReply) -> Int? {
        guard let text = reply["cache-control"], let range = text.range(of: "max-age=") else { return nil }
        return Int(text[range.upperBound...].prefix { $0.isNumber })
    }

    private static func root(_ files: [String: String]) throws -> String {
        let root = NSTemporaryDirectory() + "vitrine-http-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        for (name, text) in files { try Data(text.utf8).write(to: URL(filePath: root + "/" + name)) }
        return root
    }

    // MARK: Representations

    @Test func formatFollowsAcceptFromMemoryToo() async throws {
        let origin = try await Origin.samples()
        defer { withExtendedLifetime(origin) {} }
        let lake = Self.lasting(origin)
        try await ImageProgram.run { program in
            let connection = try program.connect()
            let wishes = [
                ("image/webp,*/*;q=0.8", "image/webp"), ("image/avif;q=0.2,image/webp;q=0.7", "image/webp"),
                ("image/png;q=0.9", "image/png"),
                // Everyone knows both, so that the source decides, or old browsers would get photos as PNG.
                ("image/png;q=0.9,image/*;q=0.5", "image/jpeg"),
            ]
            var tags: [String] = []
            for turn in 0..<3 {
                for (accept, type) in wishes {
                    let reply = try await connection.ask(lake, [("Accept", accept)])
                    #expect(reply.status == 200 && reply["content-type"] == type, "\(accept) in turn \(turn)")
                    #expect(reply["vary"] == "Accept")
                    #expect(reply["x-content-type-options"] == "nosniff")
                    #expect(reply["date"] != nil && reply["x-request-id"]?.isEmpty == false)
                    #expect(reply.body.count == reply["content-length"].flatMap { Int($0) })
                    if turn > 0 { #expect(reply["cache-status"] == "vitrine; hit; detail=memory") }
                    tags.append(reply["etag"] ?? "")
                }
            }
            #expect(Set(tags).count == 3 && tags.allSatisfy { $0.hasPrefix("\"") && $0.count > 20 })
            #expect(Array(tags[0..<4]) == Array(tags[8..<12]))
            // A URL that names its format does not vary.
            let named = try await connection.ask(lake + "@png", [("Accept", "image/webp")])
            #expect(named["content-type"] == "image/png" && named["vary"] == nil)
        }
    }

    @Test func hintsSetRatioAndWidth() async throws {
        try await ImageProgram.run { $0.clientHints = true } _: { program in
            for _ in 0..<2 {
                let plain = try await program.ask(Self.lake + "@png")
                let dense = try await program.ask(Self.lake + "@png", [("Sec-CH-DPR", "2")])
                #expect(plain["accept-ch"]?.contains("Sec-CH-DPR") == true)
                #expect(plain["vary"]?.contains("Sec-CH-DPR") == true)
                #expect(plain["etag"] != dense["etag"])
                #expect(dense.body.count > plain.body.count)
            }
        }
    }

    @Test func conditionsHoldForMadeAndKeptResults() async throws {
        try await ImageProgram.run { program in
            let first = try await program.ask(Self.lake)
            let tag = try #require(first["etag"])
            let date = try #require(first["last-modified"])
            #expect(first["accept-ranges"] == "bytes")
            for _ in 0..<2 {
                let connection = try program.connect()
                let conditions = [
                    ("If-None-Match", tag), ("If-None-Match", "\"x\", W/\(tag)"), ("If-None-Match", "*"),
                    ("If-Modified-Since", date),
                ]
                for condition in conditions {
                    let reply = try await connection.ask(Self.lake, [condition])
                    #expect(reply.status == 304, "\(condition)")
                    #expect(reply["etag"] == tag && reply["cache-control"] == first["cache-control"])
                    #expect(reply["content-length"] == nil && reply["vary"] == "Accept")
                }
                let other = try await connection.ask(
                    Self.lake, [("If-None-Match", "\"x\""), ("If-Modified-Since", date)])
                #expect(other.status == 200 && other.body == first.body)
                let head = try await connection.ask(Self.lake, method: "HEAD")
                #expect(head.status == 200 && head["content-length"] == String(first.body.count))
                #expect(head["etag"] == tag && head.body.isEmpty)
                // The connection is still in step.
                #expect(try await connection.ask(Self.lake).body == first.body)
            }
        }
    }

    @Test func rangesOfStoredResultsAreSent() async throws {
        try await ImageProgram.run { program in
            let connection = try program.connect()
            let whole = try await connection.ask(Self.lake)
            let tag = try #require(whole["etag"])
            let count = whole.body.count
            func ask(_ range: String, _ more: [(String, String)] = []) async throws -> HTTPReply {
                try await connection.ask(Self.lake, [("Range", range)] + more)
            }
            let part = try await ask("bytes=10-29")
            #expect(part.status == 206 && part.body == Array(whole.body[10..<30]))
            #expect(part["content-range"] == "bytes 10-29/\(count)" && part["etag"] == tag)
            #expect(try await ask("bytes=-5").body == Array(whole.body.suffix(5)))
            #expect(try await ask("bytes=10-29", [("If-Range", tag)]).status == 206)
            #expect(try await ask("bytes=10-29", [("If-Range", "\"other\"")]).body == whole.body)
            #expect(try await ask("bytes=0-1,3-4").status == 200)
            let beyond = try await ask("bytes=\(count)-")
            #expect(beyond.status == 416 && beyond["content-range"] == "bytes */\(count)")
            #expect(beyond.text.contains("\"code\":\"range-not-satisfiable\""))
        }
    }

    @Test func nameAndAttachmentAreSent() async throws {
        try await ImageProgram.run { program in
            for _ in 0..<2 {
                let saved = try await program.ask("/insecure/w:60/fn:lake%20view/att:1/plain/local:///lake.jpg@png")
                #expect(saved["content-disposition"] == "attachment; filename=\"lake view.png\"")
                let shown = try await program.ask("/insecure/w:60/plain/local:///lake.jpg@png")
                #expect(shown["content-disposition"] == nil)
                // A buster makes another URL of the same picture.
                let busted = try await program.ask("/insecure/w:60/cb:2/plain/local:///lake.jpg@png")
                #expect(busted.status == 200 && busted["etag"] == shown["etag"])
            }
        }
    }

    @Test func rawDocumentsCannotRunScripts() async throws {
        let root = try Self.root([
            "a.svg": "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><script>1</script></svg>",
            "a.html": "<!doctype html><script>alert(1)</script>",
        ])
        defer { try? FileManager.default.removeItem(atPath: root) }
        try await ImageProgram.run { $0.localRoot = root } _: { program in
            for _ in 0..<2 {
                let picture = try await program.ask("/insecure/raw:1/plain/local:///a.svg")
                #expect(picture.status == 200 && picture["content-type"] == "image/svg+xml")
                let page = try await program.ask("/insecure/raw:1/plain/local:///a.html")
                #expect(page["content-type"] == "application/octet-stream")
                for reply in [picture, page] {
                    let policy = reply["content-security-policy"] ?? ""
                    #expect(policy.contains("sandbox") && policy.contains("default-src 'none'"))
                    #expect(reply["x-content-type-options"] == "nosniff")
                }
            }
        }
    }

    /// A browser expands a compressed drawing only if the answer says that it is one.
    @Test func rawCompressedDrawingsSayTheirCoding() async throws {
        let root = try Self.root(["a.svg": "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>"])
        defer { try? FileManager.default.removeItem(atPath: root) }
        let packed = try ChildProcess.run("/bin/gzip", ["-nc", root + "/a.svg"]).output
        try Data(packed).write(to: URL(filePath: root + "/b.svgz"))
        try await ImageProgram.run { $0.localRoot = root } _: { program in
            for _ in 0..<2 {
                let plain = try await program.ask("/insecure/raw:1/plain/local:///a.svg")
                #expect(plain.status == 200 && plain["content-encoding"] == nil)
                let picture = try await program.ask("/insecure/raw:1/plain/local:///b.svgz")
                #expect(picture.status == 200 && picture["content-type"] == "image/svg+xml")
                #expect(picture["content-encoding"] == "gzip" && picture.body == packed)
            }
        }
    }

    @Test func descriptionsAreJSONInBothGrammars() async throws {
        try await ImageProgram.run { program in
            let paths = [
                "/info/insecure/plain/local:///lake.jpg", "/thumbor/unsafe/meta/120x0/local:///lake.jpg",
            ]
            for path in paths {
                for _ in 0..<2 {
                    let reply = try await program.ask(path)
                    #expect(reply.status == 200 && reply["content-type"] == "application/json", "\(path)")
                    #expect(reply.text.contains("\"width\"") && reply.text.contains("\"height\""))
                    #expect(reply["etag"] != nil && reply["content-security-policy"]?.hasPrefix("sandbox;") == true)
                }
            }
        }
    }

    @Test func cheaperFormatIsSentFirstAndNotKeptForLong() async throws {
        try await ImageProgram.run { $0.encodeDeadline = 0.0001 } _: { program in
            let fields = [("Accept", "image/avif,image/webp")]
            let path = "/insecure/rs:fit:400:400/plain/local:///lake.jpg"
            let first = try await program.ask(path, fields)
            #expect(first.status == 200 && first["content-type"] == "image/webp")
            #expect(try #require(Self.maximumAge(first)) <= 10)
            try await wait { try await program.ask(path, fields)["content-type"] == "image/avif" }
            let better = try await program.ask(path, fields)
            #expect(try #require(Self.maximumAge(better)) > 10)
        }
    }

    private func wait(until condition: () async throws -> Bool) async throws {
        while try await !condition() { try await Task.sleep(for: .milliseconds(5)) }
    }

    // MARK: Lifetimes

    @Test func lifetimeComesFromConfigurationSourceOrURL() async throws {
        let origin = try await Origin.start { request in
            let body = (try? Samples.bytes("leaf.png")) ?? []
            let control =
                switch request.path {
                case "/hundred": "max-age=100"
                case "/private": "private, max-age=100"
                case "/never": "no-store"
                default: ""
                }
            var fields = [("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]
            if !control.isEmpty { fields.append(("Cache-Control", control)) }
            return Origin.Answer(headers: fields, body: body)
        }
        func path(_ name: String, _ options: String = "w:20") -> String {
            "/insecure/\(options)/plain/\(origin.url(name))"
        }
        try await ImageProgram.run { $0.ttl = 5000 } _: { program in
            for name in ["hundred", "silent"] {
                let reply = try await program.ask(path(name))
                #expect(reply["cache-control"] == "public, max-age=5000")
                #expect(reply["last-modified"] == "Sun, 06 Nov 1994 08:49:37 GMT")
            }
            let end = Int(Date().timeIntervalSince1970) + 50
            for _ in 0..<2 {
                let reply = try await program.ask(path("hundred", "w:20/exp:\(end)"))
                #expect((1...50).contains(try #require(Self.maximumAge(reply))))
            }
            let expired = try await program.ask(path("hundred", "w:20/exp:1000000000"))
            #expect(expired.status == 404 && expired.text.contains("\"code\":\"expired\""))
        }
        let passes: (inout ServerConfiguration) -> Void = {
            $0.ttl = 5000
            $0.cacheControlPassthrough = true
        }
        try await ImageProgram.run(passes) { program in
            for _ in 0..<2 {
                let hundred = try await program.ask(path("hundred"))
                #expect((1...100).contains(try #require(Self.maximumAge(hundred))))
                #expect(try await program.ask(path("silent"))["cache-control"] == "public, max-age=5000")
                // What the server may not store, it lets nobody store.
                #expect(try await program.ask(path("private"))["cache-control"] == "no-store")
                #expect(try await program.ask(path("never"))["cache-control"] == "no-store")
            }
        }
    }

    @Test func purgeAndReloadReachResultsInMemory() async throws {
        let origin = try await Origin.samples()
        let lake = Self.lasting(origin)
        try await ImageProgram.run { program in
            let connection = try program.connect()
            _ = try await connection.ask(lake)
            let kept = try await connection.ask(lake)
            #expect(kept["cache-status"] == "vitrine; hit; detail=memory")
            let purged = try await get(
                program.adminPort, "/purge", method: "POST", ["Content-Type": "application/json"],
                body: "{\"source\":\"\(origin.url("lake.jpg"))\"}")
            #expect(purged.status == 200, "\(purged.body)")
            let anew = try await connection.ask(lake)
            #expect(anew["cache-status"]?.contains("hit") == false && anew.body == kept.body)
            await program.server.reload { ImageProgram.configuration { $0.ttl = 77 } }
            #expect(try await connection.ask(lake)["cache-control"] == "public, max-age=77")
            await program.server.reload {
                ImageProgram.configuration {
                    $0.keys = [Array("key".utf8)]
                    $0.salts = [Array("salt".utf8)]
                }
            }
            #expect(try await connection.ask(lake).status == 403)
        }
    }

    @Test func aChangedFileIsNotSentFromMemory() async throws {
        let root = try Self.root([:])
        defer { try? FileManager.default.removeItem(atPath: root) }
        func put(_ sample: String) throws { try Data(Samples.bytes(sample)).write(to: URL(filePath: root + "/a")) }
        try put("leaf.png")
        try await ImageProgram.run { $0.localRoot = root } _: { program in
            let path = "/insecure/w:20/plain/local:///a@png"
            let old = try await program.ask(path)["etag"]
            try put("lake.jpg")
            try await wait { try await program.ask(path)["etag"] != old }
        }
    }

    // MARK: Errors

    @Test func failuresOfSourcesAreMappedAndHideTheirAddress() async throws {
        let hold = OpenSignal()
        let origin = try await Origin.start { request in
            if request.path == "/hang" { await hold.wait() }
            return Origin.Answer(status: Int(request.path.dropFirst()) ?? 200, body: Array("not an image".utf8))
        }
        defer { hold.open() }
        let sources = [("404", 404), ("410", 410), ("500", 502), ("503", 502), ("text", 422)]
        // Only one that is slow by itself ends by its time.
        for (timeout, sources) in [(60, sources), (0.3, [("hang", 504)])] {
            try await ImageProgram.run { $0.downloadTimeout = timeout } _: { program in
                for (name, status) in sources {
                    let reply = try await program.ask("/insecure/w:20/plain/\(origin.url(name))")
                    #expect(reply.status == status, "\(name): \(reply.text)")
                    #expect(reply["content-type"] == "application/json")
                    #expect(reply["x-content-type-options"] == "nosniff")
                    #expect(reply.text.hasPrefix("{\"code\":\"") && reply.text.contains("\"status\":\(status)"))
                    #expect(!reply.text.contains("127.0.0.1") && !reply.text.contains(String(origin.port)))
                    // The body, the field and the log name the request alike.
                    let id = try #require(reply["x-request-id"])
                    #expect(reply.text.contains("\"requestID\":\"\(id)\""), "\(reply.text)")
                    #expect(try #require(Self.maximumAge(reply)) <= 10)
                    let head = try await program.ask("/insecure/w:20/plain/\(origin.url(name))", method: "HEAD")
                    #expect(head.status == status && head.body.isEmpty)
                }
            }
        }
    }

    @Test func fallbackTakesThePlaceOfErrors() async throws {
        let change: (inout ServerConfiguration) -> Void = {
            $0.fallbackImage = Samples.directory + "/leaf.png"
            $0.fallbackStatus = 200
            $0.fallbackTTL = 9
        }
        try await ImageProgram.run(change) { program in
            let reply = try await program.ask("/insecure/w:20/plain/local:///missing.jpg")
            #expect(reply.status == 200 && reply["content-type"] == "image/png")
            let leaf = try Samples.bytes("leaf.png")
            #expect(reply.body == leaf && Self.maximumAge(reply) == 9)
            // Not for a malformed URL.
            #expect(try await program.ask("/insecure/unknown:1/plain/local:///lake.jpg").status == 400)
        }
    }

    @Test func scriptsOfAllowedOriginsMayRead() async throws {
        try await ImageProgram.run { $0.allowOrigin = "https://a.example" } _: { program in
            for _ in 0..<2 {
                let allowed = try await program.ask(Self.lake, [("Origin", "https://a.example")])
                #expect(allowed["access-control-allow-origin"] == "https://a.example")
                let other = try await program.ask(Self.lake, [("Origin", "https://b.example")])
                #expect(other["access-control-allow-origin"] == nil)
                #expect(other["vary"]?.contains("Origin") == true)
            }
        }
        try await ImageProgram.run { $0.allowOrigin = "*" } _: { program in
            for _ in 0..<2 { #expect(try await program.ask(Self.lake)["access-control-allow-origin"] == "*") }
            let preflight = try await program.ask(Self.lake, method: "OPTIONS", [("Origin", "https://a.example")])
            #expect(preflight.status == 204 && preflight["access-control-allow-methods"]?.contains("GET") == true)
        }
    }

    @Test func timesAreToldIfConfigured() async throws {
        try await ImageProgram.run { $0.serverTiming = true } _: { program in
            let made = try await program.ask(Self.lake)
            #expect(made["server-timing"]?.contains("decode;dur=") == true)
            #expect(try await program.ask(Self.lake)["server-timing"]?.hasPrefix("total;dur=") == true)
        }
        try await ImageProgram.run { program in
            let reply = try await program.ask(Self.lake)
            #expect(reply.status == 200 && reply["server-timing"] == nil)
        }
    }

    // MARK: Connections

    private static func program(
        _ backend: MemoryBackend, _ change: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (ImageProgram) async throws -> Void
    ) async throws {
        let service = HTTPTestServer.service(backend)
        let hooks = ImageServer.Hooks(
            responder: ImageResponder(service, context: ServerRequestContext.self),
            immediate: { service.immediate($0) })
        try await ImageProgram.run(change, hooks: hooks, body)
    }

    @Test(arguments: [
        ("GET /health HTTP/1.1\r\n\r\n", "400"),
        ("GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX", "400 413"),
        ("GET /a HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "a", count: 70_000) + "\r\n\r\n", "431"),
        ("GET /health HTTP/3.7\r\nHost: a\r\n\r\n", "505"),
    ])
    func listenersRefuseMalformedRequests(request: String, statuses: String) async throws {
        try await Self.program(MemoryBackend()) { program in
            let connection = try program.connect()
            await connection.send(request + "GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            let text = try #require(await connection.readText())
            let answers = text.components(separatedBy: "HTTP/1.1 ").dropFirst().map { String($0.prefix(3)) }
            #expect(answers.count == 1 && statuses.contains(answers[0]), "\(text.prefix(300))")
            #expect(text.contains("Connection: close\r\n"))
        }
    }

    @Test func listenersEndSilentConnections() async throws {
        try await Self.program(MemoryBackend(), { $0.keepAliveTimeout = 1 }) { program in
            for start in ["GET /health HT", "GET /health HTTP/1.1\r\nHost: a\r\n\r\n"] {
                let connection = try program.connect()
                await connection.send(start)
                #expect(await connection.readAll() != nil)
            }
        }
    }

    @Test func answersFromTheDiskAreLikeThoseFromMemory() async throws {
        let backend = MemoryBackend()
        try await Self.program(backend) { program in
            let made = try await program.ask("/insecure/plain/lake")
            let kept = try await program.ask("/insecure/plain/lake")
            let huge = try await program.ask("/insecure/plain/huge")
            let tag = try #require(made["etag"])
            backend.moveToDisk()
            for _ in 0..<2 {
                let reply = try await program.ask("/insecure/plain/lake")
                #expect(reply.status == 200 && reply.body == made.body)
                #expect(reply["cache-status"] == "vitrine; hit; detail=disk")
                for name in ["etag", "cache-control", "content-type", "last-modified", "content-length"] {
                    #expect(reply[name] == kept[name] && reply[name] != nil, "\(name)")
                }
                #expect(reply["date"] != nil && reply["x-request-id"]?.isEmpty == false)
                let same = try await program.ask("/insecure/plain/lake", [("If-None-Match", tag)])
                #expect(same.status == 304 && same.body.isEmpty && same["etag"] == tag)
                let head = try await program.ask("/insecure/plain/lake", method: "HEAD")
                #expect(head.status == 200 && head.body.isEmpty && head["content-length"] == made["content-length"])
                let part = try await program.ask("/insecure/plain/lake", [("Range", "bytes=5-9")])
                #expect(part.status == 206 && part.body == Array(made.body[5...9]))
                #expect(part["cache-status"] == "vitrine; hit; detail=disk")
            }
            #expect(try await program.ask("/insecure/plain/huge").body == huge.body)
            #expect(backend.renders == 2)
        }
    }

    @Test func answersFromMemoryKeepTheOrderOfRequests() async throws {
        let backend = MemoryBackend()
        try await Self.program(backend) { program in
            let connection = try program.connect()
            let lake = "GET /insecure/plain/lake HTTP/1.1\r\nHost: a\r\n\r\n"
            #expect(try await connection.ask("/insecure/plain/lake").status == 200)
            await connection.send(
                lake + "GET /insecure/plain/slow HTTP/1.1\r\nHost: a\r\n\r\n" + lake
                    + "GET /insecure/plain/missing HTTP/1.1\r\nHost: a\r\n\r\n" + lake)
            #expect(await connection.readReply()?.text.contains("lake") == true)
            try await backend.started.wait()
            backend.gate.open()
            #expect(await connection.readReply()?.text.contains("slow") == true)
            #expect(await connection.readReply()?.text.contains("lake") == true)
            #expect(await connection.readReply()?.status == 404)
            #expect(await connection.readReply()?.text.contains("lake") == true)
            // As many as a client may send before it reads.
            await connection.send(String(repeating: lake, count: 500))
            for _ in 0..<500 { #expect(await connection.readReply()?.text.contains("lake") == true) }
        }
    }

    @Test func aClientThatDoesNotReadIsNotAnsweredWithoutEnd() async throws {
        let backend = MemoryBackend()
        try await Self.program(backend) { program in
            let first = try program.connect()
            let count = try await first.ask("/insecure/plain/huge", method: "HEAD")["content-length"]
            let length = try #require(count.flatMap { Int($0) })
            let connection = try RawConnection(port: program.port, receiveBuffer: 4096)
            let request = "GET /insecure/plain/huge HTTP/1.1\r\nHost: a\r\n\r\n"
            await connection.send(String(repeating: request, count: 4))
            for _ in 0..<4 { #expect(await connection.readReply()?.body.count == length) }
        }
    }

    private static let curl = "/usr/bin/curl"

    @Test(
        .enabled(if: FileManager.default.isExecutableFile(atPath: curl), "curl is not installed"),
        arguments: ["--http1.1", "--http2-prior-knowledge"])
    func workOfTheProgramIsCancelledWhenTheClientLeaves(version: String) async throws {
        let backend = MemoryBackend()
        try await Self.program(backend) { program in
            let url = "http://127.0.0.1:\(program.port)/insecure/plain/slow"
            let client = try Program(Self.curl, ["-s", version, url])
            try await backend.started.wait()
            client.send(SIGKILL)
            try await backend.cancelled.wait()
            await client.waitUntilEnd()
            #expect(try await program.ask("/insecure/plain/lake").status == 200)
        }
    }

    @Test func answersFromMemoryAreCounted() async throws {
        let origin = try await Origin.samples()
        defer { withExtendedLifetime(origin) {} }
        let lake = Self.lasting(origin)
        try await ImageProgram.run { program in
            for _ in 0..<3 { _ = try await program.ask(lake) }
            let metrics = try await get(program.adminPort, "/metrics").body
            #expect(metrics.contains("vitrine_requests_total{route=\"image\",status=\"200\"} 3\n"))
            #expect(metrics.contains("vitrine_cache_results_total{level=\"memory\"} 2\n"))
            #expect(metrics.contains("vitrine_cache_results_total{level=\"made\"} 1\n"))
        }
    }

    @Test func limitsHoldForAnswersFromMemory() async throws {
        let change: (inout ServerConfiguration) -> Void = {
            $0.rateLimit = 0.001
            $0.rateBurst = 3
        }
        try await ImageProgram.run(change) { program in
            let connection = try program.connect()
            var statuses: [Int] = []
            for _ in 0..<5 { statuses.append(try await connection.ask(Self.lake).status) }
            #expect(statuses == [200, 200, 200, 429, 429])
            // Monitors are not limited.
            #expect(try await connection.ask("/health").text == "ok\n")
        }
    }
}
