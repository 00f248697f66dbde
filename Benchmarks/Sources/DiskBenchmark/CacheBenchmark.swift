import VitrineCache
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The phases for the disk cache.
enum CacheBenchmark {
    /// Puts that the queue takes without waiting for the writer.
    private static let burst = 128

    static func run(_ directory: String, entries: Int) async throws {
        let workload = Workload(), values = PreparedValues(workload, entries)
        let cache = DiskCache(directory: directory, configuration: .init(capacity: .unlimited))
        let blocking = cache.blocking
        try measure("put-blocks", 0..<entries, block: blockLength) { number in
            try blocking.set(values.bytes(number), forKey: values.key(number))
        } end: {
            try blocking.flush()
        }
        try measure("get", workload.shuffled(entries, seed: 5)) { number in
            let found = try blocking.bytes(forKey: values.key(number))
            precondition(found?.count == values.bytes(number).count)
        }
        try measure("get2", workload.shuffled(entries, seed: 9)) { _ = try blocking.bytes(forKey: values.key($0)) }
        try measure("miss", 0..<entries) { number in
            let found = try blocking.bytes(forKey: values.missing(number))
            precondition(found == nil)
        }
        try await awaited(cache, values, workload.shuffled(entries, seed: 7))
        try callersPuts(blocking, values, entries)
        try await full(cache, workload, values, entries)
        let order = workload.shuffled(entries, seed: 3)[..<(entries / 2)]
        try measure("delete-blocks", order, block: blockLength) { blocking.remove(values.key($0)) } end: {
            try blocking.flush()
        }
        print("peak \(memory("VmHWM") / 1024)")
    }

    /// What the asynchronous calls add.
    private static func awaited(_ cache: DiskCache, _ values: PreparedValues, _ order: [Int]) async throws {
        let cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID), start = microseconds(CLOCK_MONOTONIC)
        var times: [Double] = [], last = start
        for number in order {
            _ = try await cache.bytes(forKey: values.key(number))
            let now = microseconds(CLOCK_MONOTONIC)
            times.append(now - last)
            last = now
        }
        report(
            "get-await", times, cpu: microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, operations: order.count,
            wall: last - start)
    }

    /// What a put costs its caller, while the queue takes it.
    private static func callersPuts(_ cache: DiskCache.Blocking, _ values: PreparedValues, _ entries: Int) throws {
        var times: [Double] = []
        for start in stride(from: 0, to: entries - burst, by: burst) {
            for number in start..<start + burst {
                let before = microseconds(CLOCK_MONOTONIC)
                try cache.set(values.bytes(number), forKey: values.key(number))
                times.append(microseconds(CLOCK_MONOTONIC) - before)
            }
            try cache.flush()
        }
        report("callers-put", times, cpu: 0, operations: times.count, wall: times.reduce(0, +))
    }

    /// Puts into a full cache: each evicts about as much as it stores.
    private static func full(
        _ cache: DiskCache, _ workload: Workload, _ values: PreparedValues, _ entries: Int
    ) async throws {
        let blocking = cache.blocking, order = workload.shuffled(entries, seed: 5)
        try await cache.setCapacity(try await cache.size)
        let before = try blocking.count
        try measure("full-blocks", 0..<entries / 2, block: blockLength) { index in
            try blocking.set(values.bytes(order[index]), forKey: values.key(entries + index))
        } end: {
            try blocking.flush()
        }
        // The same without a pause: the caller goes as fast as the queue takes it, and waits for the rest at the end.
        let last = entries / 2 - 1
        try measure("sustained-blocks", 0...last, block: blockLength) { index in
            try blocking.set(values.bytes(order[index]), forKey: values.key(entries + entries / 2 + index))
            if index == last { try blocking.flush() }
        } end: {
        }
        print("full-count \(before) \(try blocking.count)")
    }

    /// Puts into a full cache alone, for profiles.
    static func fulls(_ directory: String, entries: Int) async throws {
        let workload = Workload(), values = PreparedValues(workload, entries)
        let cache = DiskCache(directory: directory, configuration: .init(capacity: .unlimited))
        for number in 0..<entries { try cache.blocking.set(values.bytes(number), forKey: values.key(number)) }
        try cache.blocking.flush()
        try await full(cache, workload, values, entries)
    }

    static func fill(_ directory: String, entries: Int) throws {
        let workload = Workload()
        let cache = DiskCache(directory: directory, configuration: .init(capacity: .unlimited)).blocking
        for number in 0..<entries { try cache.set(workload.bytes(number), forKey: workload.key(number)) }
        try cache.flush()
    }

    /// Reads alone, for profiles.
    static func gets(_ directory: String, entries: Int, readOnly: Bool = false) throws {
        let workload = Workload(), values = PreparedValues(workload, entries)
        let configuration = DiskCache.Configuration(capacity: .unlimited, isReadOnly: readOnly)
        let cache = DiskCache(directory: directory, configuration: configuration).blocking
        for round in 0..<6 {
            try measure("get\(round)", workload.shuffled(entries, seed: UInt64(round))) { number in
                _ = try cache.bytes(forKey: values.key(number))
            }
        }
        try measure("miss", 0..<entries) { _ = try cache.bytes(forKey: values.missing($0)) }
    }

    static func open(_ directory: String) throws {
        let start = microseconds(CLOCK_MONOTONIC), cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID)
        let cache = DiskCache(directory: directory, configuration: .init(capacity: .unlimited)).blocking
        let size = try cache.size, count = try cache.count
        let wall = (microseconds(CLOCK_MONOTONIC) - start) / 1000
        let spent = (microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1000
        print("open \(wall) cpu \(spent) entries \(count) bytes \(size.bytes)")
    }

    /// Resident memory while every entry is read, above what the process had before.
    static func memoryPerEntry(_ directory: String, entries: Int) throws {
        let workload = Workload()
        let cache = DiskCache(directory: directory, configuration: .init(capacity: .unlimited)).blocking
        _ = try cache.bytes(forKey: workload.key(0))
        let before = memory("RssAnon")
        for number in workload.shuffled(entries, seed: 5) { _ = try cache.bytes(forKey: workload.key(number)) }
        let after = memory("RssAnon")
        let perEntry = Double(max(0, after - before)) * 1024 / Double(entries)
        print("memory-per-entry \(perEntry) rss-kB \(after) mapped-kB \(memory("RssFile"))")
    }
}
