import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import ServerTestSupport
import Testing
import VitrineFleet

@Suite(.enabled(if: RedisServer.isInstalled, "redis-server is not installed")) struct RedisClientTests {
    private func client(_ configuration: RedisConfiguration) throws -> RedisClient {
        var configuration = configuration
        configuration.commandTimeout = .seconds(10)
        configuration.connectTimeout = .seconds(10)
        return try RedisClient(configuration, maximumReply: 64_000_000)
    }

    @Test func clientSendsManyCommandsAtOnce() async throws {
        let server = try await RedisServer()
        let client = try client(.init(.single(server.address)))
        defer { client.shutDown() }
        let values = (0..<200).map { ByteBuffer(repeating: UInt8(truncatingIfNeeded: $0), count: $0 * 97) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, value) in values.enumerated() {
                group.addTask {
                    let key = "key \(index)"
                    let stored = try await client.call(RESPCommand("SET", .text(key), .bytes(value)), key: key)
                    let read = try await client.call(RESPCommand("GET", .text(key)), key: key)
                    #expect(stored == .simple("OK"))
                    #expect(read == .bulk(value))
                }
            }
            try await group.waitForAll()
        }
        let large = ByteBuffer(repeating: 3, count: 5_000_000)
        _ = try await client.call(RESPCommand("SET", "large", .bytes(large)), key: "large")
        #expect(try await client.call(RESPCommand("GET", "large"), key: "large") == .bulk(large))
    }

    @Test func clientLogsInAndSelectsItsDatabase() async throws {
        let server = try await RedisServer([
            "--requirepass", "secret", "--user", "images", "on", ">word", "~*", "+@all", "&*",
        ])
        var configuration = RedisConfiguration(.single(server.address))
        (configuration.username, configuration.password, configuration.database) = ("images", "word", 3)
        let named = try client(configuration)
        defer { named.shutDown() }
        _ = try await named.call(RESPCommand("SET", "a", "1"), key: "a")
        (configuration.username, configuration.password, configuration.database) = (nil, "secret", 0)
        let other = try client(configuration)
        defer { other.shutDown() }
        #expect(try await other.call(RESPCommand("GET", "a"), key: "a") == .null)
        #expect(try await other.call(RESPCommand("MOVE", "a", "1"), key: "a") == .integer(0))
    }

    @Test(arguments: [nil, "wrong"] as [String?])
    func wrongPasswordsAreTypedErrors(password: String?) async throws {
        let server = try await RedisServer(["--requirepass", "secret"])
        var redis = RedisConfiguration(.single(server.address))
        redis.password = password
        let tier = try RemoteTier(RemoteTier.configuration(redis))
        await tier.waitUntilDown()
        guard case .down(.authentication) = tier.status else {
            Issue.record("\(tier.status)")
            return
        }
        await #expect(throws: RedisError.self) { try await tier.connect(within: .milliseconds(10)) }
        guard case .bypass = await tier.lookup(RemoteKey("a")) else {
            Issue.record("a tier without a password gave something")
            return
        }
    }

    @Test func narrowAccessListsAreTypedErrors() async throws {
        let server = try await RedisServer(["--user", "narrow", "on", ">word", "~*", "+@all", "resetchannels"])
        var redis = RedisConfiguration(.single(server.address))
        (redis.username, redis.password) = ("narrow", "word")
        let tier = try RemoteTier(RemoteTier.configuration(redis))
        await tier.waitUntilDown()
        guard case .down(.permission) = tier.status else {
            Issue.record("\(tier.status)")
            return
        }
    }

    /// The access list of the documentation suffices.
    @Test func tiersNeedNoMoreThanTheDocumentedAccess() async throws {
        let server = try await RedisServer([
            "--user", "vitrine", "on", ">word", "~{images*", "&{images}:events*", "-@all",
            "+ping", "+role", "+exists", "+mget", "+eval", "+evalsha", "+subscribe", "+get", "+set", "+del", "+hget",
            "+hset", "+hdel", "+pexpire", "+pttl", "+publish", "+xadd", "+xrange", "+xrevrange", "+time",
        ])
        var redis = RedisConfiguration(.single(server.address))
        (redis.username, redis.password) = ("vitrine", "word")
        let tiers = [
            try await RemoteTier.testing(redis, namespace: "images"),
            try await RemoteTier.testing(redis, namespace: "images"),
        ]
        let key = RemoteKey("a")
        guard case .lease(let lease) = await tiers[0].lookup(key) else {
            Issue.record("no lease")
            return
        }
        let second = tiers[1]
        async let other = second.lookup(key)
        try await eventually("the other node waits") { second.statistics.waits == 1 }
        lease.store(ByteBuffer(string: "value"), freshFor: .seconds(60))
        guard case .value = await other else {
            Issue.record("the value did not arrive")
            return
        }
        #expect(await tiers[0].purge(key))
        #expect(await tiers[0].purge(group: "g"))
        #expect(await tiers[0].purgeAll())
        #expect(tiers.allSatisfy { $0.statistics.failures == 0 })
    }

    // MARK: TLS

    private func temporaryDirectory() throws -> String {
        let directory = FileManager.default.temporaryDirectory.path + "/fleet-tls-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        return directory
    }

    /// The reason for which a tier does not work.
    private func reason(
        _ redis: RedisConfiguration, connectTimeout: Duration = .seconds(60)
    ) async throws -> RedisError? {
        let tier = try RemoteTier(RemoteTier.configuration(redis) { $0.redis.connectTimeout = connectTimeout })
        await tier.waitUntilDown()
        guard case .down(let error) = tier.status, case .bypass = await tier.lookup(RemoteKey("a")) else { return nil }
        await tier.shutDown()
        return error
    }

    @Test(.enabled(if: Certificate.isAvailable, "openssl is not installed"), arguments: [false, true])
    func clientSpeaksTLSAndRefusesForeignCertificates(isMutual: Bool) async throws {
        let directory = try temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let certificate = try await Certificate(in: directory, isMutual: isMutual)
        let server = try await RedisServer(tls: certificate)
        var redis = RedisConfiguration(.single(server.address))
        redis.tls = try certificate.client
        let trusting = try client(redis)
        defer { trusting.shutDown() }
        #expect(try await trusting.call(RESPCommand("PING"), key: "") == .simple("PONG"))

        redis.tls = .makeClientConfiguration()
        guard case .tls(let text) = try await reason(redis) else {
            Issue.record("another reason")
            return
        }
        #expect(text.contains("CERTIFICATE_VERIFY_FAILED"), "\(text)")
        // A client without a certificate at a server that demands one.
        redis.tls?.trustRoots = .file(certificate.certificate)
        if isMutual {
            switch try await reason(redis) {
            case .tls, .unreachable: break
            case let other: Issue.record("\(String(describing: other))")
            }
        }
        // A client without TLS: redis-server ends the connection.
        redis.tls = nil
        guard case .unreachable = try await reason(redis) else {
            Issue.record("another reason")
            return
        }
    }

    @Test func clientsWithoutTLSLearnThatTheServerUsesIt() async throws {
        // As other servers say it: the alert of a failed handshake, and the end.
        let server = try await FakeServer { _ in .lastBytes("\u{15}\u{3}\u{3}\0\u{2}\u{2}F") }
        #expect(
            try await reason(.init(.single(server.address)))
                == .tls("the server uses TLS, and this client does not"))
    }

    /// redis-server waits for the end of a line, which a handshake may contain by chance.
    @Test func tlsAtAServerWithoutItIsATypedError() async throws {
        let server = try await RedisServer()
        var redis = RedisConfiguration(.single(server.address))
        redis.tls = .makeClientConfiguration()
        switch try await reason(redis, connectTimeout: .seconds(1)) {
        case .tlsTimedOut, .tls: break
        case let other: Issue.record("\(String(describing: other))")
        }
    }

    @Test func serversThatAnswerAHandshakeWithTextOrNotAtAllAreTypedErrors() async throws {
        func redis(_ answer: FakeServer.Answer) async throws -> (FakeServer, RedisConfiguration) {
            let server = try await FakeServer(toAnything: answer)
            var redis = RedisConfiguration(.single(server.address))
            redis.tls = .makeClientConfiguration()
            return (server, redis)
        }
        let (talking, one) = try await redis(.bytes("-ERR unknown command\r\n"))
        guard case .tls(let text) = try await reason(one) else {
            Issue.record("another reason")
            return
        }
        #expect(text.contains("WRONG_VERSION_NUMBER"), "\(text)")
        let (silent, other) = try await redis(.silence)
        #expect(try await reason(other, connectTimeout: .milliseconds(300)) == .tlsTimedOut)
        withExtendedLifetime((talking, silent)) {}
    }

    @Test func missingServersAreUnreachable() async throws {
        let missing = try ClosedPort()
        let tier = try RemoteTier(RemoteTier.configuration(.init(.single(missing.address))))
        await tier.waitUntilDown()
        guard case .down(.unreachable) = tier.status else {
            Issue.record("\(tier.status)")
            return
        }
    }
}

