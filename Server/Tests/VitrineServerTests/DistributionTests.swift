#if os(Linux)
import Foundation
import Glibc
import ServerTestSupport
import Testing
import VitrineS3
import VitrineServer

/// The examples in `Distribution/fleet`, with their commands and variables, as far as they run without containers.
@Suite(.serialized) struct DistributionTests {
    private static let nginx = "/usr/sbin/nginx"
    private static let canRun = RedisServer.isInstalled && FleetBucketTests.Kind.radosgw.isInstalled
        && FileManager.default.isExecutableFile(atPath: nginx)

    private static let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Distribution")

    private static func text(_ name: String) throws -> String {
        try String(contentsOf: directory.appending(path: name), encoding: .utf8)
    }

    private static let (key, salt) = ("0011223344556677", "8899aabbccddeeff")

    /// The path of an object of the bucket of originals, signed.
    private static func path(_ name: String, _ width: Int) throws -> String {
        let (key, salt) = (try #require([UInt8](hexadecimal: key)), try #require([UInt8](hexadecimal: salt)))
        let signer = URLSigner(key: key, salt: salt)
        let path = "/rs:fit:\(width):0/plain/s3://originals/\(name)"
        return "/\(signer.sign(path))\(path)"
    }

    /// Starts the program as an example does, but that a busy machine has time for commands of Redis.
    private static func start(
        _ arguments: [String], _ environment: [String: String]
    ) async throws -> ImageServerProcess {
        let patience = ["VITRINE_REDIS_TIMEOUT": "5", "VITRINE_REDIS_CONNECT_TIMEOUT": "10"]
        let process = try ServerProcess(arguments, environment: environment.merging(patience) { given, _ in given })
        let ports = try await process.ports()
        return ImageServerProcess(process: process, main: ports.main, admin: ports.admin)
    }

    private static func prepare(_ store: FleetBucketTests.Store) async throws {
        for name in ["originals", "results"] { try await store.bucket(name).create() }
        try await store.bucket("originals").put(try Samples.bytes("lake.jpg"), as: "lake.jpg", type: "image/jpeg")
    }

    // MARK: compose.yaml

    /// The variables of the servers in compose.yaml, with those of the shell.
    private static func composeEnvironment(_ shell: [String: String]) throws -> [String: String] {
        var environment: [String: String] = [:]
        for match in try text("fleet/compose.yaml").matches(of: /\n    (VITRINE_[A-Z0-9_]+): (.+)/) {
            environment[String(match.1)] = try String(match.2).replacing(/\$\{([A-Z0-9_]+):\?\}/) { name in
                try #require(shell[String(name.1)])
            }
        }
        return environment
    }

    @Test(.enabled(if: canRun, "needs root, redis-server, radosgw and nginx"))
    func threeNodesOfComposeServeImagesBehindTheirBalancer() async throws {
        let shell = [
            "VITRINE_KEY": Self.key, "VITRINE_SALT": Self.salt, "VALKEY_PASSWORD": "word", "S3_SECRET_KEY": "x",
        ]
        let compose = try Self.text("fleet/compose.yaml")
        // The command of Valkey, as a shell splits it.
        let command = try #require(compose.firstMatch(of: /command: >-\n((?:      .+\n)+)/)).1
            .split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: " ")
            .replacing("${VALKEY_PASSWORD:?}", with: "word")
        let (_, words) = try await run("/bin/sh", ["-c", "printf '%s\\n' \(command)"])
        let options = words.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
        #expect(options.first == "valkey-server")
        let redis = try await RedisServer(Array(options.dropFirst()))
        try await FleetBucketTests.run(.radosgw) { store in
            try await Self.prepare(store)
            var nodes: [ImageServerProcess] = []
            var directories: [TemporaryDirectory] = []
            for _ in 0..<3 {
                directories.append(try TemporaryDirectory())
                var environment = try Self.composeEnvironment(shell)
                // What stands for the names of containers and of their files.
                for (name, value, expected) in [
                    ("VITRINE_BIND", "127.0.0.1:0", "0.0.0.0:8080"),
                    ("VITRINE_ADMIN_BIND", "127.0.0.1:0", "127.0.0.1:8081"),
                    ("VITRINE_REDIS", redis.url, "redis://valkey:6379"),
                    ("VITRINE_S3_ENDPOINT", store.endpoint, "http://s3:9000"),
                    ("VITRINE_S3_ACCESS_KEY", store.accessKey, "images"),
                    ("VITRINE_S3_SECRET_KEY", store.secretKey, "x"),
                    ("VITRINE_DISK_CACHE", directories[directories.count - 1].path, "/var/cache/vitrine"),
                ] {
                    #expect(environment[name] == expected)
                    environment[name] = value
                }
                nodes.append(try await Self.start([], environment))
            }
            try await serve(Fleet(nodes: nodes), store)
        }
        let stop = ServerConfiguration().lameDuck + ServerConfiguration().stopTimeout
        #expect(compose.contains("stop_grace_period: 30s") && stop < 30)
    }

