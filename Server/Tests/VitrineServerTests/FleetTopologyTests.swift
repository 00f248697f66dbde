#if os(Linux)
import Foundation
import Glibc
import ServerTestSupport
import Testing
import VitrineCore
import VitrineFleet
import VitrineServer

/// Several `vitrine-server` with Sentinels, with a cluster and with TLS, whose servers move, fail and return.
@Suite(.serialized, .enabled(if: RedisServer.isInstalled, "redis-server is not installed"))
struct FleetTopologyTests {
    /// An origin of one picture with any name.
    private static func origin() async throws -> Origin {
        let body = try Samples.bytes("lake.jpg")
        return try await .start { _ in .init(headers: [("Cache-Control", "max-age=3600")], body: body) }
    }

    private static func names(_ prefix: String, _ count: Int = 12) -> [String] {
        (0..<count).map { "\(prefix)-\($0)" }
    }

    /// Lets an event happen under load. No request may fail.
    private static func underLoad(
        _ fleet: Fleet, _ origin: Origin, _ prefix: String, _ event: () async throws -> Void
    ) async throws -> FleetLoad {
        let load = FleetLoad()
        async let running: Void = load.run(fleet, origin, prefix)
        do {
            try await eventually("images are asked for") { load.answered > 20 }
            try await event()
            let before = load.answered
            try await eventually("images are asked for again") { load.answered > before + 20 }
        } catch {
            load.end()
            throw error
        }
        load.end()
        await running
        #expect(load.failures.isEmpty, "\(load.failures)")
        return load
    }

    private static func outages(_ fleet: Fleet) async throws -> Int {
        var most = 0
        for node in fleet.nodes { most = max(most, try await node.value("vitrine_tier_outages_total")) }
        return most
    }

    /// A node that has made nothing gets all images from the tier.
    private static func expectShared(_ names: [String], _ origin: Origin, _ url: String) async throws {
        let count = origin.requests.count
        let fresh = try await Fleet.start(1, ["--redis", url])
        for name in names {
            let answer = try await fresh.nodes[0].image(origin.url(name))
            #expect(answer.fields["cache-status"]?.contains("detail=shared") == true, "\(name): \(answer.fields)")
        }
        #expect(origin.requests.count == count)
        try await fresh.end()
    }

    @Test func sentinelsFailOverUnderLoad() async throws {
        let servers = try await RedisSentinels()
        let origin = try await Self.origin()
        let fleet = try await Fleet.start(3, ["--redis", servers.url])
        let names = Self.names("before")
        try await fleet.makeOnce(names, from: origin, "before the failover")
        try await eventually("the replica has the values") { try await servers.replica.values.count >= names.count }
        _ = try await Self.underLoad(fleet, origin, "during") {
            servers.master.end()
            try await fleet.waitUntilRecovered(after: 0)
        }
        #expect(try await servers.replica.command("ROLE").items?.first?.text == "master")
        try await fleet.makeOnce(Self.names("after"), from: origin, "after the failover")
        try await Self.expectShared(names, origin, servers.url)
        try await fleet.end()
    }

    @Test func clustersMoveSlotsAndFailOverUnderLoad() async throws {
        let cluster = try await RedisCluster(replicas: true)
        let origin = try await Self.origin()
        let fleet = try await Fleet.start(3, ["--redis", cluster.url])
        let names = Self.names("before", 24)
        try await fleet.makeOnce(names, from: origin, "before slots move")
        try await eventually("all values are stored") {
            try await fleet.sum("vitrine_tier_writes_total{result=\"stored\"}") == names.count
        }
        // 2,000 slots, also all that have an image.
        let values = try await cluster.servers[0].values
        #expect(!values.isEmpty)
        let used = Set(values.map { ClusterSlots.slot(of: $0) })
        let slots = Array((used.sorted() + RedisCluster.slots(of: 0).filter { !used.contains($0) }).prefix(2_000))
        let load = try await Self.underLoad(fleet, origin, "moving") { try await cluster.move(slots, from: 0, to: 1) }
        let moved = Set(try await cluster.servers[1].values)
        #expect(values.allSatisfy { moved.contains($0) })
        // Also what was asked for meanwhile was made once.
        for name in load.names { #expect(origin.count(of: name) == 1, "\(name)") }
        #expect(try await fleet.renders == names.count + load.names.count)
        #expect(try await Self.outages(fleet) == 0)
        try await fleet.makeOnce(Self.names("after"), from: origin, "after slots have moved")
        try await Self.expectShared(names, origin, cluster.url)

        try await eventually("the replica has the values") {
            try await Set(cluster.servers[4].values).isSuperset(of: cluster.servers[1].values)
        }
        let outages = try await Self.outages(fleet)
        _ = try await Self.underLoad(fleet, origin, "failing") {
            cluster.servers[1].end()
            try await fleet.waitUntilRecovered(after: outages)
        }
        try await fleet.makeOnce(Self.names("at-last"), from: origin, "after the failover")
        try await Self.expectShared(names, origin, cluster.url)
        try await fleet.end()
    }

    @Test(.enabled(if: Certificate.isAvailable, "openssl is not installed"))
    func serversWithTLSReturnUnderLoad() async throws {
        let directory = try TemporaryDirectory()
        let certificate = try await Certificate(in: directory.path, isMutual: true)
        let redis = try await RedisServer(tls: certificate)
        let origin = try await Self.origin()
        let trust = ["--redis-tls-ca", certificate.certificate]
        let identity = ["--redis-tls-certificate", certificate.certificate, "--redis-tls-key", certificate.key]
        let fleet = try await Fleet.start(3, ["--redis", redis.url] + trust + identity)
        try await fleet.makeOnce(Self.names("before"), from: origin, "before the restart")
        _ = try await Self.underLoad(fleet, origin, "during") {
            try await redis.restart()
            try await fleet.waitUntilRecovered(after: 0)
        }
        try await fleet.makeOnce(Self.names("after"), from: origin, "after the restart")
        try await fleet.end()

        // Servers that do not fit: every request is answered, and the log says why once.
        let plain = try await RedisServer()
        for (url, arguments, reasons) in [
            (redis.url, [], ["CERTIFICATE_VERIFY_FAILED"]),
            (redis.url, trust, ["TLS handshake with the Redis server failed", "cannot be reached"]),
            ("redis://127.0.0.1:\(redis.port)", [], ["cannot be reached"]),
            ("rediss://127.0.0.1:\(plain.port)", trust, ["did not answer the TLS handshake", "WRONG_VERSION_NUMBER"]),
        ] {
            let node = try await ImageServerProcess.start(["--redis", url, "--redis-connect-timeout", "2"] + arguments)
            for width in 1...5 {
                let answer = try await node.image(origin.url("mismatch"), 10 * width)
                #expect(answer.status == 200 && answer.fields["content-type"] == "image/jpeg")
            }
            try await eventually("the reason is logged") { reasons.contains { node.process.output.contains($0) } }
            try await node.end()
            let lines = node.process.output.split(separator: "\n").filter { $0.contains("does not use Redis") }
            #expect(lines.count == 1, "\(url): \(lines)")
            #expect(!node.process.output.contains("vitrine_tier_up 1"))
        }
    }
}
#endif
