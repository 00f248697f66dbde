import Foundation
import NIOCore
import Synchronization
import ServerTestSupport
import Testing
import VitrineFleet

@Suite(.enabled(if: RedisServer.isInstalled, "redis-server is not installed")) struct PurgeTests {
    private let key = RemoteKey(group: "http://example.com/a.jpg", name: "w:200")

    /// Collects the purges of a tier.
    private final class Purges: Sendable {
        let all = Mutex<[RemoteTier.Invalidation]>([])
        private let task: Mutex<Task<Void, Never>?> = Mutex(nil)

        init(_ tier: RemoteTier) {
            let all = self
            let purges = tier.invalidations
            let task = Task { for await purge in purges { all.all.withLock { $0.append(purge) } } }
            self.task.withLock { $0 = task }
        }

        var list: [RemoteTier.Invalidation] { all.withLock { $0 } }

        func end() { task.withLock { $0?.cancel() } }
    }

    @Test func purgesReachAllNodesInOrder() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(3, server)
        let purges = tiers.map { Purges($0) }
        let other = RemoteKey(group: "http://example.com/a.jpg", name: "w:100")
        let foreign = RemoteKey("foreign")
        for key in [key, other, foreign] { try await tiers[0].put("old", key) }
        #expect(await tiers[0].purge(key))
        guard case .lease(let lease) = await tiers[1].lookup(key) else {
            Issue.record("the value was not purged")
            return
        }
        #expect(await tiers[1].text(other) == "old")
        #expect(await tiers[2].purge(group: "http://example.com/a.jpg"))
        // What was made before the purge is not stored after it.
        lease.store(ByteBuffer(string: "before"), freshFor: .seconds(60))
        await tiers[1].flush()
        #expect(tiers[1].statistics.fencedStores == 1)
        for key in [key, other] {
            guard case .lease = await tiers[0].lookup(key) else {
                Issue.record("the group was not purged")
                return
            }
        }
        #expect(await tiers[1].text(foreign) == "old")
        #expect(await tiers[1].purgeAll())
        let group = RemoteKey.digest(of: "http://example.com/a.jpg")
        let expected: [RemoteTier.Invalidation] = [.all, .key(key), .group(group), .all]
        for purges in purges {
            try await eventually("all purges have arrived") { purges.list.count >= 4 }
            #expect(purges.list == expected)
            purges.end()
        }
        guard case .lease = await tiers[2].lookup(foreign) else {
            Issue.record("the namespace was not purged")
            return
        }
    }

    @Test func purgesOfTagsVoidTheTierAndNameTheTag() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server)
        let purges = tiers.map { Purges($0) }
        for purges in purges { try await eventually("the start counts as a purge") { purges.list == [.all] } }
        try await tiers[0].put("old", key)
        #expect(await tiers[1].text(key) == "old")
        #expect(await tiers[0].purge(tag: "red"))
        for purges in purges {
            try await eventually("the tag arrives") { purges.list.count >= 2 }
            #expect(purges.list == [.all, .tag(RemoteKey.digest(of: "red"))])
            purges.end()
        }
        guard case .lease = await tiers[1].lookup(key) else {
            Issue.record("a value survived")
            return
        }
        // A node that was away learns the tag, too. What it writes before that is not seen by the others.
        let late = Purges(tiers[0])
        try await server.command("CLIENT", "KILL", "TYPE", "pubsub")
        #expect(await tiers[1].purge(tag: "blue"))
        let blue = RemoteTier.Invalidation.tag(RemoteKey.digest(of: "blue"))
        try await eventually("the node that was away learns the tag") { late.list.contains(blue) }
        late.end()
        try await tiers[0].put("new", key)
        // The one that purged was away, too.
        try await eventually("both nodes have the same epoch") { await tiers[1].text(key) == "new" }
    }

    @Test func purgesRevokeLeases() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server)
        guard case .lease(let lease) = await tiers[0].lookup(key) else {
            Issue.record("no lease")
            return
        }
        #expect(!lease.isRevoked)
        #expect(await tiers[1].purge(RemoteKey("another")))
        #expect(await tiers[1].purge(key))
        try await eventually("the lease is revoked") { lease.isRevoked }
        // Another node makes the new value at once.
        guard case .lease = await tiers[1].lookup(key) else {
            Issue.record("the purged lease is still held")
            return
        }
    }

    @Test func purgesDuringAnOutageAreLearnedAfterwards() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server)
        let purges = tiers.map { Purges($0) }
        for purges in purges { try await eventually("the start counts as a purge") { purges.list == [.all] } }
        // The connections of all nodes end; the purge is in the journal before they are back.
        try await server.command("CLIENT", "KILL", "TYPE", "pubsub")
        let third = try await makeTiers(1, server)[0]
        #expect(await third.purge(key))
        #expect(await third.purge(group: "g"))
        for purges in purges {
            try await eventually("the purges are learned") { purges.list.count >= 3 }
            #expect(purges.list == [.all, .key(key), .group(RemoteKey.digest(of: "g"))])
            purges.end()
        }
    }

    @Test func lostJournalsPurgeEverything() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server)
        let purges = Purges(tiers[1])
        try await eventually("the start counts as a purge") { purges.list == [.all] }
        server.end()
        // A purge without a server waits.
        #expect(await tiers[0].purge(key) == false)
        guard case .bypass = await tiers[0].lookup(key) else {
            Issue.record("a purged value was used")
            return
        }
        try await server.restart()
        try await eventually("the waiting purge is in the new journal") {
            try await server.command("XLEN", "{test}:journal").integer ?? 0 >= 2
        }
        try await eventually("the other node follows the new journal") { purges.list.count >= 2 }
        // A node that connects after the purge has everything purged already.
        #expect(purges.list.starts(with: [.all, .all]) && [[], [.key(key)]].contains(Array(purges.list.dropFirst(2))))
        try await tiers[0].connect(within: .seconds(60))
        purges.end()
    }

    @Test func restartedNodesLearnExactlyWhatTheyMissed() async throws {
        let server = try await RedisServer()
        let path = server.directory + "/position"
        let first = try await makeTiers(1, server) { $0.positionPath = path }[0]
        let purges = Purges(first)
        let other = try await makeTiers(1, server)[0]
        #expect(await other.purge(RemoteKey("seen")))
        try await eventually("the purge has arrived") { purges.list.contains(.key(RemoteKey("seen"))) }
        try await eventually("the position is saved") {
            let text = try? String(contentsOfFile: path, encoding: .utf8)
            guard let id = try await server.command("XREVRANGE", "{test}:journal", "+", "-", "COUNT", "1")
                .items?.first?.items?.first?.text
            else { return false }
            return text?.contains(id) == true
        }
        await first.shutDown()
        #expect(await other.purge(RemoteKey("missed")))
        let second = try await makeTiers(1, server) { $0.positionPath = path }[0]
        let later = Purges(second)
        try await eventually("the purge has arrived") { later.list.isEmpty == false }
        #expect(later.list == [.key(RemoteKey("missed"))])
    }
}
