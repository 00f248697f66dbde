import Foundation
import Logging
import NIOCore
import NIOPosix
import Synchronization
import ServerTestSupport
import Testing
import VitrineFleet

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

@Suite(.enabled(if: RedisServer.isInstalled, "redis-server is not installed")) struct RemoteTierTests {
    private let key = RemoteKey(group: "http://example.com/a.jpg", name: "w:200")

    @Test func nodesShareValuesWithTheirHeader() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server)
        try await tiers[0].put("picture", key, fresh: .seconds(100))
        guard case .value(let value, nil) = await tiers[1].lookup(key) else {
            Issue.record("no value")
            return
        }
        #expect(String(buffer: value.contents) == "picture")
        #expect(value.contentType == "text/plain")
        #expect(!value.isStale && value.freshness <= .seconds(100) && value.age >= .zero)
        #expect(tiers[0].statistics.stores == 1 && tiers[1].statistics.hits == 1)
        // Neither the address nor the options become a key.
        let keys = try await server.command("KEYS", "*").items ?? []
        #expect(keys.count == 4)
        #expect(keys.allSatisfy { $0.text?.contains("example") == false })
        await tiers[1].shutDown()
        guard case .bypass = await tiers[1].lookup(key) else {
            Issue.record("a tier that was shut down gave something")
            return
        }
    }

    @Test func tasksOfEventLoopsStayThere() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server)[0]
        try await tier.put("picture", key, fresh: .seconds(100))
        for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() {
            let isThere = await withTaskExecutorPreference(EventLoopTaskExecutor(loop)) {
                let isBefore = loop.inEventLoop
                guard case .value = await tier.lookup(key) else { return false }
                return isBefore && loop.inEventLoop
            }
            #expect(isThere)
        }
    }

    private final class Count: Sendable {
        let value = Mutex(0)
    }

    /// Each node with several requests at once for a value that does not exist: one render for all.
    @Test(arguments: [100]) func missingValuesAreMadeOnce(rounds: Int) async throws {
        let server = try await RedisServer()
        // Longer than a busy machine lets a process wait: a lease that lapses passes on, which other tests are about.
        let tiers = try await makeTiers(4, server) { $0.leaseTime = .seconds(60) }
        for round in 0..<rounds {
            let key = RemoteKey("round \(round)")
            let made = Count()
            let texts = await withTaskGroup(of: String?.self) { group in
                for index in 0..<200 {
                    group.addTask {
                        switch await tiers[index % 4].lookup(key) {
                        case .value(let value, _): return String(buffer: value.contents)
                        case .lease(let lease):
                            made.value.withLock { $0 += 1 }
                            try? await Task.sleep(for: .milliseconds(5))
                            lease.store(ByteBuffer(string: "made \(round)"), freshFor: .seconds(600))
                            return "made \(round)"
                        case .bypass: return nil
                        }
                    }
                }
                return await group.reduce(into: [String?]()) { $0.append($1) }
            }
            #expect(made.value.withLock { $0 } == 1)
            #expect(texts.allSatisfy { $0 == "made \(round)" })
        }
    }

    @Test func leasesThatAreReleasedPassOn() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server) { $0.leaseTime = .seconds(600) }
        guard case .lease(let lease) = await tiers[0].lookup(key) else {
            Issue.record("no lease")
            return
        }
        async let other = tiers[1].lookup(key)
        try await eventually("the other node waits") { tiers[1].waitingCount == 1 && tiers[1].statistics.waits == 1 }
        lease.release()
        guard case .lease(let second) = await other else {
            Issue.record("the lease did not pass on")
            return
        }
        // A second end has no effect.
        lease.store(ByteBuffer(string: "late"), freshFor: .seconds(60))
        second.store(ByteBuffer(string: "second"), freshFor: .seconds(60))
        await tiers[1].flush()
        #expect(await tiers[0].text(key) == "second")
    }

    @Test func valuesAreAnnouncedToTheNodesThatWaitOnly() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(4, server) { $0.leaseTime = .seconds(600) }
        let channels = try #require(await server.command("PUBSUB", "CHANNELS", "{test}:events:*").items)
        #expect(channels.count == 4)
        guard case .lease(let lease) = await tiers[0].lookup(key) else {
            Issue.record("no lease")
            return
        }
        let key = key
        async let texts = withTaskGroup(of: String?.self) { group in
            for index in [1, 1, 1, 2] { group.addTask { await tiers[index].text(key) } }
            return await group.reduce(into: [String?]()) { $0.append($1) }
        }
        try await eventually("two nodes wait") { tiers[1].statistics.waits == 3 && tiers[2].statistics.waits == 1 }
        let name = try #require(await server.command("KEYS", "*:l").items?.first?.text)
        let waiting = try #require(await server.command("HGET", name, "w").text).split(separator: " ")
        #expect(waiting.count == 2 && Set(waiting.map(String.init)).isSubset(of: channels.compactMap(\.text)))
        lease.store(ByteBuffer(string: "made"), freshFor: .seconds(600))
        #expect(await texts == ["made", "made", "made", "made"])
    }

    @Test func leasesThatAreForgottenPassOn() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server) { $0.leaseTime = .seconds(600) }
        do {
            guard case .lease = await tiers[0].lookup(key) else {
                Issue.record("no lease")
                return
            }
        }
        guard case .lease = await tiers[1].lookup(key) else {
            Issue.record("the lease did not pass on")
            return
        }
    }

    @Test func waitsEndWithTheDeadlineAndTheTask() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server) { $0.leaseTime = .seconds(600) }
        guard case .lease(let lease) = await tiers[0].lookup(key) else {
            Issue.record("no lease")
            return
        }
        guard case .bypass = await tiers[1].lookup(key, deadline: .now + .milliseconds(50)) else {
            Issue.record("the deadline did not end the wait")
            return
        }
        let (tier, key) = (tiers[1], key)
        let waiting = Task { await tier.lookup(key) }
        try await eventually("the other node waits") { tier.waitingCount == 1 && tier.statistics.waits == 2 }
        waiting.cancel()
        guard case .bypass = await waiting.value else {
            Issue.record("cancellation did not end the wait")
            return
        }
        #expect(tier.waitingCount == 0)
        lease.release()
    }

    @Test func leasesAreExtendedAsLongAsTheyExist() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server) { $0.leaseTime = .seconds(6) }[0]
        guard case .lease(let lease) = await tier.lookup(key) else {
            Issue.record("no lease")
            return
        }
        let name = try #require(await server.command("KEYS", "*:l").items?.first?.text)
        var last = Int64.max
        try await eventually("the time of the lease grows") {
            let left = try #require(await server.command("PTTL", name).integer)
            defer { last = left }
            return left > last
        }
        lease.release()
        await tier.flush()
        #expect(try await server.command("EXISTS", name) == .integer(0))
    }

    // MARK: Holders that die

    private func node(_ server: RedisServer) throws -> Program {
        let directory = (CommandLine.arguments[0] as NSString).deletingLastPathComponent
        return try Program(directory + "/fleet-node", [server.url, "test", "shared"])
    }

    @Test func holdersThatAreKilledLoseTheirLease() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server)[0]
        let holder = try node(server)
        try await eventually("the node has the lease") { holder.output == "lease\n" }
        async let lookups = withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    guard case .lease(let lease) = await tier.lookup(RemoteKey("shared")) else { return false }
                    lease.store(ByteBuffer(string: "again"), freshFor: .seconds(60))
                    return true
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        try await eventually("all wait") { tier.statistics.waits == 50 }
        holder.send(SIGKILL)
        #expect(await lookups == 1)
        #expect(await tier.text(RemoteKey("shared")) == "again")
    }

    @Test func holdersThatWereFrozenDoNotOverwriteNewerValues() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server)[0]
        let holder = try node(server)
        try await eventually("the node has the lease") { holder.output == "lease\n" }
        holder.send(SIGSTOP)
        guard case .lease(let lease) = await tier.lookup(RemoteKey("shared")) else {
            Issue.record("the lease did not pass on")
            return
        }
        lease.store(ByteBuffer(string: "newer"), freshFor: .seconds(60))
        await tier.flush()
        holder.send(SIGCONT)
        holder.write("store\n")
        try await eventually("the node has ended") { !holder.isRunning }
        #expect(holder.output == "lease\n0 1\n")
        #expect(await tier.text(RemoteKey("shared")) == "newer")
    }

    // MARK: Freshness

    @Test func staleValuesAreServedWhileOneNodeRefreshes() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server)
        try await tiers[0].put("old", key, fresh: .zero, stale: .seconds(600))
        let results = await withTaskGroup(of: (Bool, Lease?).self) { group in
            for index in 0..<100 {
                group.addTask {
                    guard case .value(let value, let lease) = await tiers[index % 2].lookup(key) else {
                        return (false, nil)
                    }
                    return (value.isStale && String(buffer: value.contents) == "old", lease)
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.allSatisfy { $0.0 })
        let leases = results.compactMap { $0.1 }
        #expect(leases.count == 1)
        leases.first?.store(ByteBuffer(string: "new"), freshFor: .seconds(600))
        for tier in tiers { await tier.flush() }
        guard case .value(let value, nil) = await tiers[1].lookup(key) else {
            Issue.record("no value")
            return
        }
        #expect(String(buffer: value.contents) == "new" && !value.isStale)
    }

    @Test func valuesThatAreAskedForAreRefreshedBeforeTheyAreStale() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server) { $0.earlyRefresh = 0.999 }
        try await tiers[0].put("hot", key, fresh: .seconds(600))
        try await eventually("one is to refresh") {
            guard case .value(let value, let lease?) = await tiers[1].lookup(key) else { return false }
            #expect(!value.isStale)
            lease.release()
            return true
        }
        let late = try await makeTiers(1, server) { $0.earlyRefresh = 0 }[0]
        guard case .value(_, nil) = await late.lookup(key) else {
            Issue.record("a value was refreshed too early")
            return
        }
    }

    @Test func clocksOfNodesDoNotMatter() async throws {
        let server = try await RedisServer()
        let early = try await makeTiers(1, server)[0]
        let late = try await makeTiers(1, server) {
            let uptime = $0.uptime
            $0.uptime = { uptime() + .seconds(1_000_000) }
        }[0]
        try await late.put("a", RemoteKey("a"), fresh: .seconds(100))
        try await early.put("b", RemoteKey("b"), fresh: .seconds(100))
        for (tier, key) in [(early, "a"), (late, "b")] {
            guard case .value(let value, nil) = await tier.lookup(RemoteKey(key)) else {
                Issue.record("no value")
                return
            }
            #expect(value.freshness > .seconds(50) && value.freshness < .seconds(150) && value.age < .seconds(50))
        }
    }

    // MARK: Damage

    /// The key of the only value in Redis.
    private func storedKey(_ server: RedisServer) async throws -> String {
        try #require(await server.command("KEYS", "*:v").items?.first?.text)
    }

    @Test(arguments: ["foreign", "short", "version", "content", "header", "key"])
    func damagedValuesAreMadeAnew(kind: String) async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server)
        try await tiers[0].put("picture", key)
        let stored = try await storedKey(server)
        switch kind {
        case "foreign": try await server.command("SET", stored, "another application's value, which is longer")
        case "short": try await server.command("SET", stored, "VFT")
        case "version": try await server.command("SETRANGE", stored, "3", "\u{7}")
        case "content": try await server.command("SETRANGE", stored, "70", "x")
        case "header": try await server.command("SETRANGE", stored, "30", "x")
        default:
            // The value of another key.
            try await tiers[0].put("other", RemoteKey(group: "http://example.com/a.jpg", name: "w:100"))
            let other = try await server.command("KEYS", "*:v").items?.compactMap(\.text).first { $0 != stored }
            try await server.command("COPY", try #require(other), stored, "REPLACE")
        }
        try await tiers[1].put("anew", key)
        #expect(tiers[1].statistics.damagedValues == 1)
        let text = await tiers[0].text(key)
        #expect(text == "anew", "\(tiers.map(\.statistics)) \(tiers.map(\.status))")
    }

    @Test func keysOfAnotherTypeAreBypassed() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server)[0]
        try await tier.put("picture", key)
        let stored = try await storedKey(server)
        try await server.command("DEL", stored)
        try await server.command("RPUSH", stored, "a", "b")
        guard case .bypass = await tier.lookup(key) else {
            Issue.record("a list was used as a value")
            return
        }
        #expect(tier.statistics.failures == 1)
    }

    @Test func failuresAreLoggedOnceAndCounted() async throws {
        let server = try await RedisServer()
        let lines = LogLines()
        let tier = try await makeTiers(1, server) { $0.logger = Logger(label: "test") { _ in lines } }[0]
        try await tier.put("picture", key)
        let stored = try await storedKey(server)
        try await server.command("DEL", stored)
        try await server.command("RPUSH", stored, "a", "b")
        for _ in 0..<20 { _ = await tier.lookup(key) }
        #expect(tier.statistics.failures == 20)
        #expect(lines.store.lines.withLock { $0 }.count { $0.contains("WRONGTYPE") } == 1)
    }

    /// Keeps the lines of a log.
    struct LogLines: LogHandler {
        final class Store: Sendable {
            let lines = Mutex<[String]>([])
        }
        let store = Store()
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) { store.lines.withLock { $0.append("\(event.message)") } }
    }

    @Test func valuesThatAreTooLargeAreNotSharedAndNotWaitedFor() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server) { $0.maximumValueSize = 1_000 }
        guard case .lease(let lease) = await tiers[0].lookup(key) else {
            Issue.record("no lease")
            return
        }
        async let other = tiers[1].lookup(key)
        try await eventually("the other node waits") { tiers[1].statistics.waits == 1 }
        lease.store(ByteBuffer(repeating: 1, count: 1_001), freshFor: .seconds(600))
        guard case .bypass = await other else {
            Issue.record("a value that is too large was shared")
            return
        }
        #expect(tiers[0].statistics.oversizedValues == 1 && tiers[0].statistics.stores == 0)
        // A node with a larger limit may have stored it.
        let large = try await makeTiers(1, server)[0]
        let second = RemoteKey("second")
        guard case .lease(let lease) = await large.lookup(second) else {
            Issue.record("no lease")
            return
        }
        lease.store(ByteBuffer(repeating: 1, count: 200_000), freshFor: .seconds(600))
        await large.flush()
        guard case .bypass = await tiers[1].lookup(second) else {
            Issue.record("a value beyond the limit was used")
            return
        }
    }

    @Test func writesBeyondTheQueueAreDroppedAndCounted() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server) { $0.writeQueueSize = 1_500 }[0]
        guard case .lease(let lease) = await tier.lookup(key) else {
            Issue.record("no lease")
            return
        }
        lease.store(ByteBuffer(repeating: 1, count: 1_000), freshFor: .seconds(600))
        #expect(tier.statistics.droppedStores == 1)
        // The lease passes on.
        try await eventually("the lease is free") {
            if case .lease = await tier.lookup(key, deadline: .now) { return true }
            return false
        }
    }

    @Test func valuesWhoseGenerationWasEvictedAreMadeAnew() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server)[0]
        try await tier.put("old", key)
        let generation = try #require(await server.command("KEYS", "*:g").items?.first?.text)
        try await server.command("DEL", generation)
        try await tier.put("new", key)
        #expect(await tier.text(key) == "new")
        // Servers forget scripts when they are restarted, or told to.
        try await server.command("SCRIPT", "FLUSH")
        try await tier.put("third", RemoteKey("third"))
        #expect(tier.statistics.failures == 0)
    }

    @Test func fullServersLoseOnlyTheTier() async throws {
        let server = try await RedisServer(["--maxmemory", "3mb", "--maxmemory-policy", "noeviction"])
        let tier = try await makeTiers(1, server)[0]
        guard case .lease(let lease) = await tier.lookup(key) else {
            Issue.record("no lease")
            return
        }
        try await server.command("SETRANGE", "ballast", "4000000", "x")
        lease.store(ByteBuffer(repeating: 1, count: 100_000), freshFor: .seconds(600))
        await tier.flush()
        #expect(tier.statistics.droppedStores == 1)
        guard case .bypass = await tier.lookup(RemoteKey("other")) else {
            Issue.record("a full server gave a lease")
            return
        }
    }

    // MARK: Outages

    @Test func frozenServersAreAskedNoMoreAndUsedAgain() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server) {
            $0.redis.commandTimeout = .milliseconds(100)
            $0.redis.connectTimeout = .milliseconds(200)
        }[0]
        // A loaded machine may be slow for a moment.
        try await eventually("the value is stored") {
            if case .lease(let lease) = await tier.lookup(key) {
                lease.store(ByteBuffer(string: "kept"), freshFor: .seconds(600))
                await tier.flush()
            }
            return await tier.text(key) == "kept"
        }
        server.send(SIGSTOP)
        try await eventually("the breaker is open") {
            _ = await tier.lookup(key)
            guard case .down = tier.status else { return false }
            return true
        }
        let failures = tier.statistics.failures
        let began = ContinuousClock.now
        for _ in 0..<1_000 { _ = await tier.lookup(key) }
        // Without the breaker, each of them would take 100 ms.
        #expect(ContinuousClock.now - began < .seconds(20))
        #expect(tier.statistics.failures == failures + 1_000)
        server.send(SIGCONT)
        try await eventually("the server is used again") { await tier.text(key) == "kept" }
    }

    @Test func nodesDoNotWaitForServersThatDieMeanwhile() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server) { $0.leaseTime = .seconds(600) }
        guard case .lease(let lease) = await tiers[0].lookup(key) else {
            Issue.record("no lease")
            return
        }
        async let waiting = tiers[1].lookup(key)
        try await eventually("the other node waits") { tiers[1].statistics.waits == 1 }
        server.end()
        guard case .bypass = await waiting else {
            Issue.record("the wait went on")
            return
        }
        lease.store(ByteBuffer(string: "lost"), freshFor: .seconds(60))
        await tiers[0].flush()
        #expect(tiers[0].statistics.droppedStores == 1)
    }

    @Test func nodesDoNotWaitForServersThatFreezeMeanwhile() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server) {
            $0.leaseTime = .seconds(600)
            $0.maximumWait = .seconds(600)
            $0.redis.commandTimeout = .milliseconds(300)
            $0.redis.connectTimeout = .milliseconds(300)
        }
        // A loaded machine may be slow for a moment.
        let held = Mutex<Lease?>(nil)
        let (tier, key) = (tiers[1], key)
        try await eventually("there is a lease") {
            guard case .lease(let lease) = await tiers[0].lookup(key) else { return false }
            held.withLock { $0 = lease }
            return true
        }
        let waiting = Task { await tier.lookup(key) }
        try await eventually("the other node waits") { tier.waitingCount == 1 && tier.statistics.waits == 1 }
        server.send(SIGSTOP)
        guard case .bypass = await waiting.value else {
            Issue.record("the wait went on")
            return
        }
        server.send(SIGCONT)
    }

    @Test func namespacesAreSeparateAndChecked() async throws {
        let server = try await RedisServer()
        let one = try await makeTiers(1, server)[0]
        let other = try await RemoteTier.testing(RedisConfiguration(url: server.url), namespace: "other")
        try await one.put("one", key)
        guard case .lease = await other.lookup(key) else {
            Issue.record("the namespaces are not separate")
            return
        }
        #expect(await other.purgeAll())
        #expect(await one.text(key) == "one")
        for name in ["", "a b", "{a}", "ä", String(repeating: "a", count: 65)] {
            #expect(throws: RedisError.self) {
                try RemoteTier(.init(redis: RedisConfiguration(url: server.url), namespace: name))
            }
        }
    }

    @Test func declinedAndExcusedLeasesLetOthersGoOn() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server)
        for isExcused in [false, true] {
            let key = RemoteKey("declined \(isExcused)")
            guard case .lease(let lease) = await tiers[0].lookup(key) else {
                Issue.record("no lease")
                return
            }
            let other = Task { await tiers[1].lookup(key) }
            try await eventually("the other node waits") { tiers[1].waitingCount == 1 }
            if isExcused { lease.excuse(for: .seconds(300)) } else { lease.decline(for: .seconds(300)) }
            guard case .bypass = await other.value, case .bypass = await tiers[0].lookup(key) else {
                Issue.record("a node is not let go")
                return
            }
            lease.store(ByteBuffer(string: "late"), freshFor: .seconds(600))
            await tiers[0].flush()
            // Only an excused lease is still held.
            #expect(await tiers[1].text(key) == (isExcused ? "late" : nil))
        }
    }
}
