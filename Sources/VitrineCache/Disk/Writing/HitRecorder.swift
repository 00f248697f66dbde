import VitrineCore

/// Collects accesses to entries in memory, so that reads never write.
///
/// Writing an access costs more than the read, because each dirties another page of the table. So they are written when
/// they are many or old, and only when the count of an entry has doubled. The count saturates at 15: at most 4 writes
/// instead of 14. Eviction asks the recorder before it uses a stored count. In the least-recently-used order, which
/// exists only in the table, they are written with each batch.
final class HitRecorder: Sendable {
    /// Uses of one entry since the last writing.
    struct Hit {
        var count: Int64
        /// When it was last used, in nanoseconds since 1970.
        var used: Int64
        /// Orders last uses for the least-recently-used order.
        var sequence: Int
    }

    /// Hits of so many entries are written without waiting any longer: about 2 MB.
    static let countLimit = 32_768
    /// So many nanoseconds after the first one they are written as well.
    static let ageLimit: Int64 = 30_000_000_000
    /// A last use is written again when the stored one is older, in nanoseconds.
    static let useInterval: Int64 = 60_000_000_000

    private struct State {
        var hits: [Int64: Hit] = [:]
        var sequence = 0
        var oldest: Int64 = 0
        /// Whether anything is worth writing for its age.
        var isWorthWriting = false
        var isDue = false
    }

    private let state = Locked(State())

    /// Records an access.
    ///
    /// - Parameters:
    ///   - stored: The stored count.
    ///   - used: The stored last access, in nanoseconds since 1970.
    ///   - now: Nanoseconds since 1970.
    /// - Returns: Whether the collected accesses are to be written now; true once until they are taken.
    func record(_ id: Int64, stored: Int, used: Int64, now: Int64) -> Bool {
        state.withLock { state in
            state.sequence &+= 1
            let sequence = state.sequence
            let count = Self.add(
                &state.hits[id, default: Hit(count: 0, used: now, sequence: sequence)], now: now, sequence: sequence)
            if !state.isWorthWriting, count >= stored || now &- used > Self.useInterval {
                state.isWorthWriting = true
                state.oldest = now
            }
            guard !state.isDue else { return false }
            let isOld = state.isWorthWriting && (now &- state.oldest > Self.ageLimit || now < state.oldest)
            state.isDue = isOld || state.hits.count >= Self.countLimit
            return state.isDue
        }
    }

    private static func add(_ hit: inout Hit, now: Int64, sequence: Int) -> Int64 {
        hit.count &+= 1
        hit.used = now
        hit.sequence = sequence
        return hit.count
    }

    /// Whether the collected accesses are to be written now.
    var isDue: Bool { state.withLock { $0.isDue } }

    /// Takes the collected accesses.
    func take() -> [Int64: Hit] {
        state.withLock { state in
            let hits = state.hits
            state.hits = [:]
            state.isWorthWriting = false
            state.isDue = false
            return hits
        }
    }

    /// When an entry was last used, as far as that is not written, in nanoseconds since 1970.
    func lastUse(of id: Int64) -> Int64? {
        state.withLock { $0.hits.isEmpty ? nil : $0.hits[id]?.used }
    }

    /// Takes the uses of one entry.
    func take(_ id: Int64) -> Hit? {
        state.withLock { $0.hits.isEmpty ? nil : $0.hits.removeValue(forKey: id) }
    }

    /// Discards the collected accesses, or those of some entries.
    func drop(_ ids: ClosedRange<Int64>? = nil) {
        guard let ids else { return _ = take() }
        state.withLock { state in state.hits = state.hits.filter { !ids.contains($0.key) } }
    }
}
