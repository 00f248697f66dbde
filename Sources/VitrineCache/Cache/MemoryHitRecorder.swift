import VitrineCore

/// What a memory hit does to the entry on disk (R37).
public enum MemoryHitPolicy: Sendable, Hashable {
    /// Nothing. Eviction and audits on disk then see uses only that memory did not serve.
    case leaveDisk
    /// Its last access is refreshed, in batches of up to 256 uses. The default: an audit by last access must not
    /// remove what is used most.
    case refreshLastAccess
    /// The last access is refreshed, and an entry that is missing on disk is written again, one check per batch.
    case restoreMissing
}

/// Collects memory hits, so that the disk level hears of them in batches (R37): without it the entries that are used
/// most, which memory serves, would look unused to eviction and audits on disk.
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

    /// What has been collected so far.
    package func take() -> [MemoryKey] {
        state.withLock { hits in
            defer { hits = [] }
            return hits
        }
    }
}
