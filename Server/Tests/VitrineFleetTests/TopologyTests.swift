import Foundation
import NIOCore
import Synchronization
import Testing
import VitrineFleet

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A Redis Cluster of three masters, with or without a replica of each.
private final class RedisCluster: Sendable {
    let servers: [RedisServer]

    init(replicas: Bool) async throws {
        var servers: [RedisServer] = []
        for _ in 0..<(replicas ? 6 : 3) {
            servers.append(
                try await RedisServer([
                    "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0",
                ]))
        }
        self.servers = servers
        for (index, server) in servers.enumerated() {
            try await server.command("CLUSTER", "SET-CONFIG-EPOCH", "\(index + 1)")
            if index > 0 { try await server.command("CLUSTER", "MEET", "127.0.0.1", "\(servers[0].port)") }
        }
        for index in 0..<3 {
            try await servers[index].command(
                "CLUSTER", "ADDSLOTSRANGE", "\(index * 5_461)", "\(index == 2 ? 16_383 : index * 5_461 + 5_460)")
        }
        for index in servers.indices.dropFirst(3) {
            let master = try await identifier(index - 3)
            try await eventually("the replica knows its master") {
                try await servers[index].command("CLUSTER", "REPLICATE", master) == .simple("OK")
            }
            // A replica that has never been synchronized is not promoted.
            try await eventually("the replica is synchronized") {
                try await servers[index].command("INFO", "replication").text?.contains("master_link_status:up") == true
            }
        }
        try await eventually("the cluster is complete") {
            for server in servers {
                let info = try await server.command("CLUSTER", "INFO").text ?? ""
                guard info.contains("cluster_state:ok"), info.contains("cluster_known_nodes:\(servers.count)") else {
                    return false
                }
            }
            return true
        }
        for server in servers where replicas {
            try await eventually("all know the replicas") {
                try await server.command("CLUSTER", "NODES").text?.components(separatedBy: "slave ").count == 4
            }
        }
    }

    var addresses: [RedisConfiguration.Address] { servers.map(\.address) }

    func identifier(_ index: Int) async throws -> String {
        try #require(await servers[index].command("CLUSTER", "MYID").text)
    }