/// Servers that break the rules.
@Suite struct HostileServerTests {
    private func status(
        of server: FakeServer, timeout: Duration = .seconds(60)
    ) async throws -> RemoteTier.Status {
        var configuration = RemoteTier.configuration(.init(.single(server.address)))
        configuration.redis.commandTimeout = timeout
        configuration.redis.connectTimeout = timeout
        let tier = try RemoteTier(configuration)
        await tier.waitUntilDown()
        guard case .bypass = await tier.lookup(RemoteKey("a")) else {
            Issue.record("a hostile server was believed")
            return .up
        }
        let status = tier.status
        await tier.shutDown()
        return status
    }

    @Test(arguments: ["-ERR unknown command 'HELLO'\r\n", "-NOPROTO unsupported protocol version\r\n", "+OK\r\n",
        "%1\r\n+proto\r\n:2\r\n",
    ])
    func serversWithoutRESP3AreATypedError(reply: String) async throws {
        let server = try await FakeServer { _ in .bytes(reply) }
        guard case .down(.resp3Unsupported) = try await status(of: server) else {
            Issue.record("another status")
            return
        }
    }

    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n\r\n", "$999999999999\r\n",
        "*999999999\r\n", "+OK\r\n+OK\r\n+surplus\r\n:x\r\n",
    ])
    func brokenRepliesAreATypedError(reply: String) async throws {
        let server = try await FakeServer { _ in .bytes(reply) }
        switch try await status(of: server) {
        case .down(.protocolViolation), .down(.resp3Unsupported): break
        case let other: Issue.record("\(other)")
        }
    }

    @Test func truncatedRepliesAreALostConnection() async throws {
        let server = try await FakeServer { _ in .lastBytes("%2\r\n$6\r\nserver\r\n$5\r\nre") }
        guard case .down(.unreachable) = try await status(of: server) else {
            Issue.record("another status")
            return
        }
    }

    @Test func silentServersTimeOut() async throws {
        let server = try await FakeServer { _ in .silence }
        guard case .down(.timedOut) = try await status(of: server, timeout: .milliseconds(300)) else {
            Issue.record("another status")
            return
        }
    }

    /// Each command but those of the login and the journal has the same reply.
    @Test(arguments: [
        "+OK\r\n", ":1\r\n", "_\r\n", "*0\r\n", "*2\r\n$5\r\nlease\r\n$3\r\nbad\r\n", "*2\r\n_\r\n_\r\n",
        "*2\r\n$4\r\nwait\r\n$1\r\nx\r\n", "*3\r\n$5\r\nvalue\r\n:1\r\n:2\r\n", "-ERR broken\r\n", "-\r\n",
        "*3\r\n$5\r\nvalue\r\n$2\r\nno\r\n$16\r\n0123456789abcdef\r\n",
    ])
    func nonsenseIsBypassed(reply: String) async throws {
        let server = try await FakeServer { command in
            switch command[0] {
            case "HELLO": .bytes(FakeServer.hello)
            case "PING": .bytes(command.count == 1 ? "+PONG\r\n" : "$7\r\nvitrine\r\n")
            case "SUBSCRIBE": .bytes(">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>1\r\n_\r\n")
            case "EVALSHA" where command[2] == "2" && command[3].hasSuffix(":epoch"):
                .bytes("*4\r\n$16\r\n0123456789abcdef\r\n$3\r\n1-1\r\n$1\r\n5\r\n$1\r\n5\r\n")
            default: .bytes(reply)
            }
        }
        let tier = try await RemoteTier.testing(.init(.single(server.address)))
        for _ in 0..<3 {
            guard case .bypass = await tier.lookup(RemoteKey("a")) else {
                Issue.record("nonsense was believed")
                return
            }
        }
        // A purge that is answered with nonsense does no harm either.
        _ = await tier.purge(RemoteKey("b"))
        await tier.shutDown()
    }

    @Test func serversThatAreDownGetOnlySingleProbes() async throws {
        let server = try await FakeServer { $0[0] == "HELLO" ? .bytes(FakeServer.hello) : .silence }
        var configuration = RemoteTier.configuration(.init(.single(server.address)))
        configuration.redis.commandTimeout = .milliseconds(200)
        configuration.redis.connectTimeout = .milliseconds(200)
        let tier = try RemoteTier(configuration)
        await tier.waitUntilDown()
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<1_000 { group.addTask { _ = await tier.lookup(RemoteKey("\(index)")) } }
        }
        #expect(tier.statistics.bypasses == 1_000)
        let commands = Set(server.received.map { $0[0] })
        #expect(commands.isSubset(of: ["HELLO", "PING"]))
        await tier.shutDown()
    }

    @Test func repliesAfterTheirDeadlineAreDiscarded() async throws {
        let late = Mutex<Int>(0)
        let server = try await FakeServer { command in
            switch command[0] {
            case "HELLO": .bytes(FakeServer.hello)
            // The first reply comes with the second.
            case "GET": late.withLock { count in
                count += 1
                return count == 1 ? .silence : .bytes("$5\r\nfirst\r\n$6\r\nsecond\r\n")
            }
            default: .bytes("+PONG\r\n")
            }
        }
        var options = RedisConnection.Options(connectTimeout: .seconds(10), limits: .init(size: 1_000))
        options.depth = 2
        let connection = try await RedisConnection.connect(
            to: server.address, options, group: .singletonMultiThreadedEventLoopGroup)
        defer { connection.close() }
        await #expect(throws: RedisError.timedOut) {
            try await connection.call(RESPCommand("GET", "1"), timeout: .milliseconds(20))
        }
        let reply = try await connection.call(RESPCommand("GET", "2"), timeout: .seconds(30))
        #expect(reply == .bulk(ByteBuffer(string: "second")))
    }

    @Test func clientsWithTooManyCommandsUnderWayRefuseMore() async throws {
        let server = try await FakeServer { $0[0] == "HELLO" ? .bytes(FakeServer.hello) : .silence }
        var options = RedisConnection.Options(connectTimeout: .seconds(10), limits: .init(size: 1_000))
        options.depth = 2
        let connection = try await RedisConnection.connect(
            to: server.address, options, group: .singletonMultiThreadedEventLoopGroup)
        let errors = await withTaskGroup(of: RedisError?.self) { group in
            for _ in 0..<3 {
                group.addTask { () -> RedisError? in
                    do throws(RedisError) {
                        _ = try await connection.call(RESPCommand("GET", "1"), timeout: .seconds(60))
                        return nil
                    } catch {
                        connection.close()
                        return error
                    }
                }
            }
            var all: [RedisError] = []
            for await error in group { if let error { all.append(error) } }
            return all
        }
        #expect(errors.count { $0 == .overloaded } == 1)
        #expect(errors.count == 3)
    }

    /// A slot on its way: its keys are at both nodes until all have moved, however long that takes.
    @Test func keysOnTheirWayAreAwaited() async throws {
        let refusals = Mutex(0)
        let target = try await FakeServer { command in
            switch command[0] {
            case "HELLO": .bytes(FakeServer.hello)
            case "PING": .bytes("+PONG\r\n")
            case "ASKING": .bytes("+OK\r\n")
            default:
                refusals.withLock { count in
                    count += 1
                    return .bytes(count <= 40 ? "-TRYAGAIN Multiple keys request during rehashing\r\n" : "+b\r\n")
                }
            }
        }
        let own = Mutex(0)
        let other = target.address.port
        let source = try await FakeServer { command in
            switch command[0] {
            case "HELLO": .bytes(FakeServer.hello)
            case "PING": .bytes("+PONG\r\n")
            case "CLUSTER":
                .bytes("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:\(own.withLock { $0 })\r\n")
            default: .bytes("-ASK \(ClusterSlots.slot(of: "a")) 127.0.0.1:\(other)\r\n")
            }
        }
        own.withLock { $0 = source.address.port }
        var configuration = RedisConfiguration(.cluster([source.address]))
        (configuration.commandTimeout, configuration.connectTimeout) = (.seconds(600), .seconds(600))
        let client = try RedisClient(configuration, maximumReply: 1_000)
        defer { client.shutDown() }
        #expect(try await client.call(RESPCommand("MGET", "a", "{a}b"), key: "a") == .simple("b"))
        #expect(refusals.withLock { $0 } == 41)
    }

    /// Two nodes of a cluster that send each command to the other.
    @Test func redirectionsInCirclesEnd() async throws {
        let ports = Mutex<[Int]>([])
        let answer: @Sendable ([String]) -> FakeServer.Answer = { command in
            let ports = ports.withLock { $0 }
            switch command[0] {
            case "HELLO": return .bytes(FakeServer.hello)
            case "PING": return .bytes("+PONG\r\n")
            case "CLUSTER":
                return .bytes("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:\(ports[0])\r\n")
            default:
                return .bytes("-MOVED \(ClusterSlots.slot(of: command[1])) 127.0.0.1:\(ports.randomElement() ?? 0)\r\n")
            }
        }
        let servers = [try await FakeServer(answer), try await FakeServer(answer)]
        ports.withLock { $0 = servers.map(\.address.port) }
        var configuration = RedisConfiguration(.cluster(servers.map(\.address)))
        (configuration.commandTimeout, configuration.connectTimeout) = (.seconds(20), .seconds(20))
        let client = try RedisClient(configuration, maximumReply: 1_000)
        defer { client.shutDown() }
        await #expect(throws: RedisError.tooManyRedirections) {
            try await client.call(RESPCommand("GET", "a"), key: "a")
        }
        // The topology is not asked for once for each redirection.
        #expect(servers.flatMap(\.received).count { $0[0] == "CLUSTER" } <= 4)
        #expect(servers.flatMap(\.received).count { $0[0] == "GET" } == 8)
    }
}

extension RemoteTier {
    /// Waits until the first attempt has failed.
    func waitUntilDown() async {
        try? await eventually("the tier is down") {
            if case .down = status { return true }
            return false
        }
    }
}
