import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The phases for a file per key.
enum FileBenchmark {
    static func run(_ directory: String, entries: Int) {
        let workload = Workload(), store = FileStore(directory)
        let values = PreparedValues(workload, entries)
        measure("put", 0..<entries) { store.put(values.bytes($0), values.key($0)) }
        measure("get", workload.shuffled(entries, seed: 5)) { number in
            precondition(store.get(values.key(number))?.count == values.bytes(number).count)
        }
        measure("get2", workload.shuffled(entries, seed: 9)) { _ = store.get(values.key($0)) }
        measure("miss", 0..<entries) { precondition(store.get(values.missing($0)) == nil) }
        let order = workload.shuffled(entries, seed: 5)
        measure("full", 0..<entries / 2) { index in
            store.remove(values.key(order[index]))
            store.put(values.bytes(order[index]), values.key(entries + index))
        }
        measure("delete", entries..<entries + entries / 2) { store.remove(values.key($0)) }
        print("peak \(memory("VmHWM") / 1024)")
    }

    static func fill(_ directory: String, entries: Int) {
        let workload = Workload(), store = FileStore(directory)
        for number in 0..<entries { store.put(workload.bytes(number), workload.key(number)) }
    }

    /// Reads alone, for profiles.
    static func gets(_ directory: String, entries: Int) {
        let workload = Workload(), values = PreparedValues(workload, entries), store = FileStore(directory)
        for round in 0..<6 {
            measure("get\(round)", workload.shuffled(entries, seed: UInt64(round))) { number in
                _ = store.get(values.key(number))
            }
        }
        measure("miss", 0..<entries) { _ = store.get(values.missing($0)) }
    }

    static func open(_ directory: String) {
        let store = FileStore(directory)
        let start = microseconds(CLOCK_MONOTONIC), cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID)
        let found = store.list()
        let wall = (microseconds(CLOCK_MONOTONIC) - start) / 1000
        let spent = (microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1000
        print("open \(wall) cpu \(spent) entries \(found.count) bytes \(found.bytes)")
    }
}

/// Keys and values made before they are timed.
struct PreparedValues {
    private let keys: [CacheKey]
    private let values: [[UInt8]]
    private let absent: [CacheKey]

    init(_ workload: Workload, _ entries: Int) {
        keys = (0..<entries * 2).map(workload.key)
        values = (0..<entries).map(workload.bytes)
        absent = (0..<entries).map { workload.key(10_000_000 + $0) }
    }

    func key(_ number: Int) -> CacheKey { keys[number] }
    func bytes(_ number: Int) -> [UInt8] { values[number] }
    func missing(_ number: Int) -> CacheKey { absent[number] }
}