    /// Moves slots with their keys from one master to another, as redis-cli does.
    func move(_ slots: Range<Int>, from source: Int, to target: Int) async throws {
        let (from, to) = (try await identifier(source), try await identifier(target))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for start in 0..<8 {
                group.addTask { [self] in
                    for slot in slots.dropFirst(start) where (slot - slots.lowerBound) % 8 == start {
                        try await move(slot, from: (servers[source], from), to: (servers[target], to))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func move(
        _ slot: Int, from source: (server: RedisServer, id: String), to target: (server: RedisServer, id: String)
    ) async throws {
        try await target.server.command("CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", source.id)
        try await source.server.command("CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", target.id)
        while let keys = try await source.server.command("CLUSTER", "GETKEYSINSLOT", "\(slot)", "100").items,
            !keys.isEmpty
        {
            let reply = try await source.server.command(
                ["MIGRATE", "127.0.0.1", "\(target.server.port)", "", "0", "5000", "KEYS"] + keys.compactMap(\.text))
            if case .error(let text) = reply { throw RedisError.server(text) }
        }
        for server in [target.server, source.server] {
            try await server.command("CLUSTER", "SETSLOT", "\(slot)", "NODE", target.id)
        }
    }
}

@Suite(.enabled(if: RedisServer.isInstalled, "redis-server is not installed"), .serialized) struct TopologyTests {
    /// Looks keys up and stores them again and again until it is ended. Counts the effects on users.
    private final class Load: Sendable {
        struct Counts {
            var lookups = 0
            var values = 0
            var leases = 0
            var bypasses = 0
            var wrong = 0
        }
        let counts = Mutex(Counts())
        private let isEnded = Mutex(false)

        func run(_ tiers: [RemoteTier], keys: Int, callers: Int) async {
            await withTaskGroup(of: Void.self) { group in
                for caller in 0..<callers {
                    group.addTask { [self] in
                        var turn = caller
                        while !isEnded.withLock({ $0 }) {
                            turn += 1
                            await once(tiers[turn % tiers.count], turn * 7 % keys)
                        }
                    }
                }
            }
        }

        private func once(_ tier: RemoteTier, _ index: Int) async {
            let result = await tier.lookup(RemoteKey("\(index)"))
            counts.withLock { $0.lookups += 1 }
            switch result {
            case .value(let value, _):
                let isRight = String(buffer: value.contents) == "value \(index)"
                counts.withLock { if isRight { $0.values += 1 } else { $0.wrong += 1 } }
            case .lease(let lease):
                counts.withLock { $0.leases += 1 }
                lease.store(ByteBuffer(string: "value \(index)"), freshFor: .seconds(600))
            case .bypass: counts.withLock { $0.bypasses += 1 }
            }
        }

        func end() { isEnded.withLock { $0 = true } }
    }

    @Test func slotsMoveUnderLoadWithoutAFailure() async throws {
        let cluster = try await RedisCluster(replicas: false)
        var tiers: [RemoteTier] = []
        for _ in 0..<2 { tiers.append(try await .testing(RedisConfiguration(.cluster(cluster.addresses)))) }
        let load = Load()
        let loaded = tiers
        async let running: Void = load.run(loaded, keys: 500, callers: 8)
        try await eventually("values are there") { load.counts.withLock { $0.values } > 1_000 }
        try await cluster.move(0..<1_500, from: 0, to: 1)
        try await cluster.move(15_884..<16_384, from: 2, to: 0)
        let before = load.counts.withLock { $0.values }
        try await eventually("the load goes on") { load.counts.withLock { $0.values } > before + 1_000 }
        load.end()
        await running
        let counts = load.counts.withLock { $0 }
        #expect(counts.wrong == 0)
        #expect(counts.bypasses == 0)
        #expect(counts.lookups == counts.values + counts.leases)
        #expect(tiers.allSatisfy { $0.statistics.failures == 0 && $0.statistics.outages == 0 })
    }

    @Test func clustersFailOverWithoutAWrongValue() async throws {
        let cluster = try await RedisCluster(replicas: true)
        var tiers: [RemoteTier] = []
        for _ in 0..<2 {
            // One seed: the other nodes are learned.
            tiers.append(
                try await .testing(RedisConfiguration(.cluster([cluster.addresses[1]]))) {
                    $0.redis.commandTimeout = .milliseconds(500)
                })
        }
        let load = Load()
        let loaded = tiers
        async let running: Void = load.run(loaded, keys: 300, callers: 4)
        try await eventually("values are there") { load.counts.withLock { $0.values } > 1_000 }
        cluster.servers[0].send(SIGKILL)
        try await eventually("the other tiers are told") { tiers.allSatisfy { $0.statistics.outages > 0 } }
        // All keys, also those of the master that is gone, are there again.
        try await eventually("all keys are there again") {
            for index in 0..<300 where await tiers[index % 2].text(RemoteKey("\(index)")) != "value \(index)" {
                return false
            }
            return true
        }
        try await eventually("the tiers are up") { tiers.allSatisfy { $0.status == .up } }
        // No request needs to be answered without the tier any more.
        try await eventually("no request is bypassed any more") {
            let before = load.counts.withLock { $0 }
            try await eventually("the load goes on") { load.counts.withLock { $0.lookups } > before.lookups + 2_000 }
            return load.counts.withLock { $0.bypasses } == before.bypasses
        }
        #expect(await tiers[0].purgeAll())
        load.end()
        await running
        let counts = load.counts.withLock { $0 }
        #expect(counts.wrong == 0)
        // Each request was answered, if only with the advice to render.
        #expect(counts.lookups == counts.values + counts.leases + counts.bypasses)
    }

    @Test func purgesReachAllNodesOfACluster() async throws {
        let cluster = try await RedisCluster(replicas: false)
        var tiers: [RemoteTier] = []
        for _ in 0..<3 { tiers.append(try await .testing(RedisConfiguration(.cluster(cluster.addresses)))) }
        // Groups of many slots.
        for index in 0..<30 {
            let key = RemoteKey(group: "group \(index)", name: "name")
            try await tiers[index % 3].put("old", key)
            #expect(await tiers[(index + 1) % 3].text(key) == "old")
            #expect(await tiers[(index + 2) % 3].purge(group: "group \(index)"))
            guard case .lease = await tiers[index % 3].lookup(key) else {
                Issue.record("the group was not purged")
                return
            }
        }
        // One node waits for a value of another: the announcement crosses the nodes of the cluster.
        for index in 0..<10 {
            let key = RemoteKey("awaited \(index)")
            guard case .lease(let lease) = await tiers[0].lookup(key) else {
                Issue.record("no lease")
                return
            }
            let second = tiers[1]
            async let other = second.lookup(key)
            try await eventually("the other node waits") { second.statistics.waits == index + 1 }
            lease.store(ByteBuffer(string: "value"), freshFor: .seconds(600))
            guard case .value = await other else {
                Issue.record("the value did not arrive")
                return
            }
        }
    }

    // MARK: Sentinel

    @Test func sentinelsNameTheNewMaster() async throws {
        let master = try await RedisServer(["--repl-diskless-sync-delay", "0"])
        let replica = try await RedisServer([
            "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", "\(master.port)",
        ])
        try await eventually("the replica is synchronized") {
            try await replica.command("INFO", "replication").text?.contains("master_link_status:up") == true
        }
        var sentinels: [RedisServer] = []
        for _ in 0..<3 {
            let port = try RedisServer.freePort()
            sentinels.append(
                try await RedisServer(
                    sentinel: """
                        port \(port)
                        bind 127.0.0.1
                        dir /tmp
                        sentinel monitor images 127.0.0.1 \(master.port) 2
                        sentinel down-after-milliseconds images 1000
                        sentinel failover-timeout images 5000

                        """, port: port))
        }
        for sentinel in sentinels {
            try await eventually("the sentinels know each other") {
                let state = try await sentinel.command("SENTINEL", "MASTER", "images")
                return state["num-other-sentinels"]?.integer == 2 && state["num-slaves"]?.integer == 1
            }
        }
        // The first sentinel does not exist.
        let missing = RedisConfiguration.Address("127.0.0.1", try RedisServer.freePort())
        let redis = RedisConfiguration(.sentinel([missing] + sentinels.map(\.address), master: "images"))
        let tier = try await RemoteTier.testing(redis) { $0.redis.commandTimeout = .milliseconds(500) }
        let key = RemoteKey("a")
        try await tier.put("kept", key)
        try await eventually("the replica has the value") {
            try await replica.command("KEYS", "*:v").items?.isEmpty == false
        }
        master.end()
        try await eventually("the new master is used") { await tier.text(key) == "kept" }
        try await eventually("the new master takes values") {
            guard case .lease(let lease) = await tier.lookup(RemoteKey("b")) else {
                return await tier.text(RemoteKey("b")) == "new"
            }
            lease.store(ByteBuffer(string: "new"), freshFor: .seconds(600))
            await tier.flush()
            return false
        }
        try await eventually("the tier is up") { tier.status == .up }

        let wrong = try RemoteTier(
            RemoteTier.configuration(.init(.sentinel(sentinels.map(\.address), master: "nothing"))))
        await wrong.waitUntilDown()
        guard case .down(.noMaster) = wrong.status else {
            Issue.record("\(wrong.status)")
            return
        }
    }
}
