import VitrineCache
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// One number of entries in a memory cache and in a disk cache. `Scripts/scaling` makes tables of several numbers.
enum ScaleBenchmark {
    /// Operations that are measured for each number of entries.
    private static let sample = 50_000

    static func run(_ directory: String, entries: Int, size: Int) async throws {
        try disk(directory, entries: entries, size: size)
        try await fullDisk(directory, entries: entries, size: size)
        memoryCache(entries: entries)
    }

    private static func disk(_ directory: String, entries: Int, size: Int) throws {
        let workload = Workload(), body = [UInt8](repeating: 7, count: size)
        let cache = DiskCache(directory: directory, configuration: .init(capacity: .unlimited)).blocking
        try measure("disk-put", 0..<entries, block: blockLength) { number in
            try cache.set(body, forKey: workload.key(number))
        } end: {
            try cache.flush()
        }
    }

    /// Opens the cache of `disk` again, reads, and writes with its size as the capacity.
    private static func fullDisk(_ directory: String, entries: Int, size: Int) async throws {
        let workload = Workload(), body = [UInt8](repeating: 7, count: size)
        let start = microseconds(CLOCK_MONOTONIC), cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID)
        let cache = DiskCache(directory: directory, configuration: .init(capacity: .unlimited))
        let blocking = cache.blocking, bytes = try blocking.size, count = try blocking.count
        let spent = microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu
        report("disk-open", [microseconds(CLOCK_MONOTONIC) - start], cpu: spent, operations: 1, wall: spent)
        precondition(count == entries)
        let before = anonymousMemory
        let order = random(entries)
        try measure("disk-get", order) { _ = try blocking.bytes(forKey: workload.key($0)) }
        try measure("disk-miss", 0..<sample) { _ = try blocking.bytes(forKey: workload.key(entries + $0)) }
        print("disk-memory \(anonymousMemory - before) kB, \(bytes.bytes) bytes counted")
        try await cache.setCapacity(bytes)
        try measure("disk-put-full", 0..<sample, block: blockLength) { number in
            try blocking.set(body, forKey: workload.key(entries + number))
        } end: {
            try blocking.flush()
        }
        print("disk-entries \(try blocking.count)")
    }

    private static func memoryCache(entries: Int) {
        let workload = Workload(), before = anonymousMemory
        let cache = MemoryCache<CacheKey, Int>(capacity: ByteCount(entries), trimsOn: nil, cost: { _ in 1 })
        measure("memory-put", 0..<entries, block: blockLength) { cache.set($0, forKey: workload.key($0)) } end: {}
        print("memory-entries \(cache.count)")
        print("memory-memory \(anonymousMemory - before) kB")
        let keys = random(entries).map { workload.key($0) }
        measure("memory-hit", keys.indices, block: blockLength) { _ = cache[keys[$0]] } end: {}
        let added = (0..<sample).map { workload.key(entries + $0) }
        measure("memory-put-full", added.indices, block: blockLength) { cache.set($0, forKey: added[$0]) } end: {}
    }

    /// Numbers of entries, each with equal chance.
    private static func random(_ entries: Int) -> [Int] {
        (0..<sample).map { Int(Workload.mix(UInt64($0) &* 7919) % UInt64(entries)) }
    }

    /// Resident memory that no file backs, in kilobytes.
    private static var anonymousMemory: Int { memory("RssAnon") }
}
