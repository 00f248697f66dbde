import Foundation
import NIOCore
import NIOPosix
package import NIOSSL
import Synchronization
package import VitrineFleet

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A port of loopback that refuses connections as long as this value exists.
package final class ClosedPort: Sendable {
    package let port: Int
    private let descriptor: Int32

    package init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        port = try Ports.bind(descriptor, 0)
    }

    deinit { close(descriptor) }

    package var address: RedisConfiguration.Address { .init("127.0.0.1", port) }
}

private enum Ports {
    struct InUse: Error {}

    private static let used = Mutex(Set<Int>())

    /// Gives a socket a port of loopback; any for 0.
    static func bind(_ descriptor: Int32, _ port: Int) throws -> Int {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                systemBind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
            }
        }
        guard isBound else { throw InUse() }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    /// A port that is free at the moment, below the ephemeral ones. Buses of clusters have ports 10,000 higher.
    static func free() throws -> Int {
        for _ in 0..<1_000 {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            let port = Int.random(in: 12_000..<22_000)
            // Servers of this process do not share a port, also those that are started again.
            guard (try? bind(descriptor, port)) != nil, used.withLock({ $0.insert(port).inserted }) else { continue }
            return port
        }
        throw InUse()
    }
}

private func systemBind(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> Int32 {
    bind(descriptor, address, size)
}

/// A redis-server on a port of the loopback interface, which ends with the test.
package final class RedisServer: Sendable {
    /// The program that `VITRINE_REDIS_SERVER` names, such as a `valkey-server`, else one that is installed.
    package static let path = [
        ProcessInfo.processInfo.environment["VITRINE_REDIS_SERVER"] ?? "", "/usr/bin/redis-server",
        "/usr/local/bin/redis-server", "/usr/bin/valkey-server", "/opt/homebrew/bin/redis-server",
    ].first { FileManager.default.isExecutableFile(atPath: $0) }
    package static let isInstalled = path != nil

    package let port: Int
    package let directory: String
    private let arguments: [String]
    private let trust: NIOSSLContext?
    private let program: Mutex<Program>
    private let connection = Mutex<RedisConnection?>(nil)

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - arguments: Further options.
    ///   - tls: Lets it use TLS only, and demand a certificate of clients if the certificate says so.
    package init(_ arguments: [String] = [], tls: Certificate? = nil) async throws {
        let directory = try Self.newDirectory()
        let options = [
            "--bind", "127.0.0.1", "--dir", directory, "--save", "", "--appendonly", "no",
        ] + (tls?.serverOptions ?? []) + arguments
        let isTLS = tls != nil
        let started = try await Self.start { port in
            (isTLS ? ["--port", "0", "--tls-port", "\(port)"] : ["--port", "\(port)"]) + options
        }
        (self.directory, trust) = (directory, try tls?.context)
        (port, self.arguments) = (started.port, started.arguments)
        program = Mutex(started.program)
    }

    /// Starts a sentinel with the lines of its configuration.
    package init(sentinel lines: [String]) async throws {
        let directory = try Self.newDirectory()
        let file = directory + "/sentinel.conf"
        let started = try await Self.start { port in
            let text = ["port \(port)", "bind 127.0.0.1", "dir \(directory)"] + lines
            try (text.joined(separator: "\n") + "\n").write(toFile: file, atomically: true, encoding: .utf8)
            return [file, "--sentinel"]
        }
        (self.directory, trust) = (directory, nil)
        (port, arguments) = (started.port, started.arguments)
        program = Mutex(started.program)
    }

    deinit {
        connection.withLock { $0 }?.close()
        end()
        try? FileManager.default.removeItem(atPath: directory)
    }

    private static func newDirectory() throws -> String {
        let directory = FileManager.default.temporaryDirectory.path + "/fleet-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        return directory
    }

    /// Starts a server on a free port, and on another one if a program has taken that meanwhile.
    private static func start(
        _ arguments: (_ port: Int) throws -> [String]
    ) async throws -> (port: Int, arguments: [String], program: Program) {
        for _ in 0..<20 {
            let port = try Ports.free()
            let arguments = try arguments(port)
            if let program = try await launch(arguments) { return (port, arguments, program) }
        }
        throw RedisError.unreachable("redis-server does not start")
    }

    /// A server that listens; nil if it has ended, because its port is in use.
    private static func launch(_ arguments: [String]) async throws -> Program? {
        guard let path else { throw RedisError.unreachable("redis-server is not installed") }
        let program = try Program(path, arguments, mergesErrors: true)
        let isSentinel = arguments.contains("--sentinel")
        if await program.hasSaid(isSentinel ? "Sentinel ID is" : "Ready to accept connections") { return program }
        return nil
    }

    package var address: RedisConfiguration.Address { .init("127.0.0.1", port) }
    package var url: String { "redis\(trust == nil ? "" : "s")://127.0.0.1:\(port)" }

    package func send(_ signal: Int32) { program.withLock { $0.send(signal) } }

    package func end() { program.withLock { $0.end() } }

    /// Starts the server again, on its port and without its data.
    package func restart() async throws {
        end()
        guard let next = try await Self.launch(arguments) else {
            throw RedisError.unreachable("redis-server does not start again")
        }
        program.withLock { $0 = next }
    }

    /// Runs a command, on a connection that is kept.
    @discardableResult package func command(_ words: String...) async throws -> RESPValue { try await command(words) }

    /// Runs a command, on a connection that is kept.
    @discardableResult package func command(_ words: [String]) async throws -> RESPValue {
        try await run(RESPCommand(words.map { .text($0) }))
    }

    /// Replaces a value and keeps its time.
    package func set(_ bytes: [UInt8], forKey key: String) async throws {
        _ = try await run(RESPCommand(["SET", .text(key), .bytes(ByteBuffer(bytes: bytes)), "KEEPTTL"]))
    }

    private func run(_ command: RESPCommand) async throws -> RESPValue {
        if let connection = connection.withLock({ $0 }) {
            if let reply = try? await connection.call(command, timeout: .seconds(600)) { return reply }
            connection.close()
        }
        var options = RedisConnection.Options(connectTimeout: .seconds(600), limits: .init(size: 64_000_000))
        options.tls = trust
        let fresh = try await RedisConnection.connect(
            to: address, options, group: .singletonMultiThreadedEventLoopGroup)
        connection.withLock { $0 = fresh }
        return try await fresh.call(command, timeout: .seconds(600))
    }

    /// The keys of the values of tiers.
    package var values: [String] {
        get async throws { try await command("KEYS", "*:v").items?.compactMap(\.text) ?? [] }
    }

    /// Whether it is a replica that has all data of its master.
    var isSynchronized: Bool {
        get async throws {
            try await command("INFO", "replication").text?.contains("master_link_status:up") == true
        }
    }
}

/// A certificate for the loopback address that signs itself, of a server and of its clients.
package struct Certificate: Sendable {
    package static let isAvailable = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")

    /// The PEM files.
    package let certificate: String
    package let key: String
    /// Whether clients need it too.
    private let isMutual: Bool

    /// Makes a certificate in a directory.
    package init(in directory: String, isMutual: Bool = false) async throws {
        (certificate, key, self.isMutual) = (directory + "/certificate.pem", directory + "/key.pem", isMutual)
        let openssl = try Program("/usr/bin/openssl", [
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
            "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", certificate,
        ], mergesErrors: true)
        await openssl.waitUntilEnd()
        guard FileManager.default.fileExists(atPath: certificate) else {
            throw RedisError.unreachable("openssl has failed: \(openssl.output)")
        }
    }

    fileprivate var serverOptions: [String] {
        ["--tls-cert-file", certificate, "--tls-key-file", key]
            + (isMutual ? ["--tls-ca-cert-file", certificate] : ["--tls-auth-clients", "no"])
    }

    /// Settings of a client that trusts the certificate, and has it.
    package var client: TLSConfiguration {
        get throws {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(certificate)
            tls.certificateChain = try NIOSSLCertificate.fromPEMFile(certificate).map { .certificate($0) }
            tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: key, format: .pem))
            return tls
        }
    }

    fileprivate var context: NIOSSLContext { get throws { try NIOSSLContext(configuration: client) } }
}

/// A condition did not become true.
private struct WaitedInVain: Error {
    let condition: String
}

/// Waits until a condition is true. The limit only ends a test that would never end.
func eventually(_ condition: String, _ isTrue: () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(600)
    while !(try await isTrue()) {
        guard ContinuousClock.now < end else { throw WaitedInVain(condition: condition) }
        try await Task.sleep(for: .milliseconds(10))
    }
}
