import ArgumentParser
import Foundation
import Synchronization
import VitrineCache
import VitrineCore

/// Hits and insertions of the memory cache beside NSCache's and a bare table's, alternating slice by slice.
struct MemoryBenchmark: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "memory", abstract: "Compares memory hits and insertions with NSCache and a locked table.")

    @Option(help: "How many entries each cache holds.") var entries = 20_000
    @Option(help: "How many slices are timed.") var slices = 60
    @Option(help: "How many lookups a slice has.") var slice = 50_000

    private var cost: Int { 10_240 }

    func run() throws {
        let texts = Self.texts(0..<entries)
        let order = Self.zipf(entries, count: slice * 8)
        let contenders: [(String, any MemoryContender)] = [
            ("MemoryCache, CacheKey", VitrineContender(texts, capacity: entries * cost * 2)),
            ("Mutex + Dictionary, CacheKey", DictionaryContender(texts)),
            ("NSCache, String bridged", BridgedNSCacheContender(texts, capacity: entries * cost * 2)),
            ("NSCache, wrapper class", WrappedNSCacheContender(texts, capacity: entries * cost * 2)),
        ]
        let payloads = (0..<entries).map(Payload.init)
        for (_, contender) in contenders {
            for index in 0..<entries { contender.set(index, payloads[index], cost: cost) }
        }
        hits(contenders, order)
        allocations(contenders, order)
        threads(contenders, order, payloads)
        insertions(payloads)
        memory(texts, payloads)
    }

    /// Texts like URLs of thumbnails, each with storage of its own.
    private static func texts(_ range: Range<Int>) -> [String] {
        range.map { index in
            var random = SplitMix(state: UInt64(index))
            return "https://example.org/photos/\(random.next() >> 32)/\(index)/320x240.jpg"
        }
    }

    /// Indices by a Zipf distribution with exponent 0.8, scattered over the range.
    private static func zipf(_ size: Int, count: Int) -> [Int32] {
        var cumulated = [Double](repeating: 0, count: size), sum = 0.0
        for rank in 0..<size {
            sum += pow(Double(rank + 1), -0.8)
            cumulated[rank] = sum
        }
        var random = SplitMix(state: 1)
        var places = (0..<size).map(Int32.init)
        for index in stride(from: size - 1, to: 0, by: -1) {
            places.swapAt(index, Int(random.next() % UInt64(index + 1)))
        }
        return (0..<count).map { _ in
            let wanted = random.unit() * sum
            var low = 0, high = size - 1
            while low < high {
                let middle = (low + high) / 2
                if cumulated[middle] < wanted { low = middle + 1 } else { high = middle }
            }
            return places[low]
        }
    }

    private func part(_ order: [Int32], _ turn: Int) -> ArraySlice<Int32> {
        let start = turn * slice % order.count
        return order[start..<start + slice]
    }

    private func hits(_ contenders: [(String, any MemoryContender)], _ order: [Int32]) {
        var samples = [Samples](repeating: Samples(), count: contenders.count)
        for turn in 0..<slices + 2 {
            for (number, contender) in contenders.enumerated() {
                let start = Measuring.threadTime
                let found = contender.1.hits(part(order, turn), user: 0)
                let time = Double(Measuring.threadTime - start) / Double(slice)
                precondition(found == slice, "\(contender.0) has lost entries")
                if turn >= 2 { samples[number].add(time) }
            }
        }
        print("### Hit, one thread\n")
        print("| contender | p50 ns | mean ns | ours / theirs, p50 | target |\n|---|---:|---:|---:|---:|")
        let targets = ["", "≤ 1.5", "≤ 0.2", "≤ 0.2"]
        for (number, contender) in contenders.enumerated() {
            let ratio = samples[0].median / samples[number].median
            print("| \(contender.0) | \(text(samples[number].median, 1)) | \(text(samples[number].mean, 1))",
                "| \(text(ratio, 3)) | \(targets[number]) |")
        }
        print("")
    }

    private func allocations(_ contenders: [(String, any MemoryContender)], _ order: [Int32]) {
        print("Allocations per hit:", terminator: " ")
        let counts = contenders.map { name, contender in
            let before = Measuring.allocations
            _ = contender.hits(part(order, 0), user: 0)
            return "\(name) \(text(Double(Measuring.allocations - before) / Double(slice), 3))"
        }
        print(counts.joined(separator: "; ") + ".\n")
    }

    /// Short slices, one and two threads alternating: on a busy machine the best ones were not disturbed.
    private func threads(_ contenders: [(String, any MemoryContender)], _ order: [Int32], _ payloads: [Payload]) {
        print("### Two threads on one cache, wall time per operation of each\n")
        print("| contender | one, p50 ns | one, best | two, p50 | two, best | two / one, p50 | best | target |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for (number, contender) in contenders.enumerated() {
            race(contender.0, order, turns: slices * (number < 2 ? 20 : 2), target: number == 0 ? "≤ 2" : "") {
                _ = contender.1.hits($0, user: $1)
            }
        }
        for (name, contender) in contenders.prefix(2) {
            race(name + ", each 16th stores", order, turns: slices * 20, target: "") { part, user in
                var rest = part
                while let index = rest.first {
                    _ = contender.hits(rest.prefix(15), user: user)
                    contender.set(Int(index), payloads[Int(index)], cost: cost)
                    rest = rest.dropFirst(16)
                }
            }
        }
        print("")
    }

    /// A row of the table: one thread and two alternate.
    private func race(
        _ name: String, _ order: [Int32], turns: Int, target: String, _ body: @Sendable (ArraySlice<Int32>, Int) -> Void
    ) {
        var alone = Samples(), together = Samples()
        for turn in 0..<turns {
            alone.add(time(order, turn, threads: 1, body))
            together.add(time(order, turn, threads: 2, body))
        }
        let medians = together.median / alone.median, bests = together.best / alone.best
        let cells = [alone.median, alone.best, together.median, together.best].map { text($0, 1) }
        print("| \(name) | \(cells.joined(separator: " | ")) | \(text(medians, 2)) | \(text(bests, 2)) | \(target) |")
    }

    /// Nanoseconds on the wall per operation of each thread.
    private func time(
        _ order: [Int32], _ turn: Int, threads: Int, _ body: @Sendable (ArraySlice<Int32>, Int) -> Void
    ) -> Double {
        let length = 2000
        let ready = Atomic<Int>(0)
        let times = Mutex<[(Int, Int)]>([])
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            let start = (turn + thread * 37) * length % (order.count - length)
            let part = order[start..<start + length]
            ready.wrappingAdd(1, ordering: .sequentiallyConsistent)
            while ready.load(ordering: .acquiring) < threads {}
            let began = Measuring.wallTime
            body(part, thread)
            let end = Measuring.wallTime
            times.withLock { $0.append((began, end)) }
        }
        let all = times.withLock { $0 }
        let start = all.map(\.0).min() ?? 0, end = all.map(\.1).max() ?? 0
        return Double(end - start) / Double(length)
    }

    /// A full cache takes new entries of differing cost: each evicts about one. NSCache is given its limit before it
    /// is filled, and far fewer insertions, as it searches a list at each.
    private func insertions(_ payloads: [Payload]) {
        let texts = Self.texts(entries..<entries * 6)
        let first = Self.texts(0..<entries)
        var random = SplitMix(state: 3)
        let costs = (0..<entries * 6).map { _ in 2048 + Int(random.next() % 49_152) }
        let capacity = costs[0..<entries].reduce(0, +)
        let contenders: [(String, any MemoryContender, Int)] = [
            ("MemoryCache, CacheKey", VitrineContender(first + texts, capacity: capacity), entries / 20),
            ("NSCache, String bridged", BridgedNSCacheContender(first + texts, capacity: capacity), 40),
            ("NSCache, wrapper class", WrappedNSCacheContender(first + texts, capacity: capacity), 40),
        ]
        var samples = [Samples](repeating: Samples(), count: contenders.count)
        for (_, contender, _) in contenders {
            for index in 0..<entries { contender.set(index, payloads[index], cost: costs[index]) }
        }
        for turn in 0..<max(5, slices) {
            for (number, contender) in contenders.enumerated() {
                let base = entries + (turn * contender.2) % (entries * 5 - contender.2)
                let start = Measuring.threadTime
                for index in base..<base + contender.2 {
                    contender.1.set(index, payloads[index % entries], cost: costs[index])
                }
                samples[number].add(Double(Measuring.threadTime - start) / Double(contender.2))
            }
        }
        print("### Insertion into a full cache of \(entries) entries\n")
        print("| contender | p50 ns | mean ns | ours / theirs, p50 | target |\n|---|---:|---:|---:|---:|")
        for (number, contender) in contenders.enumerated() {
            let ratio = samples[0].median / samples[number].median
            print("| \(contender.0) | \(text(samples[number].median, 0)) | \(text(samples[number].mean, 0))",
                "| \(text(ratio, 4)) | \(number == 0 ? "" : "≤ 0.02") |")
        }
        print("")
    }

    /// What an entry occupies besides the value and the key's text: in a cache that was just filled, and in one that
    /// has evicted as many again.
    private func memory(_ texts: [String], _ payloads: [Payload]) {
        let keys = texts.map { CacheKey($0) }
        let before = Measuring.heapBytes
        let cache = MemoryCache<CacheKey, Payload>(
            capacity: ByteCount(entries * cost), trimsOn: nil, cost: { _ in 1 })
        for index in 0..<entries { cache.set(payloads[index], forKey: keys[index], cost: cost) }
        let heap = Measuring.heapBytes - before
        let filled = cache.overhead.bytes
        let more = Self.texts(entries..<entries * 2).map { CacheKey($0) }
        for index in 0..<entries { cache.set(payloads[index], forKey: more[index], cost: cost) }
        print("Memory: \(text(Double(filled) / Double(entries), 0)) bytes per entry with \(entries) entries",
            "(\(text(Double(heap) / Double(entries), 0)) by the C library's count),",
            "\(text(Double(cache.overhead.bytes) / Double(entries), 0)) with the ghosts of as many evictions.\n")
    }
}
