import Foundation
import Synchronization
import Testing
import VitrineServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Stops and upgrades of the program under the load of clients that keep their connections.
@Suite(.serialized) struct UpgradeTests {
    private static let path = ImageServerProcess.path("local:///lake.jpg")

    private func program(_ socket: Int32, _ lameDuck: String = "0.3") throws -> ServerProcess {
        try ServerProcess(
            [
                "--admin-bind", "127.0.0.1:0", "--lame-duck", lameDuck, "--log-requests=false", "--local-root",
                Samples.directory,
            ], socket: socket)
    }

    /// The requests for images that a process has answered.
    private static func answered(_ process: ServerProcess) async throws -> Int {
        let text = try await get(try await process.ports().admin, "/metrics").body
        return text.firstMatch(of: /vitrine_requests_total\{route="image",status="200"\} (\d+)\n/)
            .flatMap { Int($0.1) } ?? 0
    }

    /// Replaces one process by another while `load` runs, which returns when it has asked both.
    private func upgrade(_ load: @escaping @Sendable (_ port: Int) async throws -> Void) async throws {
        let (descriptor, port) = try listeningSocket()
        defer { close(descriptor) }
        let first = try program(descriptor)
        try await first.waitUntilReady()
        #expect(try await get(port, Self.path).status == 200)
        let running = Task { try await load(port) }
        try await eventually("clients are served") { try await Self.answered(first) > 100 }
        first.send(SIGTERM)
        #expect(try await first.waitUntilEnd() == 0, "\(first.output)")
        let second = try program(descriptor)
        try await second.waitUntilReady()
        try await eventually("clients are served again") { try await Self.answered(second) > 100 }
        try await running.value
        second.send(SIGTERM)
        #expect(try await second.waitUntilEnd() == 0)
    }

    @Test func clientsOfHTTP1LoseNoRequest() async throws {
        let load = KeepAliveLoad()
        let (descriptor, port) = try listeningSocket()
        defer { close(descriptor) }
        let first = try program(descriptor)
        try await first.waitUntilReady()
        load.start(clients: 16, port: port, path: Self.path, reconnects: true)
        try await eventually("clients are served") { load.answered > 500 }
        first.send(SIGTERM)
        #expect(try await first.waitUntilEnd() == 0, "\(first.output)")
        #expect(load.closed >= 16)
        let before = load.answered
        let second = try program(descriptor)
        try await eventually("clients are served again") { load.answered > before + 500 }
        load.stop()
        try await eventually("clients have ended") { !load.isRunning }
        #expect(load.failures.isEmpty, "\(load.failures)")
        second.send(SIGTERM)
        #expect(try await second.waitUntilEnd() == 0)
    }

