import VitrineCore

/// Adds up the sizes of a cache's formats as they change (R58).
package final class SizeBoard: Sendable {
    private struct Entry {
        let disk: DiskCache
        var size: ByteCount?
        var task: Task<Void, Never>?
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        var nextID = 0
        var listeners: [Int: AsyncStream<ByteCount?>.Continuation] = [:]

        /// nil until all are known.
        var total: ByteCount? {
            var total = ByteCount.zero
            for entry in entries.values {
                guard let size = entry.size else { return nil }
                total += size
            }
            return total
        }
    }

    private let state = Locked(State())

    package init() {}

    deinit {
        let (tasks, listeners) = state.withLock { state in
            (state.entries.values.compactMap(\.task), Array(state.listeners.values))
        }
        for task in tasks { task.cancel() }
        for listener in listeners { listener.finish() }
    }

    /// Counts a format in.
    package func add(_ id: Int, _ disk: DiskCache) {
        state.withLock { state in
            state.entries[id] = Entry(disk: disk)
            if !state.listeners.isEmpty { state.entries[id]?.task = follow(id, disk) }
        }
    }

    /// Counts a format out.
    package func remove(_ id: Int) {
        let entry = state.withLock { state in
            let entry = state.entries.removeValue(forKey: id)
            Self.tell(state)
            return entry
        }
        entry?.task?.cancel()
    }

    /// The total whenever it changes, beginning with what is known now.
    package func updates() -> AsyncStream<ByteCount?> {
        let (stream, continuation) = AsyncStream.makeStream(of: ByteCount?.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { state in
            let id = state.nextID
            state.nextID += 1
            state.listeners[id] = continuation
            continuation.yield(state.total)
            continuation.onTermination = { [weak self] _ in self?.forget(id) }
            for (id, entry) in state.entries where entry.task == nil {
                state.entries[id]?.task = follow(id, entry.disk)
            }
        }
        return stream
    }

    private func follow(_ id: Int, _ disk: DiskCache) -> Task<Void, Never> {
        let updates = disk.sizeUpdates
        return Task { [weak self] in
            for await size in updates {
                guard let self, !Task.isCancelled else { return }
                self.set(size, id)
            }
        }
    }

    private func set(_ size: ByteCount?, _ id: Int) {
        state.withLock { state in
            guard state.entries[id] != nil, state.entries[id]?.size != size else { return }
            state.entries[id]?.size = size
            Self.tell(state)
        }
    }

    private static func tell(_ state: State) {
        let total = state.total
        for listener in state.listeners.values { listener.yield(total) }
    }

    private func forget(_ id: Int) {
        let tasks = state.withLock { state -> [Task<Void, Never>] in
            state.listeners[id] = nil
            guard state.listeners.isEmpty else { return [] }
            // Nobody listens: sizes are not followed, and not known any more.
            let tasks = state.entries.values.compactMap(\.task)
            for id in state.entries.keys {
                state.entries[id]?.task = nil
                state.entries[id]?.size = nil
            }
            return tasks
        }
        for task in tasks { task.cancel() }
    }
}
