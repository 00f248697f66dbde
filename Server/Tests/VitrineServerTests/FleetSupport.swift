#if os(Linux)
import Foundation
import Glibc
import Synchronization
import Testing
import VitrineServer

/// A redis-server on loopback that ends with the test.
final class RedisProcess: Sendable {
    static let isInstalled = ["redis-server", "redis-cli"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/" + $0)
    }

    let port: Int
    private let directory: TemporaryDirectory
    private let arguments: [String]
    private let process: Mutex<Process>

    init(_ options: [String] = []) async throws {
        let (descriptor, port) = try listeningSocket()
        close(descriptor)
        self.port = port
        directory = try TemporaryDirectory()
        arguments =
            ["--port", "\(port)", "--bind", "127.0.0.1", "--dir", directory.path, "--save", "", "--appendonly", "no"]
            + options
        process = Mutex(try Self.start(arguments))
        try await waitUntilUp()
    }

    deinit { end() }

    private static func start(_ arguments: [String]) throws -> Process {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/redis-server")
        process.arguments = arguments
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        try process.run()
        return process
    }

    private func waitUntilUp() async throws {
        let port = port
        try await eventually("redis-server listens") {
            (try? await onThread { _ = try PlainClient(port: port) }) != nil
        }
    }

    var url: String { "redis://127.0.0.1:\(port)" }

    func send(_ signal: Int32) { process.withLock { _ = kill($0.processIdentifier, signal) } }

    func end() {
        process.withLock { process in
            guard process.isRunning else { return }
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
    }

    func restart() async throws {
        end()
        let next = try Self.start(arguments)
        process.withLock { $0 = next }
        try await waitUntilUp()
    }

    /// The lines that redis-cli prints.
    @discardableResult
    func command(_ words: String...) async throws -> [String] {
        let (_, output) = try await run("/usr/bin/redis-cli", ["-p", "\(port)"] + words)
        return output.split(separator: "\n").map(String.init)
    }

    /// The keys of values.
    var values: [String] {
        get async throws { try await command("KEYS", "*:v") }
    }
}

/// Several servers with one tier.
struct Fleet {
    let nodes: [ImageServerProcess]

    static func start(
        _ count: Int, _ arguments: [String] = [], lease: Int = 60, each: (Int) -> [String] = { _ in [] }
    ) async throws -> Fleet {
        var nodes: [ImageServerProcess] = []
        for index in 0..<count {
            // Commands may take long on a machine under load.
            let shared = [
                "--redis-timeout", "5", "--redis-connect-timeout", "10", "--redis-wait", "120", "--timeout", "300",
                "--redis-lease", "\(lease)",
            ]
            nodes.append(try await .start(shared + arguments + each(index)))
        }
        for node in nodes {
            try await eventually("the tier is up") { try await node.metrics.contains("vitrine_tier_up 1\n") }
        }
        return Fleet(nodes: nodes)
    }

    /// The sum of a metric over all nodes.
    func sum(_ series: String) async throws -> Int {
        var sum = 0
        for node in nodes where node.process.status == nil { sum += try await node.value(series) }
        return sum
    }

    func end() async throws {
        for node in nodes where node.process.status == nil { try await node.end() }
    }
}

extension ImageServerProcess {
    func value(_ series: String) async throws -> Int {
        let line = try await metrics.split(separator: "\n").first { $0.hasPrefix(series + " ") }
        return line?.split(separator: " ").last.flatMap { Double($0) }.map { Int($0) } ?? 0
    }

    static let made = "vitrine_cache_results_total{level=\"made\"}"

    func isReady() async throws -> Bool { try await get(main, "/ready").status == 200 }
}
#endif
