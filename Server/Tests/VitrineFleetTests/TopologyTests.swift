import Foundation
import NIOCore
import Synchronization
import ServerTestSupport
import Testing
import VitrineFleet

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

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
        for _ in 0..<2 {
            // Commands wait for slots that move, however long that takes on a loaded machine.
            tiers.append(
                try await .testing(RedisConfiguration(.cluster(cluster.addresses))) {
                    ($0.redis.commandTimeout, $0.redis.connectTimeout) = (.seconds(600), .seconds(600))
                    $0.maximumWait = .seconds(600)
                })
        }
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
        let servers = try await RedisSentinels()
        let (master, replica, sentinels) = (servers.master, servers.replica, servers.addresses)
        // The first sentinel does not exist.
        let missing = try ClosedPort()
        let redis = RedisConfiguration(.sentinel([missing.address] + sentinels, master: "images"))
        let tier = try await RemoteTier.testing(redis) { $0.redis.commandTimeout = .milliseconds(500) }
        let key = RemoteKey("a")
        try await tier.put("kept", key)
        try await eventually("the replica has the value") {
            try await !replica.values.isEmpty
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
            RemoteTier.configuration(.init(.sentinel(sentinels, master: "nothing"))))
        await wrong.waitUntilDown()
        guard case .down(.noMaster) = wrong.status else {
            Issue.record("\(wrong.status)")
            return
        }
    }
}
