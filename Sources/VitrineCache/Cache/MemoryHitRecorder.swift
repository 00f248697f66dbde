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

extension ValueCache {
    /// Reports the collected memory hits to the disk levels.
    func reportMemoryHits() {
        if let hits { reportHits(hits.take()) }
    }

    @usableFromInline
    func reportHits(_ slots: [MemoryKey]) {
        guard !slots.isEmpty else { return }
        let restores = configuration.memoryHits == .restoreMissing
        let areas = Dictionary(formats.all.map { ($0.id, $0) }) { first, _ in first }
        for slot in Set(slots) {
            guard let area = areas[slot.format] else { continue }
            area.disk.touch(slot.key)
            if restores { restore(slot, in: area) }
        }
        publishMetrics()
    }

    /// Writes an entry that memory has and the disk has not.
    private func restore(_ slot: MemoryKey, in area: FormatArea<Value>) {
        guard configuration.levels.contains(.writeDisk) else { return }
        configuration.executor.submit { [weak self] in
            guard let self, (try? area.disk.blocking.contains(slot.key)) == false else { return }
            let ticket = register.begin(slot)
            guard let (value, tags) = area.memory.peekTagged(slot) else { return }
            let life = area.format.timeToLive ?? configuration.timeToLive
            let put = try? area.disk.engine.put(
                encoded(value, area.format), in: area.disk.format, timeToLive: life, validator: [], tags: tags)
            if let put { _ = ticket.ifValid(tags) { area.pendingWrites.send(put, forKey: slot.key) } }
        }
    }
}
