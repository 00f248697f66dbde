import Synchronization
@_spi(HTTPCacheEngine) import VitrineNetwork

/// Responses in memory, by the identity of their URL.
final class ResponseStore: Sendable {
    struct Entry: Sendable {
        var head: StoredResponse
        let reason: String
        let body: [UInt8]
        /// Tells entries apart that have taken each other's place.
        let number: UInt64
    }

    private struct State {
        var entries: [String: [Entry]] = [:]
        var size = 0
        var count: UInt64 = 0
    }

    private let state = Mutex(State())
    private let capacity: Int

    /// - Parameter capacity: The most bytes of bodies. When there are more, everything goes.
    init(capacity: Int) { self.capacity = capacity }

    /// All under a URL.
    func entries(_ key: String) -> [Entry] { state.withLock { $0.entries[key] ?? [] } }

    /// Adds one.
    func add(_ head: StoredResponse, reason: String, body: [UInt8], key: String) {
        var head = head
        head.bodyLength = body.count
        state.withLock { [head] state in
            if state.size + body.count > capacity {
                state.entries = [:]
                state.size = 0
            }
            guard body.count <= capacity else { return }
            state.count += 1
            state.size += body.count
            state.entries[key, default: []].append(Entry(head: head, reason: reason, body: body, number: state.count))
        }
    }

    /// Gives some new heads and removes others, by their numbers.
    func change(_ key: String, refreshed: [UInt64: StoredResponse], removed: Set<UInt64>) {
        guard !refreshed.isEmpty || !removed.isEmpty else { return }
        state.withLock { state in
            let entries = state.entries[key] ?? []
            let kept = entries.filter { !removed.contains($0.number) }.map { entry in
                var entry = entry
                if let head = refreshed[entry.number] { entry.head = head }
                return entry
            }
            state.size -= entries.reduce(0) { $0 + $1.body.count } - kept.reduce(0) { $0 + $1.body.count }
            state.entries[key] = kept.isEmpty ? nil : kept
        }
    }

    /// Removes all under a URL.
    func removeAll(_ key: String) {
        state.withLock { state in
            state.size -= state.entries.removeValue(forKey: key)?.reduce(0) { $0 + $1.body.count } ?? 0
        }
    }
}
