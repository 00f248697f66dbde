#if os(Linux)
import Foundation
import Glibc
import ServerTestSupport
import Synchronization
import Testing
import VitrineCore
import VitrineS3
import VitrineServer

/// Sources and results in buckets of real servers.
@Suite(.serialized) struct FleetBucketTests {
    enum Kind: String, CaseIterable, Sendable {
        case openstackSwift = "openstack-swift"
        case radosgw

        var isInstalled: Bool {
            let programs = self == .radosgw
                ? ["radosgw", "ceph-mon", "ceph-osd", "ceph-mgr"]
                : ["swift-proxy-server", "swift-object-server", "swift-ring-builder", "memcached"]
            return getuid() == 0
                && programs.allSatisfy { FileManager.default.isExecutableFile(atPath: "/usr/bin/" + $0) }
        }
    }

    struct Store: Sendable {
        let endpoint: String
        let accessKey: String
        let secretKey: String

        var flags: [String] {
            ["--s3-endpoint", endpoint, "--s3-access-key", accessKey, "--s3-secret-key", secretKey]
        }

        func bucket(_ name: String) throws -> S3Bucket {
            var configuration = S3Client.Configuration()
            configuration.endpoint = endpoint
            configuration.credentials = .fixed(S3Credentials(accessKey: accessKey, secretKey: secretKey))
            return try S3Client(configuration).bucket(name)
        }
    }

