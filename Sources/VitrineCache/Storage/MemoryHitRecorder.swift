import VitrineCore

/// Collects memory hits and reports them to the disk level in batches. Without this, the entries used most would look
/// unused to eviction and audits on disk, because memory serves them.
@usableFromInline
package final class MemoryHitRecorder: Sendable {
    /// How many hits are collected at most.
    package static let limit = 256

    private let state = Locked<[MemoryKey]>([])

    package init() {}

    /// Records a hit.
    ///
    /// - Returns: A full batch, now and then, which the caller passes on.
    @usableFromInline
    package func record(_ slot: MemoryKey) -> [MemoryKey]? {
        state.withLock { hits -> [MemoryKey]? in
            // The same entry twice in a row is one use.
            if let last = hits.last, last == slot { return nil }
            if hits.capacity < Self.limit { hits.reserveCapacity(Self.limit) }
            hits.append(slot)
            guard hits.count >= Self.limit else { return nil }
            defer { hits = [] }
            return hits
        }
    }

    /// Returns the hits collected so far.
    package func take() -> [MemoryKey] {
        state.withLock { hits in
            defer { hits = [] }
            return hits
        }
    }
}
