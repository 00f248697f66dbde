#if os(Linux)
import Foundation
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineServer

/// Requests that are wrong, over real connections, to the whole server.
@Suite struct RenderingRequestTests {
    /// The answer to bytes, up to the end of the connection; nil if it does not end it.
    private static func answer(_ port: Int, _ text: String) async throws -> String? {
        let connection = try RawConnection(port: port)
        await connection.send(text)
        connection.closeOutput()
        return await connection.readText()
    }

    private static func statuses(_ text: String?) -> [String] {
        (text ?? "").components(separatedBy: "HTTP/1.1 ").dropFirst().map { String($0.prefix(3)) }
    }

    private static let long = String(repeating: "a", count: 100_000)

    @Test(arguments: [
        ("/insecure/blor:1/plain/local:///lake.jpg", 400, "blor"),
        ("/insecure/w:0/h:0/plain/local:///lake.jpg", 200, ""),
        ("/insecure/w:NaN/plain/local:///lake.jpg", 400, "w"), ("/insecure/w:-1/plain/local:///lake.jpg", 400, "w"),
        ("/insecure/w:1000000000/plain/local:///lake.jpg", 400, "w"),
        ("/insecure/w:1e9/plain/local:///lake.jpg", 400, "w"),
        ("/insecure/dpr:inf/plain/local:///lake.jpg", 400, "dpr"),
        ("/insecure/q:101/plain/local:///lake.jpg", 400, "q"),
        ("/insecure/z:99999999999999999999:1/plain/local:///lake.jpg", 400, "z"),
        ("/insecure/exp:1/plain/local:///lake.jpg", 404, "expired"),
        ("/insecure/plain/local:///%zz", 400, ""), ("/insecure/%%%", 400, ""), ("/insecure/plain/", 400, ""),
        ("/insecure/plain/local:///../../etc/passwd", 400, ""),
        ("/insecure/plain/local:///..%2f..%2fetc/passwd", 400, ""),
        ("/insecure/plain/local:///%252e%252e/etc/passwd", 400, ""), ("/insecure/plain/local:///%00", 400, ""),
        ("/insecure/plain/file:///etc/passwd", 400, ""), ("/insecure/ZmlsZTovLy9ldGMvcGFzc3dk", 400, ""),
        ("/insecure/bm8gYmFzZTY0IQ=", 400, ""), ("/insecure/plain/lake.jpg", 400, ""),
        ("/thumbor/unsafe/99999999999x1/local:///lake.jpg", 400, ""),
        ("/thumbor/unsafe/filters:nothing(1)/local:///lake.jpg", 400, "nothing"),
        ("/w:10/plain/local:///lake.jpg", 400, ""), ("/", 404, ""), ("/insecure", 404, ""),
    ])
    func wrongURLsAreRefused(path: String, status: Int, named: String) async throws {
        try await RunningServer.run { server in
            let answer = try await get(server.port, path)
            #expect(answer.status == status, "\(path): \(answer)")
            if status != 200 {
                #expect(answer.code != nil && (named.isEmpty || answer.body.contains(named)), "\(path): \(answer)")
            }
            #expect(!answer.body.contains("passwd") && !answer.body.contains("root:"))
            #expect(try await server.renderer.results.count(of: .original) == 0)
        }
    }

    @Test func signaturesAreCheckedBeforeAnythingElse() async throws {
        let (key, salt) = (Array("key".utf8), Array("salt".utf8))
        try await RunningServer.run({ ($0.keys, $0.salts) = ([key], [salt]) }) { server in
            let signer = URLSigner(pairs: [(key: key, salt: salt)])
            let rest = "/w:60/plain/local:///leaf.png"
            let good = signer.sign(rest)
            #expect(try await get(server.port, "/\(good)\(rest)").status == 200)
            let paths = [
                "/insecure\(rest)", "/unsafe\(rest)", "/_\(rest)", "/\(good)/w:61/plain/local:///leaf.png",
                "/\(good)x\(rest)", "/\(good.dropLast())\(rest)", "//w:60/plain/local:///leaf.png",
                "/\(good)/blor:1/plain/local:///leaf.png", "/\(good)/plain/file:///etc/passwd", "/\(good)\(rest)@png",
                "/thumbor/unsafe/60x0/local:///leaf.png", "/info/insecure/plain/local:///leaf.png",
            ]
            for path in paths {
                let answer = try await get(server.port, path)
                #expect([403, 404].contains(answer.status), "\(path): \(answer)")
                #expect(!answer.body.contains("blor"))
            }
        }
    }