    /// Starts a server, runs a test and ends the server.
    static func run(_ kind: Kind, _ body: (Store) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "s3-servers/serve")
        let program = try Program(script.path, [kind.rawValue, directory.path])
        _ = await program.hasSaid("\n")
        let words = program.output.split(whereSeparator: \.isWhitespace).map(String.init)
        var failure: (any Error)?
        if words.count == 4, words[0] == "ready" {
            do {
                try await body(Store(endpoint: words[1], accessKey: words[2], secretKey: words[3]))
            } catch {
                failure = error
            }
        } else {
            Issue.record("the S3 server did not start: \(words)")
        }
        // The end of its input ends the server.
        program.closeInput()
        await program.waitUntilEnd()
        if let failure { throw failure }
    }

    @Test(arguments: Kind.allCases.filter(\.isInstalled))
    func realServersHaveSourcesAndResults(_ kind: Kind) async throws {
        try await Self.run(kind) { store in
            for name in ["pictures", "private", "results"] {
                let bucket = try store.bucket(name)
                // A server that has just started may answer 503 while its parts wait for each other.
                try await eventually("the store makes a bucket") { (try? await bucket.create()) != nil }
            }
            let body = try Samples.bytes("lake.jpg")
            let pictures = try store.bucket("pictures")
            try await pictures.put(body, as: "a/lake 1.jpg", type: "image/jpeg")
            try await store.bucket("private").put(body, as: "lake.jpg", type: "image/jpeg")
            try await sources(store, pictures)
            try await results(store)
        }
    }

    private func sources(_ store: Store, _ pictures: S3Bucket) async throws {
        let server = try await ImageServerProcess.start(store.flags + ["--s3-buckets", "pictures"])
        // Escaped once as a key, and once more as a part of the path.
        let source = "s3://pictures/a/lake%25201.jpg"
        let first = try await server.image(source)
        #expect(first.status == 200 && first.fields["content-type"] == "image/jpeg", "\(first)")
        #expect(try await server.image(source).fields["cache-status"]?.contains("detail=memory") == true)
        for (source, status, code) in [
            ("s3://pictures/none.jpg", 404, "source-not-found"), ("s3://private/lake.jpg", 403, "source-not-allowed"),
            ("s3://pictures/a/%252E%252E/x", 400, "invalid-source"), ("s3://pictures", 400, "invalid-source"),
            ("http://s3.invalid/pictures/a/lake%25201.jpg", 502, "source-unreachable"),
        ] {
            let answer = try await server.image(source)
            #expect(answer.status == status && answer.code == code, "\(source): \(answer)")
            #expect(!answer.body.contains("pictures"))
        }
        // A new object is seen after a purge.
        try await pictures.put(try Samples.bytes("lake-grey.jpg"), as: "a/lake 1.jpg", type: "image/jpeg")
        let purge = try await server.purge("{\"prefix\":\"s3://pictures/a/\"}")
        #expect(purge.body == "{\"purged\":1}\n", "\(purge)")
        #expect(try await server.image(source).fields["etag"] != first.fields["etag"])
        try await server.end()

        let narrow = try await ImageServerProcess.start(
            store.flags + ["--s3-buckets", "pictures", "--max-source-bytes", "1000"])
        let large = try await narrow.image(source)
        #expect(large.status == 413 && large.code == "source-too-large", "\(large)")
        try await narrow.end()

        var wrong = store.flags
        wrong[5] = "another-secret"
        let refused = try await ImageServerProcess.start(wrong + ["--s3-buckets", "pictures"])
        let denied = try await refused.image(source)
        #expect(denied.status == 502 && denied.code == "source-denied", "\(denied)")
        try await refused.end()
        #expect(!refused.process.output.contains("another-secret"))
    }

    private func results(_ store: Store) async throws {
        let origin = try await Origin.samples()
        let source = origin.url("lake.jpg")
        let flags = store.flags + ["--result-store", "s3://results/fleet", "--result-store-timeout", "60"]
        func start() async throws -> ImageServerProcess { try await .start(flags) }
        let first = try await start()
        let made = try await first.image(source)
        try await eventually("the result is stored") {
            try await first.value("vitrine_store_writes_total{result=\"stored\"}") == 1
        }
        first.process.send(SIGKILL)
        try await first.process.waitUntilEnd()

        // Another node, without a tier and a disk.
        let second = try await start()
        let found = try await second.image(source)
        #expect(found.body == made.body && found.fields["etag"] == made.fields["etag"])
        #expect(found.fields["cache-status"]?.contains("detail=store") == true, "\(found.fields)")
        #expect(origin.requests.count == 1)

        // A purge makes it void for all.
        #expect(try await second.purge("{\"source\":\"\(source)\"}").status == 200)
        let third = try await start()
        #expect(try await third.image(source).status == 200)
        #expect(origin.requests.count == 2)
        #expect(try await third.value("vitrine_store_lookups_total{result=\"purged\"}") == 1)

        // Objects of others are no results.
        let bucket = try store.bucket("results")
        _ = try await third.image(source, 44)
        let name = Mutex<String?>(nil)
        try await eventually("the other result is stored") {
            var newest: S3Object?
            for try await object in bucket.list(prefix: "fleet/results/") {
                if newest == nil || (object.size ?? 0) < (newest?.size ?? 0) { newest = object }
            }
            name.withLock { $0 = newest?.key }
            return try await third.value("vitrine_store_writes_total{result=\"stored\"}") >= 2
        }
        try await third.end()
        try await second.end()
        let key = try #require(name.withLock { $0 })
        try await bucket.put(Array("evil".utf8), as: key, type: "image/jpeg")
        let fourth = try await start()
        for width in [44, 60] {
            let answer = try await fourth.image(source, width)
            #expect(answer.status == 200 && !answer.body.contains("evil"))
        }
        #expect(try await fourth.value("vitrine_store_lookups_total{result=\"damaged\"}") == 1)
        try await fourth.end()
    }

    @Test func errorsOfBucketsAreThoseOfSources() async throws {
        let server = try await Origin.start { request in
            let status = Int(request.path.split(separator: "/").last ?? "") ?? 500
            return .init(status: status, body: Array("<Error><Code>X</Code></Error>".utf8))
        }
        let node = try await ImageServerProcess.start([
            "--s3-endpoint", "http://127.0.0.1:\(server.port)", "--s3-access-key", "a", "--s3-secret-key", "secret-b",
            "--s3-buckets", "pictures", "--download-timeout", "60", "--timeout", "60",
        ])
        for (status, expected, code) in [
            (403, 502, "source-denied"), (404, 404, "source-not-found"), (429, 502, "source-failed"),
            (500, 502, "source-failed"), (503, 502, "source-failed"),
        ] {
            let answer = try await node.image("s3://pictures/\(status)")
            #expect(answer.status == expected && answer.code == code, "\(status): \(answer)")
            // Errors are kept for a moment.
            let before = server.requests.count
            #expect(try await node.image("s3://pictures/\(status)", 61).status == expected)
            #expect(server.requests.count == before)
        }
        try await node.end()
    }

    @Test func serversThatSendTooMuchOrNothingEndInTime() async throws {
        let endless = try ScriptedOrigin { received in
            received.target.contains("slow")
                ? [.text("HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n"), .hang]
                : [.text("HTTP/1.1 200 X\r\n\r\n"), .endless([UInt8](repeating: 1, count: 65_536))]
        }
        let node = try await ImageServerProcess.start([
            "--s3-endpoint", "http://127.0.0.1:\(endless.port)", "--s3-access-key", "a", "--s3-secret-key", "b",
            "--s3-buckets", "pictures", "--max-source-bytes", "1000000", "--download-timeout", "0.5",
        ])
        let large = try await node.image("s3://pictures/large")
        #expect(large.status == 413 || large.status == 504, "\(large)")
        let slow = try await node.image("s3://pictures/slow")
        #expect(slow.status == 504 && slow.code == "source-timeout", "\(slow)")
        try await node.end()
    }

    /// Look-ups that failed together are one reason to wait, not many.
    @Test func breakersWaitLongerOnlyAfterSingleAttempts() throws {
        let breaker = CallBreaker()
        let start = ContinuousClock.now
        let calls = try (0..<50).map { _ in try #require(breaker.begin(at: start)) }
        let changes = calls.map { breaker.end(isFailure: true, began: $0, at: start + .seconds(2)) }
        #expect(changes.prefix(3) == [nil, nil, .opened] && changes.dropFirst(3).allSatisfy { $0 == nil })
        #expect(breaker.isOpen && breaker.begin(at: start + .milliseconds(2_999)) == nil)
        // One attempt in each pause, which doubles up to 30 seconds.
        var now = start + .seconds(3)
        for pause in [2, 4, 8, 16, 30, 30] {
            let attempt = try #require(breaker.begin(at: now))
            #expect(breaker.begin(at: now) == nil)
            #expect(breaker.end(isFailure: true, began: attempt, at: now) == nil)
            now += .seconds(pause)
            #expect(breaker.begin(at: now - .milliseconds(1)) == nil)
        }
        let last = try #require(breaker.begin(at: now))
        #expect(breaker.end(isFailure: false, began: last, at: now) == .closed)
        #expect(!breaker.isOpen && breaker.begin(at: now) == now)
    }

    @Test func storesThatFailCostNothing() async throws {
        let origin = try await Origin.samples()
        let (descriptor, port) = try listeningSocket()
        // The system accepts connections, and nobody answers.
        defer { close(descriptor) }
        let node = try await ImageServerProcess.start([
            "--s3-endpoint", "http://127.0.0.1:\(port)", "--s3-access-key", "a", "--s3-secret-key", "b",
            "--result-store", "s3://results", "--result-store-timeout", "0.05", "--stop-timeout", "1",
        ])
        for width in 1...10 {
            #expect(try await node.image(origin.url("lake.jpg"), 10 * width).status == 200)
            #expect(try await node.isReady())
        }
        #expect(try await node.metrics.contains("vitrine_store_up 0\n"))
        #expect(try await node.value("vitrine_store_lookups_total{result=\"failed\"}") == 10)
        node.process.send(SIGKILL)
        try await node.process.waitUntilEnd()
    }
}

