import Foundation
import Logging
import NIOCore
import NIOPosix
import Synchronization
import Testing

import ServerTestSupport
import VitrineFleet

/// Waits until a condition is true. The limit only ends a test that would never end.
func eventually(_ condition: String, _ isTrue: () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(600)
    while !(try await isTrue()) {
        guard ContinuousClock.now < end else {
            Issue.record("waited in vain until \(condition)")
            throw CancellationError()
        }
        try await Task.sleep(for: .milliseconds(10))
    }
}

/// A server that answers each command as a test wants it.
final class FakeServer: Sendable {
    enum Answer: Sendable {
        case bytes(String)
        case lastBytes(String)
        case silence
    }

    private let channel: any Channel
    private let log: CommandLog

    /// A reply to HELLO as of a server with RESP3.
    static let hello = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"

    /// Answers each command.
    convenience init(_ answer: @escaping @Sendable ([String]) -> Answer) async throws {
        try await self.init(answer, isReading: true)
    }

    /// Answers any bytes.
    convenience init(toAnything answer: Answer) async throws { try await self.init({ _ in answer }, isReading: false) }

    private init(_ answer: @escaping @Sendable ([String]) -> Answer, isReading: Bool) async throws {
        let commands = CommandLog()
        channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(answer, commands, isReading))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        log = commands
    }

    var received: [[String]] { log.all.withLock { $0 } }
    var address: RedisConfiguration.Address { .init("127.0.0.1", channel.localAddress?.port ?? 0) }

    deinit { channel.close(promise: nil) }

    final class CommandLog: Sendable {
        let all = Mutex<[[String]]>([])
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let answer: @Sendable ([String]) -> Answer
        private let log: CommandLog
        private let isReading: Bool
        private var parser = RESPParser(limits: .init(size: 64_000_000))
        private var received = ByteBuffer()

        init(_ answer: @escaping @Sendable ([String]) -> Answer, _ log: CommandLog, _ isReading: Bool) {
            (self.answer, self.log, self.isReading) = (answer, log, isReading)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard isReading else { return send(answer([]), context) }
            var bytes = unwrapInboundIn(data)
            received.writeBuffer(&bytes)
            while let command = (try? parser.next(&received)) ?? nil {
                let words = (command.items ?? []).map { $0.text ?? "" }
                log.all.withLock { $0.append(words) }
                send(answer(words), context)
            }
        }

        private func send(_ answer: Answer, _ context: ChannelHandlerContext) {
            switch answer {
            case .bytes(let text): context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
            case .lastBytes(let text):
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
                context.close(promise: nil)
            case .silence: break
            }
        }
    }
}

extension RemoteTier {
    /// A tier for tests on a loaded machine: its commands may take longer.
    static func testing(
        _ redis: RedisConfiguration, namespace: String = "test", _ change: (inout Configuration) -> Void = { _ in }
    ) async throws -> RemoteTier {
        let tier = try RemoteTier(configuration(redis, namespace: namespace, change))
        try await tier.connect(within: .seconds(60))
        return tier
    }

    static func configuration(
        _ redis: RedisConfiguration, namespace: String = "test", _ change: (inout Configuration) -> Void = { _ in }
    ) -> Configuration {
        var redis = redis
        redis.commandTimeout = .seconds(5)
        redis.connectTimeout = .seconds(5)
        var configuration = Configuration(redis: redis, namespace: namespace)
        configuration.maximumWait = .seconds(60)
        configuration.logger.logLevel = .error
        change(&configuration)
        return configuration
    }

    /// Stores a value under a lease.
    func put(_ text: String, _ key: RemoteKey, fresh: Duration = .seconds(600), stale: Duration = .zero) async throws {
        guard case .lease(let lease) = await lookup(key) else {
            Issue.record("no lease")
            return
        }
        lease.store(ByteBuffer(string: text), contentType: "text/plain", freshFor: fresh, staleFor: stale)
        await flush()
    }

    /// The text of a value that needs no work; nil otherwise.
    func text(_ key: RemoteKey) async -> String? {
        guard case .value(let value, _) = await lookup(key) else { return nil }
        return String(buffer: value.contents)
    }
}

/// Several nodes of a fleet.
func makeTiers(
    _ count: Int, _ server: RedisServer, _ change: (inout RemoteTier.Configuration) -> Void = { _ in }
) async throws -> [RemoteTier] {
    var tiers: [RemoteTier] = []
    for _ in 0..<count { tiers.append(try await .testing(RedisConfiguration(url: server.url), change)) }
    return tiers
}
