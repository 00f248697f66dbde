import Synchronization
import VitrineCore

/// Counts what a disk cache does. One lock: it is taken once per read and once per batch.
final class Counters: Sendable {
    private let counts = Locked(DiskCache.Statistics())
    private let hits = Atomic<Int>(0)
    private let misses = Atomic<Int>(0)

    func hit() { hits.wrappingAdd(1, ordering: .relaxed) }
    func miss() { misses.wrappingAdd(1, ordering: .relaxed) }

    func add(_ change: (inout DiskCache.Statistics) -> Void) { counts.withLock { change(&$0) } }

    var statistics: DiskCache.Statistics {
        var statistics = counts.withLock { $0 }
        statistics.hits = hits.load(ordering: .relaxed)
        statistics.misses = misses.load(ordering: .relaxed)
        return statistics
    }
}
