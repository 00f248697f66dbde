import Foundation
import Logging
import NIOCore
import NIOPosix
import Synchronization
import Testing

import VitrineFleet

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A program that a test has started, and that ends with it.
final class Program: Sendable {
    private let process: Mutex<Process>
    let output = Mutex("")
    private let input = Pipe()
    let identifier: Int32

    init(_ path: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        let pipe = Pipe()
        (process.standardOutput, process.standardError, process.standardInput) = (pipe, FileHandle.nullDevice, input)
        try process.run()
        identifier = process.processIdentifier
        self.process = Mutex(process)
        pipe.fileHandleForReading.readabilityHandler = { [weak self] handle in
            let data = handle.availableData
            if data.isEmpty { handle.readabilityHandler = nil }
            self?.output.withLock { $0 += String(decoding: data, as: UTF8.self) }
        }
    }

    deinit { end() }

    var isRunning: Bool { process.withLock { $0.isRunning } }

    func send(_ signal: Int32) { kill(identifier, signal) }

    func write(_ text: String) { input.fileHandleForWriting.write(Data(text.utf8)) }

    func end() {
        process.withLock { process in
            guard process.isRunning else { return }
            kill(identifier, SIGKILL)
            process.waitUntilExit()
        }
    }
}

/// A redis-server on a free port of the loopback interface.
final class RedisServer: Sendable {
    static let path = ["/usr/bin/redis-server", "/usr/local/bin/redis-server", "/opt/homebrew/bin/redis-server"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    static let isInstalled = path != nil

    let port: Int
    let arguments: [String]
    private let program: Mutex<Program>
    private let connection = Mutex<RedisConnection?>(nil)
    let directory: String

    init(_ arguments: [String] = [], port: Int? = nil, tls: Bool = false) async throws {
        let directory = FileManager.default.temporaryDirectory.path + "/fleet-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        self.directory = directory
        let chosen = try port ?? Self.freePort()
        self.port = chosen
        self.arguments =
            (tls ? ["--port", "0", "--tls-port", "\(chosen)"] : ["--port", "\(chosen)"])
            + ["--bind", "127.0.0.1", "--dir", directory, "--save", "", "--appendonly", "no"] + arguments
        program = Mutex(try Program(try #require(Self.path), self.arguments))
        try await waitUntilListening()
    }

    /// Starts with a configuration file, as a sentinel.
    init(sentinel text: String, port: Int) async throws {
        directory = FileManager.default.temporaryDirectory.path + "/fleet-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        self.port = port
        let file = directory + "/sentinel.conf"
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        arguments = [file, "--sentinel"]
        program = Mutex(try Program(try #require(Self.path), arguments))
        try await waitUntilListening()
    }

    deinit {
        connection.withLock { $0 }?.close()
        end()
        try? FileManager.default.removeItem(atPath: directory)
    }

    private static let usedPorts = Mutex(Set<Int>())

    static func freePort() throws -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        // Below the ephemeral ports, whose second use as bus ports of clusters is 10,000 higher.
        for _ in 0..<200 {
            let port = Int.random(in: 12_000..<22_000)
            address.sin_port = in_port_t(port).bigEndian
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            let isFree = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            // Tests that run at the same time, and servers that are started again, do not share a port.
            if isFree, usedPorts.withLock({ $0.insert(port).inserted }) { return port }
        }
        throw CocoaError(.fileReadUnknown)
    }

    var address: RedisConfiguration.Address { .init("127.0.0.1", port) }
    var url: String { "redis://127.0.0.1:\(port)" }

    func send(_ signal: Int32) { program.withLock { $0.send(signal) } }

    func end() { program.withLock { $0.end() } }

    /// Starts the server again, without its data.
    func restart() async throws {
        end()
        let next = try Program(try #require(Self.path), arguments)
        program.withLock { $0 = next }
        try await waitUntilListening()
    }

    private func waitUntilListening() async throws {
        try await eventually("redis-server listens") { [self] in
            guard program.withLock({ $0.isRunning }) else { throw RedisError.unreachable("redis-server has ended") }
            return await isListening()
        }
    }

    private func isListening() async -> Bool {
        let channel = try? await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: "127.0.0.1", port: port).get()
        try? await channel?.close()
        return channel != nil
    }

    /// Runs a command, on a connection that is kept.
    @discardableResult func command(_ words: String...) async throws -> RESPValue { try await command(words) }

    /// Runs a command, on a connection that is kept.
    @discardableResult func command(_ words: [String]) async throws -> RESPValue {
        let command = RESPCommand(words.map { .text($0) })
        if let connection = connection.withLock({ $0 }) {
            if let reply = try? await connection.call(command, timeout: .seconds(60)) { return reply }
            connection.close()
        }
        let options = RedisConnection.Options(connectTimeout: .seconds(30), limits: .init(size: 64_000_000))
        let fresh = try await RedisConnection.connect(
            to: address, options, group: .singletonMultiThreadedEventLoopGroup)
        connection.withLock { $0 = fresh }
        return try await fresh.call(command, timeout: .seconds(60))
    }
}

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

    init(_ answer: @escaping @Sendable ([String]) -> Answer) async throws {
        let commands = CommandLog()
        channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(answer, commands))
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
        private var parser = RESPParser(limits: .init(size: 64_000_000))
        private var received = ByteBuffer()

        init(_ answer: @escaping @Sendable ([String]) -> Answer, _ log: CommandLog) {
            (self.answer, self.log) = (answer, log)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var bytes = unwrapInboundIn(data)
            received.writeBuffer(&bytes)
            while let command = (try? parser.next(&received)) ?? nil {
                let words = (command.items ?? []).map { $0.text ?? "" }
                log.all.withLock { $0.append(words) }
                switch answer(words) {
                case .bytes(let text): context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
                case .lastBytes(let text):
                    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
                    context.close(promise: nil)
                case .silence: break
                }
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
