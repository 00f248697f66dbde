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

/// Malformed replies, values and keys of other applications, and servers that stop in the middle.
@Suite(.enabled(if: RedisServer.isInstalled, "redis-server is not installed")) struct BadInputTests {
    private let key = RemoteKey(group: "http://example.com/a.jpg", name: "w:200")

    /// A server that answers look-ups of values with a text, and all others as a server does that has an empty journal.
    private static func server(_ answer: FakeServer.Answer) async throws -> FakeServer {
        try await FakeServer { command in
            switch command[0] {
            case "HELLO": .bytes(FakeServer.hello)
            case "PING": .bytes(command.count == 1 ? "+PONG\r\n" : "$7\r\nvitrine\r\n")
            case "SUBSCRIBE": .bytes(">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
            case "MGET": answer
            default: .bytes("*4\r\n$16\r\n0123456789abcdef\r\n$3\r\n1-1\r\n$1\r\n5\r\n$1\r\n5\r\n")
            }
        }
    }

    /// The beginning of a value, and then the end of the connection.
    @Test func valuesThatAreCutOffAreBypassed() async throws {
        let server = try await Self.server(.lastBytes("*2\r\n$20000\r\nVFT\u{1}0123"))
        let tier = try await RemoteTier.testing(.init(.single(server.address)))
        guard case .bypass = await tier.lookup(key) else {
            Issue.record("the beginning of a value was used")
            return
        }
        #expect(tier.statistics.failures == 1)
        await tier.shutDown()
    }

    @Test(arguments: [
        "*2\r\n$70000000\r\n", "*9999999\r\n", "*2\r\n$-7\r\n", "*2\r\n$3\r\nabcdef\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "*2\r\n_\r\n",
    ])
    func valuesBeyondTheLimitsAreBypassed(reply: String) async throws {
        // What does not end the connection by itself is cut off.
        let server = try await Self.server(.lastBytes(reply))
        let lines = RemoteTierTests.LogLines()
        let tier = try await RemoteTier.testing(.init(.single(server.address))) {
            $0.logger = Logger(label: "test") { _ in lines }
        }
        for _ in 0..<3 {
            guard case .bypass = await tier.lookup(key) else {
                Issue.record("a malformed reply was used")
                return
            }
        }
        #expect(tier.statistics.failures + tier.statistics.outages >= 3)
        let logged = lines.store.lines.withLock { $0 }.filter { $0.contains("not RESP3") }
        #expect(Set(logged).count == logged.count)
        await tier.shutDown()
    }

    /// A master whose clock was far ahead wrote a value; the present one knows nothing of that time.
    @Test func valuesFromTheFutureAreMadeAnew() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server)[0]
        try await tier.put("present", key)
        try await replaceValue(server, "future", created: 3_600, freshUntil: 7_200)
        try await tier.put("anew", key)
        #expect(tier.statistics.damagedValues == 1)
        #expect(await tier.text(key) == "anew")
    }

    /// The clock of another node may be a little ahead.
    @Test func valuesAreFreshNoLongerThanTheirLifetime() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server)[0]
        try await tier.put("present", key)
        try await replaceValue(server, "ahead", created: 50, freshUntil: 150)
        guard case .value(let value, nil) = await tier.lookup(key) else {
            Issue.record("no value")
            return
        }
        #expect(String(buffer: value.contents) == "ahead")
        #expect(value.age == .zero && value.freshness == .seconds(100))
    }

    /// Replaces the only value in Redis.
    ///
    /// - Parameters:
    ///   - created: In seconds from now.
    ///   - freshUntil: In seconds from now.
    private func replaceValue(_ server: RedisServer, _ text: String, created: Int64, freshUntil: Int64) async throws {
        let stored = try #require(await server.command("KEYS", "*:v").items?.first?.text)
        let generations = try #require(await server.command("KEYS", "*:g").items?.first?.text)
        let generation = try #require(await server.command("GET", generations).text)
        let now = try #require(await server.command("TIME").items?.first?.integer)
        var value = TierValue(
            generation: generation, created: .seconds(now + created), freshUntil: .seconds(now + freshUntil))
        value.contents = ByteBuffer(string: text)
        let connection = try await RedisConnection.connect(
            to: server.address, .init(connectTimeout: .seconds(30), limits: .init(size: 1_000_000)),
            group: .singletonMultiThreadedEventLoopGroup)
        _ = try await connection.call(
            RESPCommand("SET", .text(stored), .bytes(value.encoded(key: key))), timeout: .seconds(30))
        connection.close()
    }

    /// Other clients of Redis can compute the checksum, and have no secret.
    @Test func valuesWithoutTheSecretAreNotUsed() async throws {
        let server = try await RedisServer()
        let open = try await makeTiers(1, server)[0]
        let keyed = try await makeTiers(2, server) { $0.secrets = [[1, 2, 3]] }
        try await open.put("checksum only", key)
        try await keyed[0].put("secret", key)
        #expect(await keyed[1].text(key) == "secret")
        // Nodes without the secret neither use the value nor break.
        try await open.put("checksum only", key)
        #expect(await open.text(key) == "checksum only")
        // The last pair may have been the first one until now.
        let rotated = try await makeTiers(1, server) { $0.secrets = [[9], [1, 2, 3]] }[0]
        try await keyed[0].put("secret again", key)
        #expect(await rotated.text(key) == "secret again")
        rotated.authenticate(by: [[9]])
        guard case .lease(let lease) = await rotated.lookup(key) else {
            Issue.record("a value of an old secret was used")
            return
        }
        lease.release()
        #expect(rotated.statistics.damagedValues == 1)
    }

    // MARK: A namespace that another application uses

    @Test(arguments: [
        ["SET", "{test}:epoch", "foreign"], ["RPUSH", "{test}:epoch", "a"], ["SET", "{test}:journal", "a"],
    ])
    func foreignKeysOfTheNamespaceAreATypedError(command: [String]) async throws {
        let server = try await RedisServer()
        try await server.command(command)
        let lines = RemoteTierTests.LogLines()
        var configuration = RemoteTier.configuration(try .init(url: server.url))
        configuration.logger = Logger(label: "test") { _ in lines }
        let tier = try RemoteTier(configuration)
        await tier.waitUntilDown()
        switch tier.status {
        case .down(.protocolViolation), .down(.server): break
        case let other: Issue.record("\(other)")
        }
        guard case .bypass = await tier.lookup(key) else {
            Issue.record("a tier without an epoch gave something")
            return
        }
        #expect(tier.statistics.bypasses == 1)
        // The node works as soon as the keys are gone.
        try await server.command("DEL", command[1])
        try await tier.connect(within: .seconds(60))
        try await tier.put("value", key)
        #expect(await tier.text(key) == "value")
        let logged = lines.store.lines.withLock { $0 }
        #expect(Set(logged).count == logged.count)
    }

    @Test func foreignEntriesOfTheJournalPurgeEverything() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server)
        var purges = tiers[0].invalidations.makeAsyncIterator()
        #expect(await purges.next() == .all)
        try await server.command("XADD", "{test}:journal", "*", "temperature", "21")
        #expect(await purges.next() == .all)
        try await server.command("XADD", "{test}:journal", "*", "k", "key", "c", "no digest")
        #expect(await purges.next() == .all)
        // Later purges are followed.
        #expect(await tiers[1].purge(key))
        #expect(await purges.next() == .key(key))
        #expect(tiers.allSatisfy { $0.status == .up })
    }

    @Test func foreignMessagesOnTheChannelAreIgnored() async throws {
        let server = try await RedisServer()
        let tiers = try await makeTiers(2, server)
        var purges = tiers[0].invalidations.makeAsyncIterator()
        #expect(await purges.next() == .all)
        for text in [
            "", "hello", "purge", "purge a b key c", "purge 1-1 99999999999999-1 all", "wake", "wake x/y", "wake ../..",
            String(repeating: "purge ", count: 1_000), "purge 1-1 99999999999999999999999-1 all x",
        ] {
            try await server.command("PUBLISH", "{test}:events", text)
        }
        #expect(await tiers[1].purge(key))
        #expect(await purges.next() == .key(key))
        try await tiers[0].put("value", key)
        #expect(await tiers[1].text(key) == "value")
        #expect(tiers.allSatisfy { $0.statistics.failures == 0 })
    }

    // MARK: Frozen under load

    private final class Load: Sendable {
        struct Counts {
            var requests = 0
            var values = 0
            var renders = 0
            var wrong = 0
        }
        let counts = Mutex(Counts())
        private let isEnded = Mutex(false)

        func run(_ tier: RemoteTier, callers: Int) async {
            await withTaskGroup(of: Void.self) { group in
                for caller in 0..<callers {
                    group.addTask { [self] in
                        var turn = caller
                        while !isEnded.withLock({ $0 }) {
                            turn += callers
                            await once(tier, turn % 3 == 0 ? "new \(turn)" : "\(turn % 50)")
                        }
                    }
                }
            }
        }

        private func once(_ tier: RemoteTier, _ name: String) async {
            switch await tier.lookup(RemoteKey(name)) {
            case .value(let value, _):
                let isRight = String(buffer: value.contents) == name
                counts.withLock { if isRight { $0.values += 1 } else { $0.wrong += 1 } }
            case .lease(let lease):
                lease.store(ByteBuffer(string: name), freshFor: .seconds(600))
                counts.withLock { $0.renders += 1 }
            case .bypass:
                // The stand-in for a render. Without it, the load would leave other tasks no thread.
                try? await Task.sleep(for: .milliseconds(1))
                counts.withLock { $0.renders += 1 }
            }
            counts.withLock { $0.requests += 1 }
        }

        func end() { isEnded.withLock { $0 = true } }
    }

    @Test func frozenServersUnderLoadCostOnlyRenders() async throws {
        let server = try await RedisServer()
        let tier = try await makeTiers(1, server) {
            $0.redis.commandTimeout = .milliseconds(500)
            $0.redis.connectTimeout = .milliseconds(500)
        }[0]
        let load = Load()
        async let running: Void = load.run(tier, callers: 16)
        try await eventually("values are used") { load.counts.withLock { $0.values } > 1_000 }
        var leases: [Lease] = []
        while leases.count < 20 {
            if case .lease(let lease) = await tier.lookup(RemoteKey("held \(leases.count)")) { leases.append(lease) }
        }
        server.send(SIGSTOP)
        try await eventually("the breaker is open") {
            if case .down = tier.status { true } else { false }
        }
        // Nothing is sent to the server, so that nothing waits for it: all are rendered.
        let (before, failures) = (load.counts.withLock { $0 }, tier.statistics.failures)
        try await eventually("requests are answered") { load.counts.withLock { $0.requests } > before.requests + 2_000 }
        #expect(load.counts.withLock { $0.renders } >= before.renders + 2_000 - 16)
        #expect(tier.statistics.failures >= failures + 2_000 - 16)
        // Each write is dropped and counted.
        await tier.flush()
        let dropped = tier.statistics.droppedStores
        for lease in leases { lease.store(ByteBuffer(string: "lost"), freshFor: .seconds(600)) }
        leases = []
        await tier.flush()
        #expect(tier.statistics.droppedStores == dropped + 20)
        let (values, stores) = (load.counts.withLock { $0.values }, tier.statistics.stores)
        server.send(SIGCONT)
        try await eventually("values are used again") { load.counts.withLock { $0.values } > values + 1_000 }
        try await eventually("values are stored again") { tier.statistics.stores > stores + 100 }
        load.end()
        await running
        let counts = load.counts.withLock { $0 }
        #expect(counts.wrong == 0)
        #expect(counts.requests == counts.values + counts.renders)
    }
}
