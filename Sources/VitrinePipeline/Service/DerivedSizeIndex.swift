import VitrineCore

/// Which thumbnails of a source there are, so that a smaller one is made from a larger one instead of from the source.
///
/// It remembers the results that were stored or found, of the last few thousand sources, and the specifications used
/// last for any source. Results of an earlier run are looked up by these.
final class DerivedSizeIndex: Sendable {
    private struct State {
        var specs: [CacheKey: [ResultSpec]] = [:]
        var older: [CacheKey: [ResultSpec]] = [:]
        var recent: [ResultSpec] = []
    }

    /// Sources remembered before the older half is forgotten.
    private static let capacity = 4_096
    /// Rules of other sources that are tried on disk.
    private static let recentCount = 4

    private let state = Locked(State())

    /// A thumbnail was stored or found.
    func add(_ spec: ResultSpec, of identity: CacheKey) {
        state.withLock { state in
            if state.recent.first != spec {
                state.recent.removeAll { $0 == spec }
                state.recent.insert(spec, at: 0)
                if state.recent.count > Self.recentCount { state.recent.removeLast() }
            }
            var specs = state.specs[identity] ?? state.older[identity] ?? []
            guard !specs.contains(spec) || state.specs[identity] == nil else { return }
            if !specs.contains(spec) { specs.append(spec) }
            state.specs[identity] = specs
            guard state.specs.count >= Self.capacity else { return }
            state.older = state.specs
            state.specs = [:]
        }
    }

    /// The rules whose thumbnails of a source may serve one of `spec`, the smallest first: those known to exist, and
    /// those worth a look on disk.
    func candidates(
        for spec: ResultSpec, of identity: CacheKey
    ) -> (known: [ResultSpec], possible: [ResultSpec]) {
        let (specs, recent) = state.withLock {
            ($0.specs[identity] ?? $0.older[identity] ?? [], $0.recent)
        }
        func useful(_ specs: [ResultSpec]) -> [ResultSpec] {
            specs.filter { $0.mayServe(spec) && $0.isLarge(for: spec) }
                .sorted { $0.size.longestSide < $1.size.longestSide }
        }
        return (useful(specs), useful(recent.filter { !specs.contains($0) }))
    }

    /// Forgets everything: the caches were cleared.
    func removeAll() { state.withLock { $0 = State() } }
}
