// Prints what the scheduling primitives of VitrineCore cost when nothing is in their way: nanoseconds of processor
// time (user and system, all threads) per operation, the median over rounds.
import Synchronization
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Processor time of the process so far, in nanoseconds.
func processorTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Int(time.tv_sec) * 1_000_000_000 + Int(time.tv_nsec)
}

func report(_ name: String, _ samples: [Double]) {
    let sorted = samples.sorted()
    let median = Int(sorted[sorted.count / 2].rounded()), best = Int((sorted.first ?? 0).rounded())
    print("\(name): median \(median) ns, best \(best) ns")
}

func measure(_ name: String, rounds: Int = 31, count: Int = 20_000, _ body: (Int) -> Void) {
    var samples: [Double] = []
    for _ in 0..<rounds {
        let start = processorTime()
        body(count)
        samples.append(Double(processorTime() - start) / Double(count))
    }
    report(name, samples)
}

func measure(_ name: String, rounds: Int = 31, count: Int = 10_000, _ body: (Int) async throws -> Void) async throws {
    var samples: [Double] = []
    for _ in 0..<rounds {
        let start = processorTime()
        try await body(count)
        samples.append(Double(processorTime() - start) / Double(count))
    }
    report(name, samples)
}

let counter = Atomic<Int>(0)
let queue = WorkQueue(limit: 4, reserved: [.high: 1])
let busy = WorkQueue()
busy.suspend()
let flights = SingleFlight<CacheKey, Int>()
let keys = (0..<1024).map { CacheKey("https://example.org/photographs/2026/lake-\($0).jpg") }

measure("CacheKey from a 50-byte text") { count in
    let text = "https://example.org/photographs/2026/lake-0001.jpg"
    for _ in 0..<count { counter.wrappingAdd(Int(truncatingIfNeeded: CacheKey(text).hash64), ordering: .relaxed) }
}

measure("StableHash of 15 KB", count: 1000) { count in
    let bytes = [UInt8](repeating: 7, count: 15_000)
    // Another seed each time, or the compiler would hash once.
    for seed in 0..<UInt64(count) {
        let hash = StableHash.hash(bytes, seed: seed)
        counter.wrappingAdd(Int(truncatingIfNeeded: hash), ordering: .relaxed)
    }
}

measure("WorkQueue: enqueue, start at once, finish") { count in
    for _ in 0..<count {
        queue.enqueue(priority: .normal) { item in
            counter.wrappingAdd(1, ordering: .relaxed)
            item.finish()
        }
    }
}

measure("WorkQueue: enqueue behind others, then start and finish") { count in
    busy.suspend()
    for _ in 0..<count {
        busy.enqueue(priority: .normal) { item in
            counter.wrappingAdd(1, ordering: .relaxed)
            item.finish()
        }
    }
    busy.resume()
}

measure("WorkQueue: enqueue behind others, change priority, cancel") { count in
    busy.suspend()
    let items = (0..<count).map { _ in busy.enqueue { $0.finish() } }
    for item in items { item.priority = .high }
    for item in items { item.cancel() }
}

try await measure("WorkQueue: await run(priority:) on a free queue") { count in
    for _ in 0..<count {
        try await queue.run(priority: .normal) { _ = counter.wrappingAdd(1, ordering: .relaxed) }
    }
}

measure("SingleFlight: join, start, finish, deliver") { count in
    for index in 0..<count {
        flights.join(keys[index & 1023], priority: .normal) { flight in
            flight.finish(.success(index))
        } deliver: { _ in
            counter.wrappingAdd(1, ordering: .relaxed)
        }
    }
}

measure("SingleFlight: join a run under way, raise it, leave again") { count in
    let first = keys.map { key in flights.join(key) { _ in } deliver: { _ in } }
    defer { for subscription in first { subscription.leave() } }
    for index in 0..<count {
        flights.join(keys[index & 1023], priority: .high) { _ in } deliver: { _ in
            counter.wrappingAdd(1, ordering: .relaxed)
        }.leave()
    }
}

let awaited = SingleFlight<CacheKey, Int>()
// In a task of its own: from the main actor each call would be two thread hops more.
try await Task.detached {
    try await measure("SingleFlight: await value(for:), the run ends without suspending") { count in
        for index in 0..<count {
            let value = try await awaited.value(for: keys[index & 1023]) { _ in index }
            counter.wrappingAdd(value, ordering: .relaxed)
        }
    }
    try await measure("SingleFlight: await value(for:), the run yields once") { count in
        for index in 0..<count {
            let value = try await awaited.value(for: keys[index & 1023]) { _ in
                await Task.yield()
                return index
            }
            counter.wrappingAdd(value, ordering: .relaxed)
        }
    }
    try await measure("BlockingExecutor: await run { }, two thread hops") { count in
        for _ in 0..<count { await BlockingExecutor.shared.run { _ = counter.wrappingAdd(1, ordering: .relaxed) } }
    }
}.value
