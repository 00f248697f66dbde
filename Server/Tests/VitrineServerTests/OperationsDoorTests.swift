import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Synchronization
import Testing
import VitrineServer

/// The access of clients, and the cost of one client.
@Suite struct DoorTests {
    // MARK: Start and reload

    @Test func aConfigurationIsJudgedWithTheSocketsThatAreOpen() throws {
        var configuration = ServerConfiguration()
        try configuration.validate()
        let local: [ListenAddress] = [.unix("/run/a"), .tcp(host: "127.0.0.1", port: 1), .tcp(host: "::1", port: 1)]
        try configuration.validate(listening: local)
        // A socket of the service manager, which may be on any address, and one that does not tell its own.
        for open: ListenAddress? in [.tcp(host: "0.0.0.0", port: 80), .tcp(host: "::", port: 80), nil] {
            #expect(throws: ConfigurationError.self) { try configuration.validate(listening: [open]) }
        }
        (configuration.keys, configuration.salts) = ([[1]], [[2]])
        try configuration.validate(listening: [.tcp(host: "0.0.0.0", port: 80), nil])
    }

    @Test func aReloadThatNoStartWouldAcceptChangesNothing() async throws {
        let reloads = Mutex(0)
        try await TestServer.run({ $0.presets = ["a": "w:5"] }, reload: { _ in
            reloads.withLock { $0 += 1 }
        }) { server async throws in
            await server.server.reload {
                var configuration = ServerConfiguration()
                (configuration.presets, configuration.onlyPresets) = ([:], true)
                return configuration
            }
            #expect(server.log.lines.contains { $0.contains("The configuration is not reloaded") })
            #expect(reloads.withLock { $0 } == 0)
            let shown = try await get(server.adminPort, "/config").body
            #expect(shown.contains("\"only-presets\":false") && shown.contains("\"a\":\"w:5\""))
        }
    }

    // MARK: Grammars

