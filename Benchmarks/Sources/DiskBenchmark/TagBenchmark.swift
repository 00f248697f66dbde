import VitrineCache
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Removal by tag: a thousandth of the entries at a time, as if each source had so many variants, stored at any time.
enum TagBenchmark {
    private static let sources = 1000
    private static let removals = 15

    static func run(_ directory: String, entries: Int, size: Int) async throws {
        try await removeFromMemory(directory, entries: entries)
        try await removeFromDisk(directory, entries: entries, size: size)
        print("peak \(memory("VmHWM") / 1024)")
    }

    private static func removeFromDisk(_ directory: String, entries: Int, size: Int) async throws {
        let workload = Workload(), body = [UInt8](repeating: 7, count: size)
        let cache = DiskCache(directory: directory, configuration: .init(capacity: .unlimited))
        let order = workload.shuffled(entries, seed: 5)
        for (kind, isTagged) in [("plain", false), ("tagged", true)] {
            try await cache.removeAll()
            let blocking = cache.blocking
            try measure("set-\(kind)-blocks", order, block: blockLength) { number in
                try blocking.set(body, forKey: workload.key(number), tags: isTagged ? [tag(number)] : [])
            } end: {
                try blocking.flush()
            }
            try measure("get-\(kind)", workload.shuffled(entries, seed: 9).prefix(200_000)) { number in
                _ = try blocking.bytes(forKey: workload.key(number))
            }
        }
        // The uses that were read above.
        try await cache.flush()
        try await remove("disk") { try await cache.removeAll(tag: tag($0)) }
    }

    private static func removeFromMemory(_ directory: String, entries: Int) async throws {
        let workload = Workload()
        var configuration = CacheConfiguration(root: directory)
        configuration.memoryCapacity = .unlimited
        configuration.memoryBudget = nil
        let cache = ValueCache<[UInt8]>(name: "memory", configuration: configuration)
        for (kind, isTagged) in [("plain", false), ("tagged", true)] {
            cache.clearMemory()
            for number in 0..<entries {
                let tags = isTagged ? [tag(number)] : []
                try await cache.set([1], forKey: workload.key(number), tags: tags, levels: .memory)
            }
            let keys = workload.shuffled(entries, seed: 9).prefix(200_000).map { workload.key($0) }
            measure("hit-\(kind)", keys.indices) { precondition(cache[keys[$0]] != nil) }
        }
        try await remove("memory") { try await cache.removeAll(tag: tag($0), levels: .memory) }
    }

    private static func tag(_ number: Int) -> String { "source-\(number % sources)" }

    private static func remove(_ level: String, _ removal: (Int) async throws -> Int) async throws {
        var times: [Double] = [], count = 0
        let cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID)
        for source in 0..<removals {
            // As an operator does: not one directly behind the other.
            try await Task.sleep(for: .milliseconds(300))
            let start = microseconds(CLOCK_MONOTONIC)
            count += try await removal(source)
            times.append(microseconds(CLOCK_MONOTONIC) - start)
        }
        let spent = microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu
        print("removed-\(level) \(count / removals) each \(times.map { Int($0) })")
        report("remove-\(level)", times, cpu: spent, operations: removals, wall: times.reduce(0, +))
    }
}
