#if os(Linux)
import Foundation
import ServerTestSupport
import Testing

import VitrineServer

/// The proxy of the guide in front of the program.
@Suite(.serialized) struct ProxyTests {
    private static let nginx = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/bin/nginx"]
        .first(where: FileManager.default.isExecutableFile)

    /// nginx with the block of the guide, in a directory and on a port of its own.
    private struct Proxy {
        let program: Program
        let port: Int

        static func start(_ directory: TemporaryDirectory, upstream: Int) async throws -> Proxy {
            let guide = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: "Documentation/Guide.md")
            let text = try String(contentsOf: guide, encoding: .utf8)
            var block = try #require(
                text.components(separatedBy: "```nginx\n").dropFirst().first?.components(separatedBy: "\n```").first)
            let (descriptor, port) = try listeningSocket()
            close(descriptor)
            for (old, new) in [
                ("/var/cache/nginx/images", directory.path + "/images"), ("127.0.0.1:8080", "127.0.0.1:\(upstream)"),
                ("127.0.0.1:8090", "127.0.0.1:\(port)"),
            ] {
                #expect(block.contains(old))
                block = block.replacing(old, with: new)
            }
            let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .map { "\($0)_temp_path \(directory.path)/\($0);" }.joined(separator: " ")
            try directory.write(
                """
                daemon off; pid \(directory.path)/pid; error_log \(directory.path)/error.log;
                events {}
                http { access_log off; \(folders)
                \(block)
                }
                """, to: "nginx.conf")
            let program = try #require(nginx)
            let (status, output) = try await run(program, ["-t", "-c", directory.path + "/nginx.conf"])
            #expect(status == 0, "\(output)")
            let server = try Program(program, ["-c", directory.path + "/nginx.conf"])
            try await eventually("nginx listens") { (try? await get(port, "/health"))?.status == 200 }
            return Proxy(program: server, port: port)
        }

        func end() async throws {
            program.send(SIGTERM)
            await program.waitUntilEnd()
        }
    }

    @Test(.enabled(if: nginx != nil, "nginx is not installed: apt-get install nginx"))
    func nginxOfTheGuideServesTheProgram() async throws {
        let directory = try TemporaryDirectory()
        try Data(Samples.bytes("lake.jpg")).write(to: URL(filePath: directory.path + "/lake.jpg"))
        let large = (0..<20_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 4) }
        try Data(large).write(to: URL(filePath: directory.path + "/large.bin"))
        let program = try ServerProcess(
            ImageServerProcess.loopback + [
                "--local-root", directory.path, "--trusted-proxies", "127.0.0.1", "--rate-limit", "0",
            ])
        let ports = try await program.ports()
        let proxy = try await Proxy.start(directory, upstream: ports.main)
        let port = proxy.port
        func renders() async throws -> String? {
            try await get(ports.admin, "/metrics").body.split(separator: "\n")
                .first { $0.hasPrefix("vitrine_cache_results_total{level=\"made\"}") }.map(String.init)
        }

        // The address of a source keeps its slashes.
        let lake = "/insecure/rs:fit:100:100/plain/local:///lake.jpg@webp"
        let whole = try await get(port, lake)
        #expect(whole.status == 200 && whole.fields["content-type"] == "image/webp")
        let tag = try #require(whole.fields["etag"])
        #expect(!tag.hasPrefix("W/") && whole.fields["cache-control"]?.contains("max-age") == true)
        let first = try await renders()
        for _ in 0..<3 { #expect(try await get(port, lake).fields["etag"] == tag) }
        #expect(try await renders() == first)

        // Conditions and ranges, of what nginx has and of what it has not.
        for path in [lake, "/insecure/rs:fit:101:101/plain/local:///lake.jpg@webp"] {
            let head = try await get(port, path, method: "HEAD")
            let tag = try #require(head.fields["etag"])
            let length = try #require(head.fields["content-length"].flatMap { Int($0) })
            #expect(try await get(port, path, ["If-None-Match": tag]).status == 304)
            #expect(try await get(port, path, ["If-None-Match": "\"other\""]).status == 200)
            let part = try await get(port, path, ["Range": "bytes=8-11"])
            // The form of WebP.
            #expect(part.status == 206 && part.body == "WEBP")
            #expect(part.fields["content-range"] == "bytes 8-11/\(length)")
            #expect(try await get(port, path, ["Range": "bytes=0-3", "If-Range": "\"other\""]).status == 200)
            #expect(try await get(port, path, ["Range": "bytes=\(length)-"]).status == 416)
        }

        // Each format has an entry of its own.
        let open = "/insecure/rs:fit:100:100/plain/local:///lake.jpg"
        for _ in 0..<2 {
            for type in ["image/webp", "image/png"] {
                let answer = try await get(port, open, ["Accept": type])
                #expect(answer.fields["content-type"] == type && answer.fields["vary"] == "Accept")
            }
        }

        // A large answer, which nginx writes to a file.
        let raw = "/insecure/raw:1/plain/local:///large.bin"
        let (status, output) = try await run(
            "/bin/sh",
            ["-c", "curl -sS http://127.0.0.1:\(port)\(raw) | cmp - \(directory.path)/large.bin && echo same"])
        #expect(status == 0 && output == "same\n", "\(output)")

        // Errors, and the client that the log names.
        let missing = try await get(port, "/insecure/w:9/plain/local:///none.jpg")
        #expect(missing.status == 404 && missing.code == "source-not-found")
        #expect(missing.fields["cache-control"]?.contains("max-age") == true)
        #expect(try await get(port, "/insecure/w:x/plain/local:///lake.jpg").status == 400)
        #expect(program.output.contains("\"client\":\"127.0.0.1\""))

        // A purge makes the next URL anew; nginx keeps what it has.
        let purge = try await get(
            ports.admin, "/purge", method: "POST", ["Content-Type": "application/json"],
            body: "{\"source\": \"local:///lake.jpg\"}")
        #expect(purge.status == 200 && purge.body != "{\"purged\":0}\n")
        let before = try await renders()
        #expect(try await get(port, lake).status == 200)
        #expect(try await renders() == before)
        #expect(try await get(port, "/insecure/rs:fit:100:100/cb:2/plain/local:///lake.jpg@webp").status == 200)
        #expect(try await renders() != before)

        // A server that has ended is stood in for by what nginx has.
        program.send(SIGTERM)
        #expect(try await program.waitUntilEnd() == 0)
        #expect(try await get(port, lake).fields["etag"] == tag)
        #expect(try await get(port, "/insecure/w:77/plain/local:///lake.jpg").status == 502)
        try await proxy.end()
    }
}
#endif
