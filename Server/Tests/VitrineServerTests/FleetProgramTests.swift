#if os(Linux)
import Crypto
import Foundation
import Glibc
import NIOCore
import ServerTestSupport
import Synchronization
import Testing
import VitrineCore
import VitrineFleet
import VitrineServer

/// Several `vitrine-server` with one redis-server.
@Suite(.serialized, .enabled(if: RedisServer.isInstalled, "redis-server is not installed"))
struct FleetProgramTests {
    @Test func fourNodesMakeAnImageOnce() async throws {
        let redis = try await RedisServer()
        let origin = try await Origin.samples()
        let fleet = try await Fleet.start(4, ["--redis", redis.url])
        let source = origin.url("lake.jpg")
        let answers = try await withThrowingTaskGroup(of: PlainClient.Answer.self) { group in
            for node in fleet.nodes {
                for _ in 0..<50 { group.addTask { try await node.image(source) } }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.count == 200 && answers.allSatisfy { $0.status == 200 })
        #expect(Set(answers.map { $0.fields["etag"] }).count == 1)
        #expect(origin.count(of: "lake.jpg") == 1)
        #expect(try await fleet.sum("vitrine_stage_duration_seconds_count{stage=\"encode\"}") == 1)
        // The value itself has all that an answer says.
        let fields = ["content-type", "etag", "cache-control", "last-modified", "vary"]
        for answer in answers { for field in fields { #expect(answer.fields[field] == answers[0].fields[field]) } }
        try await fleet.end()
    }

    /// The first purge of a node is that of all it may have missed. Results made meanwhile are not shared.
    @Test func resultsAreSharedOnceTheFirstPurgeIsApplied() async throws {
        let redis = try await RedisServer()
        let tier = try RemoteTier(.init(redis: try RedisConfiguration(url: redis.url), namespace: "late"))
        let results = RemoteResults(tier: tier, durable: nil, wait: .seconds(1))
        let allowed = Mutex(false)
        let applied = Mutex(false)
        results.follow { _ in
            while !allowed.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(1)) }
            applied.withLock { $0 = true }
        }
        try await tier.connect(within: .seconds(60))
        #expect(!results.isUp)
        let connecting = Task { try await results.connect() }
        allowed.withLock { $0 = true }
        try await connecting.value
        #expect(results.isUp && applied.withLock { $0 })
        await results.shutDown()
        #expect(!results.isUp)
    }

    /// Images and tiles of a directory that all nodes see. Each change of the file is seen by all.
    @Test func sharedFilesAreRenderedOnce() async throws {
        let redis = try await RedisServer()
        let root = NSTemporaryDirectory() + "vitrine-shared-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: root) }
        let settings = ["--redis", redis.url, "--iiif"]
        let fleet = try await Fleet.start(3, settings + ["--local-shared"], root: root)
        let tile = "/iiif/3/a.jpg/0,0,256,256/256,256/0/default.jpg"
        var tags: [String?] = []
        for (turn, sample) in ["lake.jpg", "lake-grey.jpg"].enumerated() {
            try Data(try Samples.bytes(sample)).write(to: URL(filePath: root + "/a.jpg"), options: .atomic)
            // A file counts as unchanged for a second.
            if let old = tags.first {
                for node in fleet.nodes {
                    try await eventually("the change is seen") {
                        try await get(node.main, tile).fields["etag"] != old
                    }
                }
            }
            let before = try await fleet.renders
            for path in [tile, ImageServerProcess.path("local:///a.jpg", 90 + turn)] {
                var found: Set<String?> = []
                for node in fleet.nodes {
                    let answer = try await get(node.main, path)
                    #expect(answer.status == 200, "\(path)")
                    found.insert(answer.fields["etag"])
                }
                #expect(found.count == 1, "\(path)")
                if path == tile { tags.append(found.first ?? nil) }
            }
            // The tiles of the second turn were made while the change was waited for.
            #expect(try await fleet.renders == before + (turn == 0 ? 2 : 1))
        }
        #expect(tags[0] != tags[1])
        #expect(try await fleet.renders == 4)
        try await fleet.end()

        // Without the setting, files belong to one machine.
        let apart = try await Fleet.start(2, settings, root: root)
        for node in apart.nodes { #expect(try await get(node.main, tile).status == 200) }
        #expect(try await apart.renders == 2)
        try await apart.end()
    }

    @Test func killedHoldersCostOneRender() async throws {
        let redis = try await RedisServer()
        let gate = OpenSignal()
        let body = try Samples.bytes("lake.jpg")
        let count = Mutex(0)
        let origin = try await Origin.start { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { await gate.wait() }
            return .init(headers: [("Cache-Control", "max-age=600")], body: body)
        }
        let fleet = try await Fleet.start(4, ["--redis", redis.url], lease: 20)
        let source = origin.url("a")
        let answers = fleet.nodes.map { node in
            Task {
                try await withThrowingTaskGroup(of: PlainClient.Answer.self) { group in
                    for _ in 0..<10 { group.addTask { try await node.image(source) } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
            }
        }
        try await eventually("one node renders and the others wait") {
            let waiting = try await fleet.sum("vitrine_tier_waits_total")
            return !origin.requests.isEmpty && waiting == 3
        }
        var holder = 0
        for (index, node) in fleet.nodes.enumerated() where try await node.value("vitrine_loads_in_flight") == 1 {
            holder = index
        }
        fleet.nodes[holder].process.send(SIGKILL)
        for (index, answers) in answers.enumerated() {
            guard index != holder else {
                let result = await answers.result
                if case .success = result { Issue.record("a killed node has answered") }
                continue
            }
            let statuses = try await answers.value.map(\.status)
            #expect(statuses == Array(repeating: 200, count: 10))
        }
        gate.open()
        #expect(origin.requests.count == 2)
        #expect(try await fleet.sum("vitrine_stage_duration_seconds_count{stage=\"encode\"}") == 1)
        try await fleet.end()
    }

    /// An origin whose picture a test replaces.
    private final class Changing: Sendable {
        let name = Mutex("lake.jpg")
        let tag = "Surrogate-Key"

        func origin() async throws -> Origin {
            try await Origin.start { [self] _ in
                let body = (try? Samples.bytes(name.withLock { $0 })) ?? []
                return .init(headers: [("Cache-Control", "max-age=600"), (tag, "red blue")], body: body)
            }
        }
    }

    @Test(arguments: [
        "{\"source\":\"ORIGINa/b\"}", "{\"prefix\":\"ORIGINa/\"}", "{\"tag\":\"blue\"}", "{\"all\":true}",
    ])
    func purgesReachAllNodes(_ body: String) async throws {
        let redis = try await RedisServer()
        let picture = Changing()
        let origin = try await picture.origin()
        let directories = try (0..<4).map { _ in try TemporaryDirectory() }
        let fleet = try await Fleet.start(4, ["--redis", redis.url]) { ["--disk-cache", directories[$0].path] }
        let source = origin.url("a/b")
        var tags: Set<String?> = []
        for node in fleet.nodes { tags.insert(try await node.image(source).fields["etag"]) }
        let old = tags
        #expect(old.count == 1 && origin.requests.count == 1)
        var before: [Int] = []
        for node in fleet.nodes { before.append(try await node.value("vitrine_tier_invalidations_total")) }
        picture.name.withLock { $0 = "lake-grey.jpg" }
        let answer = try await fleet.nodes[1].purge(body.replacing("ORIGIN", with: origin.url("")))
        #expect(answer.status == 200, "\(answer)")
        for (node, before) in zip(fleet.nodes, before) {
            try await eventually("the purge arrives") {
                try await node.value("vitrine_tier_invalidations_total") > before
            }
            // Memory is emptied a moment after the push.
            try await eventually("the old image is gone") {
                let answer = try await node.image(source)
                #expect(answer.status == 200)
                return !old.contains(answer.fields["etag"])
            }
        }
        // No node brings the old image back.
        for node in fleet.nodes {
            let tag = try await node.image(source).fields["etag"]
            #expect(!old.contains(tag))
        }
        try await fleet.end()
    }

    @Test func restartedNodesDropWhatWasPurgedMeanwhile() async throws {
        let redis = try await RedisServer()
        let picture = Changing()
        let origin = try await picture.origin()
        let directory = try TemporaryDirectory()
        let first = try await Fleet.start(1, ["--redis", redis.url])
        let options = ["--redis", redis.url, "--disk-cache", directory.path]
        let second = try await Fleet.start(1, options)
        let old = try await second.nodes[0].image(origin.url("a")).fields["etag"]
        _ = try await second.nodes[0].image(origin.url("kept"))
        try await second.end()
        #expect(FileManager.default.fileExists(atPath: directory.path + "/fleet-position"))
        picture.name.withLock { $0 = "lake-grey.jpg" }
        #expect(try await first.nodes[0].purge("{\"source\":\"\(origin.url("a"))\"}").status == 200)
        let third = try await Fleet.start(1, options)
        try await eventually("the purge is applied") {
            try await third.nodes[0].value("vitrine_tier_invalidations_total") >= 1
        }
        try await eventually("the old image is gone") {
            try await third.nodes[0].image(origin.url("a")).fields["etag"] != old
        }
        // All else is still on its disk.
        let kept = try await third.nodes[0].image(origin.url("kept"))
        #expect(kept.fields["etag"] == old && kept.fields["cache-status"]?.contains("detail=disk") == true)
        try await third.end()
        try await first.end()
    }

    @Test func lostTiersDropWhatCannotBeVouchedFor() async throws {
        let redis = try await RedisServer()
        let picture = Changing()
        let origin = try await picture.origin()
        let fleet = try await Fleet.start(2, ["--redis", redis.url])
        let old = try await fleet.nodes[0].image(origin.url("a")).fields["etag"]
        picture.name.withLock { $0 = "lake-grey.jpg" }
        // The journal is lost, and with it any purge that was in it.
        try await redis.restart()
        try await eventually("the new journal is followed") {
            try await fleet.nodes[0].value("vitrine_tier_invalidations_total") >= 2
        }
        try await eventually("copies are dropped") {
            try await fleet.nodes[0].image(origin.url("a")).fields["etag"] != old
        }
        try await fleet.end()
    }

    enum Outage: String, CaseIterable, Sendable { case dead, frozen, full, password, noServer }

    @Test(arguments: Outage.allCases) func everyRequestIsAnsweredWithoutTheTier(_ outage: Outage) async throws {
        let origin = try await Origin.samples()
        let redis = try await RedisServer(outage == .password ? ["--requirepass", "right"] : [])
        let missing = try ClosedPort()
        let url =
            switch outage {
            case .password: "redis://:wrong-\(UUID())@127.0.0.1:\(redis.port)"
            case .noServer: "redis://127.0.0.1:\(missing.port)"
            default: redis.url
            }
        let node = try await ImageServerProcess.start(["--redis", url])
        let isUp = "vitrine_tier_up 1\n"
        switch outage {
        case .dead, .frozen, .full:
            try await eventually("the tier is up") { try await node.metrics.contains(isUp) }
            #expect(try await node.image(origin.url("lake.jpg")).status == 200)
        case .password, .noServer: break
        }
        switch outage {
        case .dead: redis.end()
        case .frozen: redis.send(SIGSTOP)
        case .full: try await redis.command("CONFIG", "SET", "maxmemory", "1")
        case .password, .noServer: break
        }
        for width in 1...20 {
            let answer = try await node.image(origin.url("lake.jpg"), 10 * width)
            #expect(answer.status == 200 && answer.fields["content-type"] == "image/jpeg")
            #expect(try await node.isReady())
        }
        #expect(try await node.image(origin.url("missing")).status == 404)
        let purge = try await node.purge("{\"source\":\"\(origin.url("lake.jpg"))\"}")
        // The other nodes do not know of it, and the operator does.
        #expect(purge.status == 503 && purge.body.contains("\"code\":\"purge-pending\""), "\(purge)")
        #expect(!purge.body.contains("removed 0 results"))
        #expect(try await node.metrics.contains("vitrine_tier_up 0\n"))
        switch outage {
        case .frozen:
            try await eventually("the server is asked no more") { try await !node.metrics.contains(isUp) }
            redis.send(SIGCONT)
            try await eventually("the tier is used again") { try await node.metrics.contains(isUp) }
        case .dead:
            try await eventually("the server is gone") { try await !node.metrics.contains(isUp) }
            try await redis.restart()
            try await eventually("the tier is used again") { try await node.metrics.contains(isUp) }
        case .password:
            #expect(!node.process.output.contains("wrong-"))
            #expect(node.process.output.contains("WRONGPASS"))
        default: break
        }
        try await node.end()
    }

    @Test func foreignAndDamagedValuesAreNeverServed() async throws {
        let redis = try await RedisServer()
        let origin = try await Origin.samples()
        let source = origin.url("lake.jpg")
        let first = try await Fleet.start(1, ["--redis", redis.url])
        let good = try await first.nodes[0].image(source)
        try await eventually("the value is stored") { try await redis.values.count == 1 }
        let key = try #require(try await redis.values.first)
        // Another namespace does not see it.
        let other = try await Fleet.start(1, ["--redis", redis.url, "--redis-namespace", "other"])
        #expect(try await other.nodes[0].image(source) .status == 200)
        #expect(origin.requests.count == 2)
        try await other.end()
        var count = 2
        for damage in ["garbage", "offset", "another"] {
            switch damage {
            case "garbage": try await redis.command("SET", key, "<svg>evil</svg>")
            case "offset": try await redis.command("SETRANGE", key, "300", "evil")
            default:
                // A value of another key with a right checksum.
                _ = try await first.nodes[0].image(source, 33)
                let isOther: @Sendable () async throws -> String? = {
                    try await redis.values.first { $0 != key && $0.hasPrefix("{vitrine:") }
                }
                try await eventually("the other value is stored") { try await isOther() != nil }
                let another = try #require(try await isOther())
                try await redis.command("COPY", another, key, "REPLACE")
                count = origin.requests.count
            }
            let node = try await Fleet.start(1, ["--redis", redis.url])
            let answer = try await node.nodes[0].image(source)
            #expect(answer.status == 200 && answer.body == good.body && answer.fields["etag"] == good.fields["etag"])
            count += 1
            #expect(origin.requests.count == count, "\(damage)")
            #expect(try await node.nodes[0].value("vitrine_tier_damaged_values_total") >= 1, "\(damage)")
            try await node.end()
        }
        try await first.end()
    }

    /// A value with a right checksum, by someone who can write into Redis.
    private static func forged(_ contents: [UInt8], like stored: [UInt8], _ key: String) -> [UInt8] {
        // `{NAMESPACE:EPOCH:GROUP}:NAME:v`
        let parts = key.split(separator: ":").map(String.init)
        let (group, name) = (parts[2].replacing("}", with: ""), parts[3])
        let typeLength = Int(stored[36]) << 8 | Int(stored[37])
        let type = stored[58..<(58 + typeLength)]
        let count = (0..<4).map { UInt8(truncatingIfNeeded: contents.count >> (24 - 8 * $0)) }
        let head = Array(stored[..<38]) + count
        let digest = SHA256.hash(data: Array((group + name).utf8) + head + type + contents)
        return head + Array(digest.prefix(16)) + type + contents
    }

    /// The contents of a value with another media type and other bytes.
    private static func contents(_ stored: [UInt8], _ change: (inout [String]) -> Void, _ file: [UInt8]?) -> [UInt8] {
        let typeLength = Int(stored[36]) << 8 | Int(stored[37])
        var lines = stored[(58 + typeLength)...].split(
            separator: 10, maxSplits: 15, omittingEmptySubsequences: false
        ).map { Array($0) }
        // Version, number of tags, then the thirteen lines of the result, then its file.
        var texts = lines[2..<15].map { String(decoding: $0, as: UTF8.self) }
        change(&texts)
        lines.replaceSubrange(2..<15, with: texts.map { Array($0.utf8) })
        if let file { lines[15] = file }
        return Array(lines.joined(separator: [10]))
    }

    @Test(arguments: [false, true]) func whatSomeoneWritesIntoTheTierIsNoAnswer(isKeyed: Bool) async throws {
        let redis = try await RedisServer()
        let pair = ["--key", "736563726574", "--salt", "68656c6c6f", "--trusted-signatures", "insecure"]
        let arguments = ["--redis", redis.url] + (isKeyed ? pair : [])
        let path = "/insecure/w:20/plain/local:///lake.jpg"
        let shared = arguments + ["--local-shared"]
        let first = try await Fleet.start(1, shared)
        let good = try await get(first.nodes[0].main, path)
        #expect(good.status == 200)
        try await eventually("the value is stored") { try await redis.values.count == 1 }
        try await first.end()
        let key = try #require(try await redis.values.first)
        let reply = try await redis.command("GET", key)
        let stored = try #require(reply.bytes.map { Array($0.readableBytesView) })
        #expect(stored[3] == (isKeyed ? 2 : 1))
        let page = Array("<script>alert(document.domain)</script>".utf8)
        let values = [
            Self.contents(stored, { $0[1] = "text/html" }, page),
            Self.contents(stored, { ($0[1], $0[2]) = ("text/html", "") }, page),
            Self.contents(stored, { $0[1] = "text/html" }, nil),
            Self.contents(
                stored, { ($0[1], $0[2], $0[3], $0[4]) = ("application/json", "", "", "") }, Array("{}".utf8)),
            Self.contents(stored, { $0[1] = "image/jpeg\rX: y" }, nil),
            Self.contents(stored, { $0[5] = "\"a\rSet-Cookie: b\"" }, nil),
            // A picture of somebody else, which only a secret tells from the right one.
            Self.contents(stored, { $0[2] = "png"; $0[1] = "image/png" }, try Samples.bytes("leaf.png")),
        ]
        for (number, value) in values.enumerated() where isKeyed || number < values.count - 1 {
            try await redis.set(Self.forged(value, like: stored, key), forKey: key)
            let node = try await Fleet.start(1, shared)
            let answer = try await get(node.nodes[0].main, path)
            #expect(answer.status == 200 && answer.fields["content-type"] == good.fields["content-type"], "\(number)")
            #expect(answer.fields["etag"] == good.fields["etag"], "\(number)")
            #expect(answer.fields["content-security-policy"]?.hasPrefix("sandbox;") == true)
            try await node.end()
        }
    }

    @Test func failuresOfSourcesDoNotPassFromNodeToNode() async throws {
        let redis = try await RedisServer()
        let gate = OpenSignal()
        let origin = try await Origin.start { _ in
            await gate.wait()
            return .init(status: 404)
        }
        let fleet = try await Fleet.start(3, ["--redis", redis.url])
        let source = origin.url("gone")
        let answers = fleet.nodes.map { node in Task { try await node.image(source).status } }
        try await eventually("two nodes wait for the third") {
            let waits = try await fleet.sum("vitrine_tier_waits_total")
            return waits == 2 && !origin.requests.isEmpty
        }
        #expect(origin.requests.count == 1)
        gate.open()
        for answer in answers {
            let status = try await answer.value
            #expect(status == 404)
        }
        // Results that must not be stored are not waited for either: each node makes its own, without a lease.
        let body = try Samples.bytes("lake.jpg")
        let personal = try await Origin.start { _ in .init(headers: [("Cache-Control", "no-store")], body: body) }
        for node in fleet.nodes {
            let status = try await node.image(personal.url("a")).status
            #expect(status == 200)
        }
        try await eventually("the mark is stored") { try await fleet.nodes[2].image(personal.url("a")).status == 200 }
        #expect(personal.requests.count >= 3)
        #expect(try await fleet.sum("vitrine_tier_writes_total{result=\"stored\"}") == 0)
        try await fleet.end()
    }

    @Test func staleResultsAreServedWhileOneNodeAsks() async throws {
        let redis = try await RedisServer()
        let body = try Samples.bytes("lake.jpg")
        // A source is not asked again for five seconds, whatever it says.
        let origin = try await Origin.start { _ in .init(headers: [("Cache-Control", "max-age=1")], body: body) }
        let fleet = try await Fleet.start(3, ["--redis", redis.url, "--stale-while-revalidate", "600"])
        let source = origin.url("a")
        #expect(try await fleet.nodes[0].image(source).status == 200)
        try await eventually("a node gets a stale result, and one asks the source") {
            for node in fleet.nodes {
                let status = try await node.image(source).status
                #expect(status == 200)
            }
            return origin.requests.count >= 2
        }
        // Equal bytes confirm the result without a render, on all nodes.
        #expect(try await fleet.sum("vitrine_stage_duration_seconds_count{stage=\"decode\"}") == 1)
        try await fleet.end()
    }

    @Test func slowFormatsAreMadeOnceToo() async throws {
        let redis = try await RedisServer()
        let origin = try await Origin.samples()
        let fleet = try await Fleet.start(3, ["--redis", redis.url, "--encode-deadline", "0.001"])
        let source = origin.url("lake.jpg")
        let accept = ["Accept": "image/avif,image/webp"]
        let first = try await fleet.nodes[0].image(source, 400, accept)
        #expect(first.fields["content-type"] == "image/webp")
        for node in fleet.nodes {
            try await eventually("the better format is there") {
                let answer = try await node.image(source, 400, accept)
                #expect(answer.status == 200)
                return answer.fields["content-type"] == "image/avif"
            }
        }
        #expect(origin.requests.count == 1)
        #expect(try await fleet.sum("vitrine_stage_duration_seconds_count{stage=\"decode\"}") == 1)
        try await fleet.end()
    }

    @Test func secretsAreNotShown() async throws {
        let redis = try await RedisServer(["--requirepass", "hunter2x"])
        let directory = try TemporaryDirectory()
        try directory.write("hunter2x\n", to: "password")
        let fleet = try await Fleet.start(
            1, ["--redis", redis.url, "--redis-password-file", directory.path + "/password", "--log-level", "debug"])
        let configuration = try await get(fleet.nodes[0].admin, "/config").body
        let facts = try await get(fleet.nodes[0].admin, "/debug").body
        #expect(facts.contains("\"tier\":\"up\"") && !configuration.contains("\(redis.port)"))
        try await fleet.end()
        #expect(!(fleet.nodes[0].process.output + configuration + facts).contains("hunter2x"))
        for (arguments, problem) in [
            (["--redis", "http://a"], "redis: "), (["--redis-namespace", "a b"], "redis-namespace: "),
            (["--redis", "redis://a", "--redis-tls-ca", "/dev/null"], "rediss"),
            (["--redis", "rediss://a", "--redis-tls-key", "/dev/null"], "redis-tls-key: it needs"),
            (["--redis", "redis://a", "--redis-password-file", "/nonexistent"], "cannot be read"),
        ] {
            let process = try ServerProcess(ImageServerProcess.loopback + arguments)
            #expect(try await process.waitUntilEnd() == 78, "\(arguments)")
            #expect(process.output.contains(problem), "\(process.output)")
        }
    }
}
#endif