    // MARK: Framing

    /// Each is one answer or none, and nothing in a body is taken for a request.
    @Test(arguments: [
        ("both lengths", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX"),
        ("encoding first", "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX"),
        ("two lengths", "Content-Length: 0\r\nContent-Length: 52\r\n\r\n"),
        ("list of lengths", "Content-Length: 0, 52\r\n\r\n"),
        ("signed length", "Content-Length: +5\r\n\r\nabcde"), ("space in length", "Content-Length: 5 2\r\n\r\n"),
        ("huge length", "Content-Length: 99999999999999999999999\r\n\r\n"),
        ("wrong chunk", "Transfer-Encoding: chunked\r\n\r\nZZ\r\nabc\r\n0\r\n\r\n"),
        ("huge chunk", "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
        ("other encoding", "Transfer-Encoding: xchunked\r\n\r\n"),
        ("spaced encoding", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
        ("chunked twice", "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
        ("chunked inside", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        ("NUL in value", "X: a\0b\r\n\r\n"), ("bare CR", "X: a\rContent-Length: 52\r\n\r\n"),
        ("space before colon", "Content-Length : 0\r\n\r\n"),
    ])
    func smugglingEndsTheConnection(name: String, rest: String) async throws {
        try await RunningServer.run { server in
            let begin = "GET /insecure/w:20/plain/local:///leaf.png HTTP/1.1\r\nHost: a\r\n"
            let text = try await Self.answer(server.port, begin + rest + "GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            let statuses = Self.statuses(text)
            let isRefused = ["400", "413", "501"].contains(statuses.first ?? "")
            #expect(statuses.count == 1 && isRefused, "\(name): \(text ?? "no end")")
            #expect(text?.contains("\"ok\"") == false && text?.contains("\r\n\r\nok") == false)
        }
    }

    /// Old forms that a proxy may read in another way are one request with one meaning, or an error.
    @Test(arguments: [
        ("folded line", "GET /health HTTP/1.1\r\nHost: a\r\nX: 1\r\n Content-Length: 40\r\n\r\n"),
        ("folded coding", "GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
        ("bare line feeds", "GET /health HTTP/1.1\nHost: a\n\n"),
        ("mixed line ends", "GET /health HTTP/1.1\r\nHost: a\nX: 1\r\n\r\n"),
        ("chunk extension", "GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0;a=\"\n\"\r\n\r\n"),
        ("line feed in extension", "GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0;\n\r\n\r\n"),
        ("second host", "GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        ("lower case method", "get /health HTTP/1.1\r\nHost: a\r\n\r\n"),
    ])
    func oldFormsHaveOneMeaning(name: String, request: String) async throws {
        try await RunningServer.run { server in
            let statuses = Self.statuses(try await Self.answer(server.port, request))
            // An error of a body may follow the answer to its head.
            let isAnswered = statuses.allSatisfy { ["200", "400", "405", "413", "501", "505"].contains($0) }
            #expect(!statuses.isEmpty && isAnswered && statuses.count { $0 == "200" } <= 1, "\(name): \(statuses)")
        }
    }

    @Test func bodiesOfRequestsAreRefused() async throws {
        try await RunningServer.run { server in
            let path = "/insecure/w:20/plain/local:///leaf.png"
            for method in ["GET", "HEAD"] {
                let text = try await Self.answer(
                    server.port,
                    "\(method) \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: 46\r\n\r\nGET \(path) HTTP/1.1\r\n\r\n")
                #expect(Self.statuses(text) == ["413"], "\(method): \(text ?? "")")
            }
            let posted = try await get(server.port, path, method: "POST", body: "abc")
            #expect(posted.status == 405 && posted.fields["allow"]?.contains("GET") == true)
        }
    }

    @Test func longTargetsAreRefused() async throws {
        try await RunningServer.run { server in
            for target in ["/insecure/plain/\(Self.long)", "/\(Self.long)", "/insecure/w:1/\(Self.long)"] {
                let text = try await Self.answer(server.port, "GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
                let statuses = Self.statuses(text)
                #expect(statuses.count == 1 && ["400", "414", "431"].contains(statuses.first ?? ""), "\(statuses)")
            }
            #expect(try await get(server.port, "/health").status == 200)
        }
    }
}

/// Foreign bytes in the server's own process, with fixed seeds.
@Suite(.serialized) struct ServerFuzzTests {
    private static let tokens = [
        "", "\0", "\r", "\n", "\r\n", "\r\n\r\n", ":", ";", ",", "-", "=", "\"", "'", "%", "%00", "%ff", "/", "..", "@",
        "0", "-1", "9223372036854775808", "1e999", "nan", "\u{FEFF}", "é", "\u{301}", "𝄞", "{", "}", "[", "]", "[[",
        "\\u", "\\", "#", "*", "q=", "bytes=", "chunked", "Content-Length: 5", "HTTP/1.1", "HTTP/2.0",
        "aaaaaaaaaaaaaaaaaaaa",
    ].map { Array($0.utf8) }

    static func mutated(_ seed: [UInt8], _ random: inout TestGenerator) -> [UInt8] {
        var bytes = seed
        for _ in 0..<Int.random(in: 1...5, using: &random) {
            let index = bytes.isEmpty ? 0 : Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0 where !bytes.isEmpty: bytes[index] = UInt8.random(in: 0...255, using: &random)
            case 1 where !bytes.isEmpty: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2 where !bytes.isEmpty:
                bytes.removeSubrange(index..<min(bytes.count, index + Int.random(in: 1...9, using: &random)))
            case 3 where !bytes.isEmpty:
                let end = min(bytes.count, index + Int.random(in: 1...30, using: &random))
                bytes.insert(contentsOf: bytes[index..<end], at: Int.random(in: 0...bytes.count, using: &random))
            default: bytes.insert(contentsOf: tokens.randomElement(using: &random) ?? [], at: index)
            }
        }
        return bytes
    }

    /// Calls `body` with mutations of seeds.
    private static func each(
        _ count: Int, seed: UInt64, _ seeds: [String], _ body: (String) throws -> Void
    ) rethrows {
        var random = TestGenerator(seed: seed)
        for number in 0..<count {
            try body(String(decoding: mutated(Array(seeds[number % seeds.count].utf8), &random), as: UTF8.self))
        }
    }

    @Test func urlsOfBothGrammars() {
        let native = [
            "/rs:fill:300:400:1/g:fp:0.5:0.1/c:100:2:nowe/plain/http://a/%41@png", "/preset:a/plain/local:///x",
            "/bg:255:0:9/t:10:ff00ff:1:0/pd:1:2:3/wm:0.5:soea:10:10:0.2/aHR0cDovL2EvYi5qcGc.webp",
            "/dpr:2/el:1/ex:1:ce/sh:0.5/bl:2/exp:1900000000/fn:a%20b:1/att:1/mb:1000/skp:png:gif/plain/x",
        ]
        Self.each(10_000, seed: 1, native) { path in
            do throws(RequestError) {
                let url = try NativeGrammar().parse(path[...])
                #expect(!url.source.isEmpty && url.options.resultName.utf8.count < 100_000)
            } catch { #expect((400..<500).contains(error.status), "\(path)") }
        }
        let thumbor = [
            "/trim:top-left:10/1x2:300x400/fit-in/-300x-400/left/top/smart/filters:quality(80):fill(red,1)/http://a/b",
            "/meta/full-fit-in/0x10/filters:watermark(http://a/b.png,-10,10p,50):rotate(90)/a%20b?c=d",
            "/adaptive-fit-in/orig/filters:focal(1x2:3x4):round_corner(1|2,0,0,0)/x",
        ]
        Self.each(10_000, seed: 2, thumbor) { path in
            do throws(RequestError) { #expect(!(try ThumborGrammar().parse(path[...])).source.isEmpty) } catch {
                #expect((400..<500).contains(error.status), "\(path)")
            }
        }
    }

    @Test func signatures() {
        let signer = URLSigner(pairs: [(key: Array("key".utf8), salt: Array("salt".utf8))])
        let path = "/w:60/plain/local:///leaf.png"
        let good = signer.sign(path)
        #expect(signer.isValid(good[...], for: path[...]))
        Self.each(5_000, seed: 3, [good]) { text in
            #expect(text == good || !signer.isValid(text[...], for: path[...]), "\(text)")
        }
        Self.each(5_000, seed: 4, [path]) { text in
            // A query is not signed, and a slash that a proxy has removed is put back.
            let signed = text.prefix { $0 != "?" }
            let isSame = signed == path || signed == path.replacing(":///", with: ":/")
                || signed == path.replacing(":///", with: "://")
            #expect(isSame || !signer.isValid(good[...], for: text[...]), "\(text)")
        }
    }

    @Test func fieldsOfRequests() {
        Self.each(10_000, seed: 5, ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]) { text in
            guard let context = TraceContext(traceparent: text) else { return }
            #expect(TraceContext(traceparent: context.traceparent)?.traceID == context.traceID, "\(text)")
        }
        let addresses = ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "[2001:db8::1]:80", "fe80::1%eth0"]
        Self.each(10_000, seed: 6, addresses) { text in
            guard let address = ClientAddress(text) else { return }
            #expect(ClientAddress(address.description) == address, "\(text)")
        }
        let locator = ClientLocator(trustedProxies: [])
        Self.each(2_000, seed: 7, ["192.0.2.1, 10.0.0.1, 2001:db8::1"]) { text in
            #expect(locator.client(peer: .unix, forwarded: [text]) == .unix)
        }
    }

    @Test func configurationFiles() throws {
        let toml = """
            # a comment
            bind = ["127.0.0.1:8080", 'unix:/run/a.sock']
            timeout = 1_0.5e0
            key = "61\\u0062"
            [format-quality]
            avif = 60
            [presets]
            small = \"\"\"rs:fit:10:10/\\
              q:80\"\"\"
            """
        Self.each(10_000, seed: 8, [toml]) { text in
            do { _ = try TOMLReader.read(text) } catch { #expect(error is SettingError) }
        }
        let json = #"{"bind":["127.0.0.1:8080"],"timeout":1.5e0,"presets":{"a\u0062":"rs:fit:1:1"},"http2":true}"#
        Self.each(5_000, seed: 9, [json]) { text in
            do { _ = try SettingValue.json(Data(text.utf8)) } catch { #expect(error is SettingError) }
        }
        let flags = [
            "--bind=127.0.0.1:8080", "--trusted-proxies=10.0.0.0/8,2001:db8::/32", "--key=0aff --salt=00",
            "--presets=a=rs:fit:1:1", "--max-source-bytes=10MB", "--source-headers=a.b=X: y",
            "--allowed-sources=http://a/",
        ]
        Self.each(5_000, seed: 10, flags) { text in
            let arguments = text.split(separator: " ").map(String.init)
            do { _ = try ServerConfiguration.load(arguments: arguments, environment: [:]) } catch {
                #expect((error as? ConfigurationError)?.description.contains("\n") == false, "\(text): \(error)")
            }
        }
    }

    @Test func connections() async throws {
        let path = "/insecure/w:8/plain/data:image/gif;base64,"
            + "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
        let head = "GET \(path) HTTP/1.1\r\nHost: a\r\nAccept: image/avif,image/webp;q=0.9,*/*;q=0.1\r\n"
            + "Range: bytes=0-9,-5\r\nIf-None-Match: W/\"a\", \"b\"\r\n"
            + "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            + "If-Range: \"x\"\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"
            + "X-Forwarded-For: 192.0.2.1\r\nX-Request-ID: abc\r\nCookie: a=b\r\nConnection: keep-alive\r\n\r\n"
        let seeds = [
            head, head + "GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nabcde\r\n0\r\nT: v\r\n\r\n"
                + head,
            "GET / HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\u{6}\u{4}\0\0\0\0\0\0\u{3}\0\0\0d\0\0\u{4}\u{1}\u{5}\0\0\0\u{1}",
        ]
        try await RunningServer.run({ $0.allowLoopbackSources = false }) { server in
            let port = server.port
            let strange = try await onThread {
                var strange: [String] = []
                var random = TestGenerator(seed: 11)
                for number in 0..<4_000 {
                    let bytes = ServerFuzzTests.mutated(Array(seeds[number % seeds.count].utf8), &random)
                    let client = try PlainClient(port: port)
                    try? client.send(bytes)
                    client.closeOutput()
                    // An end of the connection is an answer, too.
                    let all = client.readToEnd()
                    let statuses = all.components(separatedBy: "HTTP/1.1 ").dropFirst().map { $0.prefix(3) }
                    if statuses.contains("500") { strange.append(String(decoding: bytes, as: UTF8.self)) }
                }
                return strange
            }
            #expect(strange.isEmpty, "\(strange.prefix(3))")
            #expect(try await get(port, "/health").status == 200)
            try await wait { server.isIdle }
        }
    }
}
#endif
