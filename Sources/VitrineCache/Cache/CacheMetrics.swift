import Metrics
import Synchronization
import VitrineCore

/// The metrics of a cache in swift-metrics, if the program has bootstrapped a backend with `MetricsSystem.bootstrap`.
///
/// All have the dimension `cache`, the name of the cache. Counters are updated every 64 operations that reach the disk
/// or a source, by ``ValueCache/publishMetrics()`` and by ``ValueCache/flush()``. Timers are updated immediately. The article on
/// metrics lists the labels.
package final class CacheMetrics: Sendable {
    /// How a load ended.
    package enum Outcome: String, CaseIterable, Sendable { case value, failure, cancelled, stale }
    /// The stage that a duration measures.
    package enum Stage: String, CaseIterable, Sendable { case disk, source, transform }

    /// Both levels' counts at one moment.
    package struct Snapshot: Sendable {
        package var memory = MemoryCacheStatistics()
        package var disk = DiskCache.Statistics()
        package var memoryBytes = 0

        package init() {}
    }

    private let counters: [(counter: Counter, count: @Sendable (Snapshot) -> Int)]
    private let outcomes: [Outcome: Counter]
    private let derivations: Counter
    private let timers: [Stage: Timer]
    private let memoryBytes: Gauge
    private let published = Locked<[Int]>([])
    private let operations = Atomic<Int>(0)

    package init(cache name: String) {
        let cache = ("cache", name)
        func counter(
            _ label: String, level: String? = nil, _ count: @escaping @Sendable (Snapshot) -> Int
        ) -> (counter: Counter, count: @Sendable (Snapshot) -> Int) {
            let dimensions = level.map { [cache, ("level", $0)] } ?? [cache]
            return (Counter(label: "vitrine.cache." + label, dimensions: dimensions), count)
        }
        counters = [
            counter("hits", level: "memory") { $0.memory.hits },
            counter("misses", level: "memory") { $0.memory.misses },
            counter("insertions", level: "memory") { $0.memory.insertions },
            counter("evictions", level: "memory") { $0.memory.evictions },
            counter("expirations", level: "memory") { $0.memory.expirations },
            counter("refusals", level: "memory") { $0.memory.refusals },
            counter("hits", level: "disk") { $0.disk.hits },
            counter("misses", level: "disk") { $0.disk.misses },
            counter("insertions", level: "disk") { $0.disk.insertions },
            counter("evictions", level: "disk") { $0.disk.evictions },
            counter("expirations", level: "disk") { $0.disk.expirations },
            counter("refusals", level: "disk") { $0.disk.refusals },
            counter("bytes.written") { $0.disk.insertedBytes },
            counter("bytes.evicted") { $0.disk.evictedBytes },
            counter("damaged") { $0.disk.damaged },
            counter("dropped") { $0.disk.dropped },
        ]
        var outcomes: [Outcome: Counter] = [:]
        for outcome in Outcome.allCases {
            outcomes[outcome] = Counter(
                label: "vitrine.cache.loads", dimensions: [cache, ("outcome", outcome.rawValue)])
        }
        self.outcomes = outcomes
        derivations = Counter(label: "vitrine.cache.derivations", dimensions: [cache])
        var timers: [Stage: Timer] = [:]
        for stage in Stage.allCases {
            timers[stage] = Timer(label: "vitrine.cache.latency", dimensions: [cache, ("stage", stage.rawValue)])
        }
        self.timers = timers
        memoryBytes = Gauge(label: "vitrine.cache.memory.bytes", dimensions: [cache])
    }

    /// Counts a load.
    package func count(_ outcome: Outcome) { outcomes[outcome]?.increment() }

    /// Counts a value that was made from a stored one.
    package func countDerivation() { derivations.increment() }

    /// Measures an operation.
    package func measure<T, E: Error>(
        _ stage: Stage, _ operation: () async throws(E) -> T
    ) async throws(E) -> T {
        let start = ContinuousClock.now
        defer { record(stage, since: start) }
        return try await operation()
    }

    /// Records an operation that ends now.
    func record(_ stage: Stage, since start: ContinuousClock.Instant) {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        timers[stage]?.recordNanoseconds(seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
    }

    /// Whether counters are due: every 64th call.
    package var isDue: Bool { operations.wrappingAdd(1, ordering: .relaxed).newValue % 64 == 0 }

    /// Brings the counters up to date.
    package func publish(_ snapshot: Snapshot) {
        let counts = counters.map { $0.count(snapshot) }
        let differences = published.withLock { published in
            defer { published = counts }
            return counts.indices.map { counts[$0] - (published.isEmpty ? 0 : published[$0]) }
        }
        for (entry, difference) in zip(counters, differences) where difference > 0 {
            entry.counter.increment(by: difference)
        }
        memoryBytes.record(snapshot.memoryBytes)
    }
}

extension MemoryCacheStatistics {
    /// Adds another level's counts.
    mutating func add(_ other: MemoryCacheStatistics) {
        hits += other.hits
        misses += other.misses
        weakHits += other.weakHits
        insertions += other.insertions
        evictions += other.evictions
        refusals += other.refusals
        expirations += other.expirations
    }
}
