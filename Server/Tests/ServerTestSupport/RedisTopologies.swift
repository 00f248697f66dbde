package import VitrineFleet

/// A Redis Cluster of three masters, with or without a replica of each.
package final class RedisCluster: Sendable {
    package let servers: [RedisServer]

    /// Starts a cluster, which is complete when the call returns.
    package init(replicas: Bool) async throws {
        // Without replicas no master can be replaced: then a pause of a loaded machine must not count as its end.
        let timeout = replicas ? 2_000 : 600_000
        var servers: [RedisServer] = []
        for _ in 0..<(replicas ? 6 : 3) {
            servers.append(
                try await RedisServer([
                    "--cluster-enabled", "yes", "--cluster-node-timeout", "\(timeout)", "--repl-diskless-sync-delay",
                    "0",
                ]))
        }
        self.servers = servers
        for (index, server) in servers.enumerated() {
            try await server.command("CLUSTER", "SET-CONFIG-EPOCH", "\(index + 1)")
            if index > 0 { try await server.command("CLUSTER", "MEET", "127.0.0.1", "\(servers[0].port)") }
        }
        for index in 0..<3 {
            let slots = Self.slots(of: index)
            try await servers[index].command(
                "CLUSTER", "ADDSLOTSRANGE", "\(slots.lowerBound)", "\(slots.upperBound - 1)")
        }
        for index in servers.indices.dropFirst(3) {
            let master = try await identifier(index - 3)
            try await eventually("the replica knows its master") {
                try await servers[index].command("CLUSTER", "REPLICATE", master) == .simple("OK")
            }
            // A replica that has never been synchronized is not promoted.
            try await eventually("the replica is synchronized") { try await servers[index].isSynchronized }
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
                let nodes = try await server.command("CLUSTER", "NODES").text ?? ""
                return nodes.split(separator: " ").count { $0.hasSuffix("slave") } == 3
            }
        }
    }

    /// The slots of a master in the beginning.
    package static func slots(of master: Int) -> Range<Int> {
        master * 5_461..<(master == 2 ? ClusterSlots.count : (master + 1) * 5_461)
    }

    package var addresses: [RedisConfiguration.Address] { servers.map(\.address) }
    package var url: String { "redis+cluster://" + addresses.map(\.description).joined(separator: ",") }

    private func identifier(_ index: Int) async throws -> String {
        guard let text = try await servers[index].command("CLUSTER", "MYID").text else {
            throw RedisError.server("no identifier")
        }
        return text
    }

    /// Moves slots with their keys from one master to another, as redis-cli does, eight at a time.
    package func move(_ slots: some Collection<Int> & Sendable, from source: Int, to target: Int) async throws {
        let (from, to) = (try await identifier(source), try await identifier(target))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for start in 0..<8 {
                group.addTask { [self] in
                    for (index, slot) in slots.enumerated() where index % 8 == start {
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
        try await Self.set(target.server, slot, "IMPORTING", source.id)
        try await Self.set(source.server, slot, "MIGRATING", target.id)
        while let keys = try await source.server.command("CLUSTER", "GETKEYSINSLOT", "\(slot)", "100").items,
            !keys.isEmpty
        {
            let reply = try await source.server.command(
                ["MIGRATE", "127.0.0.1", "\(target.server.port)", "", "0", "600000", "KEYS"] + keys.compactMap(\.text))
            if case .error(let text) = reply { throw RedisError.server(text) }
        }
        for server in [target.server, source.server] { try await Self.set(server, slot, "NODE", target.id) }
    }

    private static func set(_ server: RedisServer, _ slot: Int, _ state: String, _ id: String) async throws {
        let reply = try await server.command("CLUSTER", "SETSLOT", "\(slot)", state, id)
        guard reply == .simple("OK") else { throw RedisError.server("SETSLOT: \(reply)") }
    }
}

/// A master with a replica, and three sentinels that know them as `images`.
package final class RedisSentinels: Sendable {
    package let master: RedisServer
    package let replica: RedisServer
    package let sentinels: [RedisServer]

    /// Starts the servers. They know each other when the call returns.
    package init() async throws {
        let master = try await RedisServer(["--repl-diskless-sync-delay", "0"])
        let replica = try await RedisServer([
            "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", "\(master.port)",
        ])
        try await eventually("the replica is synchronized") { try await replica.isSynchronized }
        var sentinels: [RedisServer] = []
        for _ in 0..<3 {
            sentinels.append(
                try await RedisServer(sentinel: [
                    "sentinel monitor images 127.0.0.1 \(master.port) 2",
                    "sentinel down-after-milliseconds images 1000", "sentinel failover-timeout images 5000",
                ]))
        }
        for sentinel in sentinels {
            try await eventually("the sentinels know each other") {
                let state = try await sentinel.command("SENTINEL", "MASTER", "images")
                return state["num-other-sentinels"]?.integer == 2 && state["num-slaves"]?.integer == 1
            }
        }
        (self.master, self.replica, self.sentinels) = (master, replica, sentinels)
    }

    package var addresses: [RedisConfiguration.Address] { sentinels.map(\.address) }
    package var url: String {
        "redis+sentinel://" + addresses.map(\.description).joined(separator: ",") + "/images"
    }
}
