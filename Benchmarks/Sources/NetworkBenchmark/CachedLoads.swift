import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif
import Synchronization
import VitrineCache
import VitrineCore
import VitrineNetwork

/// Runs `load` for each of the addresses `base/0.jpg`, `base/1.jpg` and so on, so many at a time.
private func each(
    _ count: Int, at concurrency: Int, below base: String, _ load: @escaping @Sendable (URL) async throws -> Int
) async throws -> Int {
    let tally = Tally()
    try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<concurrency {
            group.addTask {
                while true {
                    let number = tally.next.add(1, ordering: .relaxed).oldValue
                    guard number < count, let url = URL(string: "\(base)/\(number).jpg") else { return }
                    tally.bytes.add(try await load(url), ordering: .relaxed)
                }
            }
        }
        try await group.waitForAll()
    }
    return tally.bytes.load(ordering: .relaxed)
}

private func makeCache(_ directory: String) -> ValueCache<[UInt8]> {
    ValueCache(name: "images", configuration: CacheConfiguration(root: directory))
}

private func makeOptions(connections: Int) -> FetchOptions {
    FetchOptions(loader: NetworkLoader(makeLoader(connections: connections, ca: "")))
}

private func withTemporaryDirectory(_ body: (String) async throws -> Void) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await body(directory)
}

/// Through the whole cache path: keys, levels, single flight, HTTP's rules, memory, and the disk, whose writes are
/// waited for; or through a part of it, to see what that costs: `memory` leaves out the disk, `none` both levels,
/// `loader` all but redirects, policy and repetitions.
func loadCached(_ arguments: Arguments) async throws {
    let count = arguments.number(0, default: 1000), concurrency = arguments.number(1, default: 64)
    let part = arguments.text(2)
    let levels: CacheLevels = part == "memory" ? .memory : part == "none" ? [] : .all
    try await withTemporaryDirectory { directory in
        let cache = makeCache(directory), options = makeOptions(connections: concurrency)
        var bytes = 0
        try await report("vitrine", count: count) {
            bytes = try await each(count, at: concurrency, below: arguments.address) { url in
                guard part != "loader" else {
                    return try await options.loader.load(HTTPRequest(url: url)).body.collect().count
                }
                return try await cache.value(from: url, levels: levels, options: options).count
            }
            try await cache.flush()
        }
        precondition(bytes > 0)
        guard levels.contains(.writeDisk), part != "loader" else { return }
        let stored = try await cache.count()
        precondition(stored == count, "\(stored) are stored")
    }
}

/// The system's own client, without any cache.
func loadBySession(_ arguments: Arguments) async throws {
    let count = arguments.number(0, default: 1000), concurrency = arguments.number(1, default: 64)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = concurrency
    let session = URLSession(configuration: configuration)
    var bytes = 0
    try await report("urlsession", count: count) {
        bytes = try await each(count, at: concurrency, below: arguments.address) { url in
            try await session.data(from: url).0.count
        }
    }
    precondition(bytes > 0)
}

/// All at once want one URL that nobody has: see in the server's log that it is asked once.
func loadCold(_ arguments: Arguments) async throws {
    guard let url = URL(string: arguments.address) else { return }
    let count = arguments.number(0, default: 1000)
    try await withTemporaryDirectory { directory in
        let cache = makeCache(directory), options = makeOptions(connections: 10)
        let counter = Transforms()
        for name in ["small", "large"] {
            cache.register(CacheFormat(FormatName(name)) { bytes in counter.count(Array(bytes.prefix(100))) })
        }
        let formats: [FormatName] = [.original, "small", "large"]
        try await report("vitrine", count: count) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<count {
                    group.addTask { _ = try await cache.value(from: url, format: formats[number % 3], options: options) }
                }
                try await group.waitForAll()
            }
        }
        print("transforms", counter.total)
    }
}

/// Counts what formats do.
private final class Transforms: Sendable {
    private let runs = Atomic<Int>(0)
    var total: Int { runs.load(ordering: .relaxed) }
    func count(_ bytes: [UInt8]) -> [UInt8] {
        runs.add(1, ordering: .relaxed)
        return bytes
    }
}