    private func serve(_ fleet: Fleet, _ store: FleetBucketTests.Store) async throws {
        for node in fleet.nodes {
            try await eventually("the tier is up") { try await node.metrics.contains("vitrine_tier_up 1\n") }
        }
        let directory = try TemporaryDirectory()
        let socket = directory.path + "/socket"
        var text = try Self.text("fleet/nginx.conf")
        for (index, node) in fleet.nodes.enumerated() {
            #expect(text.contains("node\(index + 1):8080 "))
            text = text.replacing("node\(index + 1):8080 ", with: "127.0.0.1:\(node.main) ")
        }
        #expect(text.contains("listen 8080;"))
        try directory.write(text.replacing("listen 8080;", with: "listen unix:\(socket);"), to: "nginx.conf")
        let balancer = try Program(
            Self.nginx,
            [
                "-c", directory.path + "/nginx.conf", "-p", directory.path,
                "-g", "daemon off; pid \(directory.path)/pid; error_log stderr;",
            ], mergesErrors: true)
        try await eventually("nginx listens") {
            #expect(balancer.isRunning, "\(balancer.output)")
            // The socket's file exists before it accepts connections.
            if !balancer.isRunning { return true }
            return (try? await onThread { _ = try PlainClient(path: socket) }) != nil
        }
        func ask(_ width: Int) async throws -> PlainClient.Answer {
            let path = try Self.path("lake.jpg", width)
            return try await onThread { try PlainClient(path: socket).request(path) }
        }
        let widths = Array(20..<40)
        for width in widths { #expect(try await ask(width).status == 200) }
        #expect(try await fleet.renders == widths.count)
        // Each URL has a node of its own, and each node has some.
        for node in fleet.nodes { #expect(try await node.value(ImageServerProcess.made) > 0) }
        let unsigned = try await onThread { try PlainClient(path: socket).request("/x/w:1/plain/s3://originals/a") }
        #expect(unsigned.status == 403)
        try await eventually("all results are shared and stored") {
            let shared = try await fleet.sum("vitrine_tier_writes_total{result=\"stored\"}")
            let stored = try await fleet.sum("vitrine_store_writes_total{result=\"stored\"}")
            return shared == widths.count && stored == widths.count
        }
        var objects = 0
        for try await _ in try store.bucket("results").list(prefix: "images/results/") { objects += 1 }
        #expect(objects == widths.count)

        // A node that dies costs no request, and no render.
        fleet.nodes[0].process.send(SIGKILL)
        try await fleet.nodes[0].process.waitUntilEnd()
        let before = try await fleet.renders
        for width in widths { #expect(try await ask(width).status == 200) }
        #expect(try await fleet.renders == before)
        #expect(try await fleet.sum("vitrine_cache_results_total{level=\"shared\"}") > 0)
        balancer.send(SIGTERM)
        await balancer.waitUntilEnd()
        try await fleet.end()
    }

    // MARK: systemd

    /// The variables of a unit, whose files are in a directory.
    private static func unitEnvironment(_ names: [String], _ directory: String) throws -> [String: String] {
        var environment: [String: String] = [:]
        for name in names {
            let text = try Self.text(name)
            for line in text.split(separator: "\n") where line.hasPrefix("Environment=") {
                for word in line.dropFirst(12).split(separator: " ") {
                    let parts = word.split(separator: "=", maxSplits: 1)
                    environment[String(parts[0])] = String(parts[1])
                        .replacing("%d", with: directory).replacing("%C", with: directory)
                }
            }
            // Each credential that a variable names is loaded.
            for match in text.matches(of: /%d\/([a-z0-9-]+)/) {
                #expect(text.contains("LoadCredential=\(match.1):/etc/vitrine/\(match.1)\n"), "\(name): \(match.1)")
            }
        }
        return environment
    }

    /// The arguments of the program in a unit.
    private static func command(_ name: String, _ directory: String) throws -> [String] {
        let line = try #require(try text(name).split(separator: "\n").first { $0.hasPrefix("ExecStart=") })
        let words = line.dropFirst(10).split(separator: " ").map(String.init)
        #expect(words.first == "/usr/bin/vitrine-server")
        return words.dropFirst().map { $0.replacing("/etc/vitrine", with: directory) }
    }

    @Test(.enabled(if: canRun, "needs root, redis-server, radosgw and nginx"))
    func unitsWarmAndServeImagesWithTheAccessListOfRedis() async throws {
        let access = Self.directory.appending(path: "fleet/users.acl").path(percentEncoded: false)
        let redis = try await RedisServer(["--aclfile", access])
        try await FleetBucketTests.run(.radosgw) { store in
            try await Self.prepare(store)
            let directory = try TemporaryDirectory()
            for (name, content) in [
                ("key", Self.key), ("salt", Self.salt), ("redis-password", "CHANGE-THIS-PASSWORD"),
                ("s3", "[default]\naws_access_key_id = \(store.accessKey)\naws_secret_access_key = \(store.secretKey)"),
                ("server.toml", ""),
                ("warm.list", try (20..<30).map { try Self.path("lake.jpg", $0) }.joined(separator: "\n")),
            ] {
                try directory.write(content + "\n", to: name)
            }
            func environment(_ units: [String]) throws -> [String: String] {
                var environment = try Self.unitEnvironment(units, directory.path)
                #expect(environment["VITRINE_REDIS"] == "redis://images@cache.internal:6379")
                #expect(environment["VITRINE_S3_ENDPOINT"] == "https://objects.internal")
                environment["VITRINE_REDIS"] = "redis://images@127.0.0.1:\(redis.port)"
                environment["VITRINE_S3_ENDPOINT"] = store.endpoint
                // A busy machine answers late, and a late tier is passed over.
                environment["VITRINE_REDIS_TIMEOUT"] = "10"
                return environment
            }
            let warming = try ServerProcess(
                try Self.command("fleet/vitrine-warm.service", directory.path),
                environment: try environment(["fleet/vitrine-warm.service"]))
            #expect(try await warming.waitUntilEnd() == 0, "\(warming.output)")
            #expect(warming.output.contains("10 images: 10 made, 0 present, 0 failed"), "\(warming.output)")

            var own = try environment(["vitrine-server.service", "fleet/vitrine-server.conf"])
            #expect(own["VITRINE_BIND"] == "0.0.0.0:8080")
            (own["VITRINE_BIND"], own["VITRINE_ADMIN_BIND"]) = ("127.0.0.1:0", "127.0.0.1:0")
            let node = try await Self.start(
                try Self.command("vitrine-server.service", directory.path), own)
            try await eventually("the tier is up") { try await node.metrics.contains("vitrine_tier_up 1\n") }
            // As the clients for which `warm` makes images.
            let fields = ["Accept": "image/avif,image/webp,*/*"]
            for width in 20..<30 {
                let answer = try await get(node.main, try Self.path("lake.jpg", width), fields)
                #expect(
                    answer.status == 200 && answer.fields["cache-status"]?.contains("detail=shared") == true,
                    "\(answer.status) \(answer.fields)")
            }
            // A purge needs further commands.
            let purge = try await node.purge("{\"source\":\"s3://originals/lake.jpg\"}")
            #expect(purge.status == 200, "\(purge)")
            let anew = try await get(node.main, try Self.path("lake.jpg", 20), fields)
            #expect(anew.status == 200 && anew.fields["cache-status"]?.contains("fwd=uri-miss") == true, "\(anew)")
            #expect(try await node.value("vitrine_tier_failures_total") == 0)
            try await node.end()
        }
    }
}
#endif
