import VitrineCache
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Requests of a trace: a get, and a put after a miss.
enum Replay {
    /// - Parameters:
    ///   - trace: A file of little-endian pairs: 32-bit object number, 32-bit size or 0.
    ///   - eviction: `size-and-frequency` or `least-recently-used`.
    static func run(_ directory: String, trace: String, capacity: Int, eviction: String) throws {
        guard let requests = read(trace) else {
            print("error cannot read \(trace)")
            exit(1)
        }
        var configuration = DiskCache.Configuration()
        configuration.capacity = ByteCount(capacity)
        configuration.eviction = eviction == "least-recently-used" ? .leastRecentlyUsed : .sizeAndFrequency
        let cache = DiskCache(directory: directory, configuration: configuration).blocking
        let workload = Workload()
        var hits = 0
        let cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID)
        for number in requests {
            let key = workload.key(number)
            if try cache.bytes(forKey: key) != nil {
                hits += 1
            } else {
                try cache.set(workload.bytes(number), forKey: key)
            }
        }
        try cache.flush()
        let spent = (microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / Double(requests.count)
        print("hits \(Double(hits) * 100 / Double(requests.count)) cpu \(spent) size \(try cache.size.bytes)")
    }

    private static func read(_ path: String) -> [Int]? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var numbers: [Int] = [], pair: [UInt32] = [0, 0]
        while fread(&pair, 8, 1, file) == 1 { numbers.append(Int(UInt32(littleEndian: pair[0]))) }
        return numbers
    }
}