    @Test func eachGrammarCanBeSwitchedOff() async throws {
        let paths = [
            "native": "/insecure/w:9/plain/local:///lake.jpg", "thumbor": "/thumbor/unsafe/9x9/local:///lake.jpg",
            "info": "/info/insecure/plain/local:///lake.jpg", "iiif": "/iiif/3/lake.jpg/full/9,/0/default.jpg",
        ]
        func change(_ configuration: inout ServerConfiguration) {
            (configuration.localRoot, configuration.iiif) = (Samples.directory, true)
        }
        try await ImageProgram.run({ change(&$0) }) { program async throws in
            for path in paths.values { #expect(try await program.ask(path).status == 200, "\(path)") }
        }
        for off in paths.keys {
            try await ImageProgram.run({ configuration in
                change(&configuration)
                switch off {
                case "native": configuration.native = false
                case "thumbor": configuration.thumbor = false
                case "info": configuration.info = false
                default: configuration.iiif = false
                }
            }) { program async throws in
                for (name, path) in paths {
                    // Without IIIF, its paths are malformed ones of the native grammar.
                    let status = try await program.ask(path).status
                    let isRight = name == off ? status == (off == "iiif" ? 400 : 404) : status == 200
                    #expect(isRight, "\(path) without \(off): \(status)")
                }
            }
        }
    }

    // MARK: Names of hosts and files

    @Test func documentsOfIIIFWithTheHostOfAClientAreForThatClient() async throws {
        for address in ["", "https://pictures.example"] {
            try await ImageProgram.run({
                ($0.localRoot, $0.iiif, $0.publicURL) = (Samples.directory, true, address)
            }) { program async throws in
                for path in ["/iiif/3/lake.jpg/info.json", "/iiif/presentation/3/lake.jpg/manifest"] {
                    let connection = try program.connect()
                    await connection.send("GET \(path) HTTP/1.1\r\nHost: evil.example\r\n\r\n")
                    let reply = try #require(await connection.readReply())
                    #expect(reply.status == 200)
                    #expect(reply.text.contains("evil.example") == address.isEmpty)
                    #expect(reply["cache-control"]?.contains("public") == !address.isEmpty)
                    #expect(reply["vary"]?.contains("Host") == address.isEmpty)
                }
                let connection = try program.connect()
                await connection.send("GET /iiif/3/lake.jpg HTTP/1.1\r\nHost: evil.example\r\n\r\n")
                let reply = try #require(await connection.readReply())
                #expect(reply.status == 303)
                #expect(reply["cache-control"] == (address.isEmpty ? "no-store" : nil))
            }
        }
    }

    @Test func hiddenFilesAreHiddenInEveryGrammar() async throws {
        let root = try TemporaryDirectory()
        for path in [".hidden.jpg", "folder/.hidden.jpg", ".folder/lake.jpg", "folder/50%.jpg", "lake.jpg"] {
            let file = URL(filePath: root.path + "/" + path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(Samples.bytes("lake.jpg")).write(to: file)
        }
        try await ImageProgram.run({ ($0.localRoot, $0.iiif) = (root.path, true) }) { program async throws in
            for path in [
                "/insecure/w:9/plain/local:///lake.jpg", "/insecure/w:9/plain/local:///folder/50%25.jpg",
                "/insecure/w:9/plain/local:///folder/50%2525.jpg", "/iiif/3/folder%2F50%25.jpg/info.json",
                "/iiif/presentation/3/manifest",
            ] {
                #expect(try await program.ask(path).status == 200, "\(path)")
            }
            for name in [".hidden.jpg", "folder/.hidden.jpg", ".folder/lake.jpg"] {
                let identifier = name.replacing("/", with: "%2F")
                for path in [
                    "/insecure/w:9/plain/local:///\(name)", "/insecure/raw:1/plain/local:///\(name)",
                    "/thumbor/unsafe/9x9/local:///\(name)", "/info/insecure/plain/local:///\(name)",
                    "/iiif/3/\(identifier)/info.json", "/iiif/3/\(identifier)/full/9,/0/default.jpg",
                    "/iiif/presentation/3/\(identifier)/manifest",
                ] {
                    #expect(try await program.ask(path).status == 404, "\(path)")
                }
            }
            #expect(try await program.ask("/iiif/presentation/3/.folder/manifest").status == 404)
        }
    }

    // MARK: Requests

    @Test func requestsBeyondTheLimitsAreRefusedBeforeAnyWork() async throws {
        let begun = Mutex(0)
        for (isOfClient, status) in [(false, 503), (true, 429)] {
            let open = OpenSignal()
            begun.withLock { $0 = 0 }
            try await TestServer.run({ configuration in
                if isOfClient { configuration.maximumClientRequests = 2 } else { configuration.maximumRequests = 2 }
            }, respond: { request, _ in
                begun.withLock { $0 += 1 }
                if request.uri.path == "/held" { await open.wait() }
                return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: "a")))
            }) { server async throws in
                let port = server.port
                async let first = get(port, "/held").status
                async let second = get(port, "/held").status
                try await eventually("both are under way") { begun.withLock { $0 } == 2 }
                let refused = try await get(port, "/other")
                #expect(refused.status == status && refused.fields["retry-after"] != nil)
                #expect(refused.fields["connection"] == "close")
                // Monitors are answered, nothing was done for the other, and no line says so.
                #expect(try await get(port, "/health").status == 200)
                #expect(begun.withLock { $0 } == 2)
                #expect(!server.log.lines.contains { $0.contains("/other") })
                open.open()
                let statuses = try await [first, second]
                #expect(statuses == [200, 200])
                try await eventually("the places are free") { server.server.gate.requestCount == 0 }
                #expect(try await get(port, "/other").status == 200)
            }
        }
    }

    /// A body that comes byte by byte, and one that never comes.
    @Test func slowRequestsEnd() async throws {
        try await TestServer.run({ ($0.requestTimeout, $0.keepAliveTimeout) = (1, 3600) }, respond: { request, _ in
            // Whoever reads the whole body.
            _ = try? await request.body.collect(upTo: 1_000)
            return Response(status: .ok)
        }) { server async throws in
            let port = server.port
            for text in [
                "GET / HTTP/1.1\r\nHost: a\r\nX: ", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n",
            ] {
                let answer = try await onThread {
                    let client = try PlainClient(port: port)
                    try client.send(text)
                    // Each byte is progress, and not enough.
                    for _ in 0..<600 {
                        usleep(50_000)
                        do { try client.send("a") } catch { break }
                        if try client.hasEnded() { break }
                    }
                    return client.readToEnd()
                }
                #expect(!answer.contains("200 OK"), "\(answer)")
            }
            #expect(try await get(port, "/a").status == 200)
        }
    }

    /// An answer before the end of its request ends the connection, which the rest could hold open.
    @Test func anAnswerThatDoesNotWaitForTheBodyIsTheLastOne() async throws {
        try await TestServer.run({ $0.requestTimeout = 3600 }) { server async throws in
            let port = server.port
            let text = try await onThread {
                let client = try PlainClient(port: port)
                try client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
                return client.readToEnd()
            }
            #expect(text.contains("200 OK") && text.contains("Connection: close"), "\(text)")
        }
    }

    @Test(arguments: ["GET / RTSP/1.0\r\nHost: a\r\n\r\n", "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n"])
    func otherProtocolsAreRefused(_ request: String) async throws {
        try await TestServer.run { server async throws in
            let port = server.port
            let text = try await onThread {
                let client = try PlainClient(port: port)
                // Also in two parts.
                try client.send(String(request.prefix(9)))
                usleep(20_000)
                try client.send(String(request.dropFirst(9)))
                return client.readToEnd()
            }
            #expect(text.hasPrefix("HTTP/1.1 505") || text.hasPrefix("HTTP/1.1 400"), "\(text)")
            let old = try await onThread {
                let client = try PlainClient(port: port)
                try client.send("GET /a HTTP/1.0\r\n\r\n")
                return client.readToEnd()
            }
            #expect(old.hasPrefix("HTTP/1.1 200"), "\(old)")
        }
    }

    // MARK: HTTP/2

    /// The preface and SETTINGS with the window of a stream (RFC 9113, sections 3.4 and 6.5.2).
    private static func preface(window: UInt32) -> [UInt8] {
        let value = (0..<4).map { UInt8(truncatingIfNeeded: window >> (24 - 8 * $0)) }
        return Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4] + value
    }

    private static func frame(_ type: UInt8, _ flags: UInt8, _ stream: Int, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        let number = (0..<4).map { UInt8(truncatingIfNeeded: stream >> (24 - 8 * $0)) }
        return [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags] + number + content
    }

    /// HEADERS of “GET /” (RFC 7541, appendix A), with the flags END_STREAM and END_HEADERS.
    private static func request(_ stream: Int) -> [UInt8] { frame(1, 5, stream, [0x82, 0x86, 0x84, 0x41, 1, 0x61]) }

    @Test func answersThatNobodyReadsKeepFurtherRequestsWaiting() async throws {
        let begun = Mutex(0)
        try await TestServer.run({ $0.sendTimeout = 3600 }, respond: { _, _ in
            begun.withLock { $0 += 1 }
            return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(repeating: 7, count: 20_000_000)))
        }) { server async throws in
            let port = server.port
            let client = try await onThread {
                let client = try PlainClient(port: port)
                try client.send(Self.preface(window: 0) + (0..<40).flatMap { Self.request(1 + 2 * $0) })
                return ClientBox([client])
            }
            try await eventually("the first answers wait") { server.server.gate.answerBytes >= 80_000_000 }
            // Others are served meanwhile, and no request of the connection begins.
            for _ in 0..<20 { #expect(try await get(port, "/health").status == 200) }
            #expect(begun.withLock { $0 } == 4)
            client.removeAll()
            try await eventually("all is forgotten") {
                server.server.gate.answerBytes == 0 && server.server.gate.requestCount == 0
            }
            #expect(begun.withLock { $0 } == 4)
        }
    }

    @Test func theConnectionThatHoldsMostIsClosedAboveTheLimit() async throws {
        try await TestServer.run({ ($0.sendTimeout, $0.answerMemory) = (3600, 16 << 20) }, respond: { _, _ in
            Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(repeating: 7, count: 12_000_000)))
        }) { server async throws in
            let port = server.port
            let isEnded = try await onThread {
                let client = try PlainClient(port: port)
                try client.send(Self.preface(window: 0) + Self.request(1) + Self.request(3))
                return try !client.frameTypesUntilEnd().isEmpty
            }
            #expect(isEnded)
            try await eventually("nothing is held") { server.server.gate.answerBytes == 0 }
        }
    }

    @Test func requestsThatAreResetAtOnceCostNoWork() async throws {
        let begun = Mutex(0)
        try await TestServer.run(respond: { _, _ in
            begun.withLock { $0 += 1 }
            return Response(status: .ok)
        }) { server async throws in
            let port = server.port
            try await onThread {
                let client = try PlainClient(port: port)
                let streams = (0..<90).map { 1 + 2 * $0 }
                let resets = streams.flatMap { Self.frame(3, 0, $0, [0, 0, 0, 8]) }
                try client.send(Self.preface(window: 65_535) + streams.flatMap { Self.request($0) } + resets)
                client.closeOutput()
                // The server may reset the connection of a client that has left.
                _ = try? client.frameTypesUntilEnd()
            }
            try await eventually("nothing is under way") { server.server.gate.requestCount == 0 }
            // A part of the requests may have arrived in one packet, and their resets in the next.
            #expect(begun.withLock { $0 } <= 8)
        }
    }

    @Test(arguments: ["updates", "unknown", "priorities", "large"])
    func floodsOfFramesEndTheConnection(kind: String) async throws {
        try await TestServer.run({ $0.keepAliveTimeout = 3600 }) { server async throws in
            let port = server.port
            let isEnded = try await onThread { () throws -> Bool in
                let client = try PlainClient(port: port)
                try client.send(Self.preface(window: 65_535))
                let frame =
                    switch kind {
                    case "updates": Self.frame(8, 0, 0, [0, 0, 0, 1])
                    case "priorities": Self.frame(2, 0, 1, [0, 0, 0, 0, 1])
                    case "large": Self.frame(99, 0, 0, [UInt8](repeating: 7, count: 16_000))
                    default: Self.frame(200, 0, 0, [])
                    }
                let part = [[UInt8]](repeating: frame, count: 100).flatMap { $0 }
                for _ in 0..<100_000 {
                    do { try client.send(part) } catch { return true }
                    if try client.hasEnded() { return true }
                }
                return false
            }
            #expect(isEnded)
            #expect(try await get(port, "/a").status == 200)
        }
    }

    // MARK: Logs

    @Test func refusedRequestsDoNotFillTheLog() async throws {
        try await TestServer.run(respond: { request, _ in
            throw RequestError(request.uri.path == "/missing" ? 404 : 403, code: "no", reason: "No.")
        }) { server async throws in
            let port = server.port
            try await onThread {
                let client = try PlainClient(port: port)
                let path = "/" + String(repeating: "a", count: 2_000)
                for _ in 0..<2_000 { #expect(try client.request(path).status == 403) }
            }
            let lines = server.log.lines.filter { $0.contains("\"status\":403") }
            #expect(lines.count >= 100 && lines.count < 1_500, "\(lines.count)")
            #expect(lines.allSatisfy { $0.utf8.count < 1_200 })
        }
    }

    @Test(arguments: [
        ["--key", "zz"], ["--bing", "x"], ["--bind", "127.0.0.1:1\u{9B}31m"], ["--local-root", "/nowhere"],
    ])
    func problemsOfTheStartAreJSONWhereJSONIsAskedFor(_ arguments: [String]) async throws {
        for (more, variables) in [(["--log-format", "json"], [:]), ([], ["VITRINE_LOG_FORMAT": "json"])] {
            let process = try ServerProcess(arguments + more, environment: variables)
            #expect(try await process.waitUntilEnd() == 78)
            let lines = process.output.split(separator: "\n")
            #expect(lines.count == 1, "\(process.output)")
            for line in lines { #expect(try SettingValue.json(Data(line.utf8))["level"] == .text("error")) }
        }
        let plain = try ServerProcess(arguments)
        #expect(try await plain.waitUntilEnd() == 78)
        #expect(plain.output.hasPrefix("vitrine-server: ") && !plain.output.unicodeScalars.contains("\u{9B}"))
    }

    @Test(arguments: [
        "IMGPROXY_S3_DENIED_BUCKETS", "IMGPROXY_INFO_ONLY_PRESETS", "IMGPROXY_MAX_CHAINED_PIPELINES",
        "IMGPROXY_SOURCE_URL_ENCRYPTION_KEY", "IMGPROXY_MAX_ANIMATION_FRAMES", "IMGPROXY_ALLOWED_INFO_OPTIONS",
    ])
    func limitsThatAreNotEnforcedStopTheStart(_ name: String) {
        let error = #expect(throws: ConfigurationError.self) {
            try ServerConfiguration.load(arguments: [], environment: [name: "1"])
        }
        #expect(error?.description.hasPrefix(name + ": ") == true)
    }

    @Test func aRepeatedFailureIsLoggedOnceAMinute() {
        let collector = LineCollector()
        var logger = collector.output().logger(label: "a")
        for number in 0..<50 {
            logger[metadataKey: "request_id"] = "\(number)"
            logger.warning("The disk is full", metadata: ["error": "ENOSPC"])
        }
        logger.warning("The disk is full", metadata: ["error": "EROFS"])
        for _ in 0..<3 { logger.info("The disk is full", metadata: ["error": "ENOSPC"]) }
        #expect(collector.lines.count == 5)
        #expect(collector.lines.filter { $0.contains("\"level\":\"warning\"") }.count == 2)
    }

    /// All characters of Unicode that are not seen, in every field and format.
    @Test(arguments: ServerConfiguration.LogFormat.allCases)
    func charactersThatAreNotSeenAreEscapedInLogs(_ format: ServerConfiguration.LogFormat) throws {
        let unseen = (0...0x10FFFF).compactMap { Unicode.Scalar(UInt32($0)) }.filter { scalar in
            [.control, .format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
        }
        #expect(unseen.count > 200)
        for start in stride(from: 0, to: unseen.count, by: 50) {
            var text = "a"
            for scalar in unseen[start..<min(start + 50, unseen.count)] { text.unicodeScalars.append(scalar) }
            text += "z"
            let collector = LineCollector()
            var logger = collector.output(format).logger(label: text)
            logger[metadataKey: text] = .string(text)
            logger.notice(
                "\(text)", metadata: ["list": [.string(text)], "table": [text: .string(text)], "error": .string(text)])
            let line = try #require(collector.lines.first)
            #expect(collector.lines.count == 1 && line.hasSuffix("\n"))
            #expect(!line.dropLast().unicodeScalars.contains { unseen.contains($0) }, "\(format)")
            guard format == .json else { continue }
            // Nothing is lost.
            #expect(try SettingValue.json(Data(line.utf8))["error"] == .text(text))
        }
        #expect(UnseenText.escaped("é 日本 🏔") == "é 日本 🏔")
    }
}