/// `vitrine-server warm`.
@Suite(.serialized) struct WarmTests {
    private func warm(_ arguments: [String]) async throws -> (status: Int32?, output: String) {
        let process = try ServerProcess(["warm"] + arguments)
        let status = try await process.waitUntilEnd()
        return (status, process.output)
    }

    @Test(.enabled(if: RedisServer.isInstalled, "redis-server is not installed"))
    func nodesWarmAListTogether() async throws {
        let redis = try await RedisServer()
        let origin = try await Origin.start { _ in
            .init(headers: [("Cache-Control", "max-age=600")], body: (try? Samples.bytes("lake.jpg")) ?? [])
        }
        let directory = try TemporaryDirectory()
        let paths = (0..<12).map { ImageServerProcess.path(origin.url("\($0)")) }
        let lines = ["# A list", ""] + paths + [paths[0], "https://images.example.org" + paths[1], "/insecure/no:1/x"]
        try directory.write(lines.joined(separator: "\n") + "\nrubbish\n", to: "list")
        let list = directory.path + "/list"
        let shared = [
            "--redis", redis.url, "--redis-timeout", "5", "--redis-connect-timeout", "10", "--allow-loopback-sources",
            "--accept", "*/*", "--parallel", "4",
        ]
        async let one = warm([list] + shared)
        async let other = warm([list] + shared)
        for (status, output) in try await [one, other] {
            #expect(status == 1, "\(output)")
            #expect(output.contains("14 images: ") && output.contains(" 2 failed in "), "\(output)")
            #expect(output.contains("line 17: 400 unknown-option: ") && output.contains("line 18: it is neither"))
            #expect(output.contains("14 of 14\n"))
        }
        #expect(origin.requests.count == 12)
        // A node that has nothing of its own.
        let fleet = try await Fleet.start(1, ["--redis", redis.url])
        for number in 0..<12 {
            let answer = try await fleet.nodes[0].image(origin.url("\(number)"))
            #expect(answer.fields["cache-status"]?.contains("detail=shared") == true, "\(answer)")
        }
        #expect(origin.requests.count == 12)
        try await fleet.end()
    }

    @Test func aServerIsAskedForAList() async throws {
        let server = try await ImageServerProcess.start()
        let directory = try TemporaryDirectory()
        let paths = [20, 30].map { ImageServerProcess.path("local:///lake.jpg", $0) }
        try directory.write(paths.joined(separator: "\n"), to: "list")
        let base = "http://127.0.0.1:\(server.main)/"
        let (status, output) = try await warm([directory.path + "/list", "--url", base, "--quiet"])
        #expect(status == 0 && output.hasPrefix("2 images: 2 made, 0 present, 0 failed in "), "\(output)")
        let (_, again) = try await run(
            "/bin/sh", ["-c", "\"$0\" warm - --url \(base) --quiet < \(directory.path)/list", ServerProcess.program])
        #expect(again.hasPrefix("2 images: 0 made, 2 present, 0 failed in "), "\(again)")
        try await server.end()
        for (arguments, status) in [
            ([], Int32(78)), (["/nonexistent"], 78), (["a", "b"], 78), (["a", "--parallel", "0"], 78),
            ([directory.path + "/list", "--url", "ftp://a"], 78), (["a", "--url", base, "--quality", "3"], 78),
            (["--help"], 0),
        ] {
            #expect(try await warm(arguments).status == status, "\(arguments)")
        }
    }
}
#endif