    /// 16 clients with a connection each, which they leave for a new one when they are told to.
    private static let clients = """
        const http2 = require("node:http2");
        const [port, path, count] = process.argv.slice(2);
        let failures = 0, told = 0;
        function connect() {
            const session = http2.connect(`http://127.0.0.1:${port}`);
            session.isLeft = false;
            session.on("goaway", () => { if (!session.isLeft) told += 1; session.isLeft = true; });
            session.on("close", () => { session.isLeft = true; });
            session.on("error", () => {});
            return session;
        }
        const ask = (session) => new Promise((resolve) => {
            const stream = session.request({ ":path": path });
            let status = 0, length = 0;
            stream.on("response", (fields) => { status = fields[":status"]; });
            stream.on("data", (part) => { length += part.length; });
            stream.on("error", () => {});
            stream.on("close", () => resolve(
                stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM ? "refused"
                    : status === 200 && length > 0 && stream.rstCode === 0 ? "answered" : "failed"));
        });
        async function client() {
            let session = connect();
            for (let number = 0; number < Number(count); number += 1) {
                let result = "refused";
                // A refused request was not begun, and is sent again (RFC 9113, section 8.7).
                while (result === "refused") {
                    if (session.isLeft) { session.close(); session = connect(); }
                    result = await ask(session);
                }
                if (result !== "answered") failures += 1;
            }
            session.close();
        }
        Promise.all(Array.from({ length: 16 }, client)).then(() => console.log(`${failures} ${told >= 16}`));
        """

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/node"), "node is not installed"))
    func clientsOfHTTP2LoseNoRequest() async throws {
        let directory = try TemporaryDirectory()
        try directory.write(Self.clients, to: "clients.js")
        try await upgrade { port in
            let (status, output) = try await run(
                "/usr/bin/node", ["\(directory.path)/clients.js", "\(port)", Self.path, "1500"])
            #expect(status == 0 && output == "0 true\n", "\(output)")
        }
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/wrk"), "wrk is not installed"))
    func wrkSeesNoError() async throws {
        try await upgrade { port in
            let (status, output) = try await run(
                "/usr/bin/wrk", ["-t2", "-c16", "-d8s", "http://127.0.0.1:\(port)\(Self.path)"])
            #expect(status == 0 && output.contains("requests in"))
            #expect(!output.contains("Socket errors") && !output.contains("Non-2xx"), "\(output)")
        }
    }

    @Test func idleConnectionsAreToldOfTheStop() async throws {
        let server = try await ImageServerProcess.start()
        let port = server.main
        let idle = try await onThread { () throws -> ClientBox in
            let http1 = try PlainClient(port: port)
            _ = try http1.request(Self.path)
            return ClientBox([http1])
        }
        let frames = Task {
            try await onThread { () throws -> [UInt8] in
                let http2 = try PlainClient(port: port)
                // The preface and an empty SETTINGS frame (RFC 9113, sections 3.4 and 6.5).
                try http2.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0")
                return try http2.frameTypesUntilEnd()
            }
        }
        try await eventually("both are connected") {
            try await server.metrics.contains("vitrine_connections{listener=\"main\"} 2\n")
        }
        server.process.send(SIGTERM)
        #expect(try await server.process.waitUntilEnd() == 0)
        #expect(try await onThread { try idle.isAtEnd() })
        // GOAWAY.
        #expect(try await frames.value.contains(7))
    }
}

/// The guide says the truth.
@Suite struct GuideTests {
    private func guide() throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: "Documentation/Guide.md"), encoding: .utf8)
    }

    private func code(_ text: String) -> String { "`\(text)`" }

    @Test func everySettingIsInItsTable() throws {
        let defaults = ServerConfiguration()
        let rows = ServerSettings.all.map { setting in
            let value = setting.get(defaults)
            let isEmpty = value == .text("") || value == .list([]) || value == .table([:])
            let cells = [
                code(setting.name) + (setting.isReloadable ? " ↻" : ""), setting.unit,
                isEmpty ? "" : code(value.toml), setting.help, setting.aliases.map(code).joined(separator: ", "),
            ]
            return "| " + cells.joined(separator: " | ") + " |"
        }
        try expectTable(rows, after: "| Setting | Value | Default | Meaning | imgproxy |")
    }

    @Test func everyMetricIsInItsTable() throws {
        let rows = ServerMetrics.table.map { metric in
            let labels = metric.labels.map(code).joined(separator: ", ")
            return "| \(code(metric.name)) | \(metric.kind.rawValue) | \(labels) | \(metric.help) |"
        }
        try expectTable(rows, after: "| Metric | Type | Labels | Meaning |")
    }

    @Test func everyErrorIsInItsTable() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources/VitrineServer")
        let files = try #require(FileManager.default.enumerator(atPath: sources.path)?.allObjects as? [String])
        let section = try #require(
            try guide().components(separatedBy: "\n## Errors\n").last?.components(separatedBy: "\n## ").first)
        let lines = section.components(separatedBy: "\n")
        let form = /(?:RequestError|\.init)\(\s*([0-9]{3}),\s*code:\s*"([a-z0-9-]+)"/
        var count = 0
        for file in files where file.hasSuffix(".swift") {
            let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
            for match in text.matches(of: form) {
                count += 1
                let (status, code) = (String(match.1), self.code(String(match.2)))
                let isListed = lines.contains { line in
                    line.contains(code)
                        && (line.hasPrefix("| \(status) |") || !line.hasPrefix("|") && section.contains("(\(status))"))
                }
                #expect(isListed, "\(status) \(code) of \(file)")
            }
        }
        #expect(count > 60)
    }

    private func expectTable(_ rows: [String], after head: String) throws {
        let lines = try guide().components(separatedBy: "\n")
        let begin = try #require(lines.firstIndex(of: head)) + 2
        let table = Array(lines[begin...].prefix { $0.hasPrefix("|") })
        #expect(table == rows, "The table must be:\n\(rows.joined(separator: "\n"))")
    }

    /// The examples print the URL that the server's own signer makes, as far as their interpreters are installed.
    @Test func examplesOfSignaturesAreRight() async throws {
        let path = "/rs:fit:300:300/plain/https://example.org/lake.jpg"
        let signer = URLSigner(pairs: [(key: Array("secret".utf8), salt: Array("hello".utf8))])
        let expected = "/\(signer.sign(path))\(path)\n"
        let text = try guide()
        let directory = try TemporaryDirectory()
        var ran: [String] = []
        for (language, programs, arguments) in [
            ("bash", ["bash"], [String]()), ("python", ["python3"], []), ("javascript", ["node", "nodejs"], []),
            ("go", ["go"], ["run"]), ("php", ["php"], []), ("ruby", ["ruby"], []),
        ] {
            let blocks = text.components(separatedBy: "```\(language)\n").dropFirst()
            let block = try #require(blocks.first?.components(separatedBy: "\n```").first, "\(language)")
            #expect(blocks.count == 1)
            let file = "sign.\(language)"
            try directory.write(block + "\n", to: file)
            let program = programs.flatMap { ["/usr/bin/\($0)", "/usr/local/bin/\($0)"] }
                .first(where: FileManager.default.isExecutableFile)
            guard let program else { continue }
            let (status, output) = try await run(program, arguments + ["\(directory.path)/\(file)"])
            #expect(status == 0 && output == expected, "\(language): \(output)")
            ran.append(language)
        }
        #expect(ran.contains("bash"))
    }
}
