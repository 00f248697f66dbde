import Foundation
import NIOCore
import NIOPosix
import Synchronization
import VitrineFleet

/// Purges on one of four nodes, and when each of them has dropped its copy.
struct Purges {
    let url: String
    let rounds: Int

    private static let nodes = 4

    /// The copies of a node.
    private final class Node: Sendable {
        let tier: RemoteTier
        private let copies = Mutex<[RemoteKey: Signal]>([:])
        private let following = Mutex<Task<Void, Never>?>(nil)

        init(_ tier: RemoteTier) {
            self.tier = tier
            let task = Task { for await purge in tier.invalidations { self.drop(purge) } }
            following.withLock { $0 = task }
        }

        /// Keeps a copy. The signal is fired when it is dropped.
        func keep(_ key: RemoteKey) -> Signal {
            let signal = Signal()
            copies.withLock { $0[key] = signal }
            return signal
        }

        private func drop(_ purge: RemoteTier.Invalidation) {
            let dropped = copies.withLock { copies in
                let keys = copies.keys.filter { purge.includes($0) }
                return keys.compactMap { copies.removeValue(forKey: $0) }
            }
            for signal in dropped { signal.fire() }
        }

        func end() async {
            await tier.shutDown()
            following.withLock { $0 }?.cancel()
        }
    }

    func run() async throws -> Report {
        var nodes: [Node] = []
        for _ in 0..<Self.nodes {
            let tier = try RemoteTier(.init(redis: RedisConfiguration(url: url), namespace: "purges"))
            try await tier.connect()
            nodes.append(Node(tier))
        }
        var report = Report()
        report.add("idle", try await times(nodes))
        let ends = Counter()
        let loaded = nodes
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<16 {
                group.addTask {
                    var turn = caller
                    while ends.current == 0 {
                        turn += 7
                        let tier = loaded[caller % Self.nodes].tier
                        if case .lease(let lease) = await tier.lookup(RemoteKey("\(turn % 500)")) {
                            lease.store(ByteBuffer(repeating: 1, count: 20_000), freshFor: .seconds(3_600))
                        }
                        try await Task.sleep(for: .milliseconds(5))
                    }
                }
            }
            report.add("loaded", try await times(nodes))
            ends.next()
            try await group.waitForAll()
        }
        report.add("lookups", nodes.reduce(0) { $0 + $1.tier.statistics.hits })
        report.add("failures", nodes.reduce(0) { $0 + $1.tier.statistics.failures })
        for node in nodes { await node.end() }
        return report
    }

    /// From the purge until the last of the nodes has dropped its copy.
    private func times(_ nodes: [Node]) async throws -> [Duration] {
        var times: [Duration] = []
        for round in 0..<rounds {
            let key = RemoteKey(group: "source \(round)", name: "w:200")
            let dropped = nodes.map { $0.keep(key) }
            let node = nodes[round % nodes.count]
            let began = ContinuousClock.now
            async let announced = round % 2 == 0 ? node.tier.purge(key) : node.tier.purge(group: "source \(round)")
            for signal in dropped { await signal.wait(atMost: .seconds(30), on: loop) }
            times.append(ContinuousClock.now - began)
            guard await announced else { throw RedisError.unavailable }
            try await Task.sleep(for: .milliseconds(2))
        }
        return times
    }

    private let loop = MultiThreadedEventLoopGroup.singleton.any()
}
