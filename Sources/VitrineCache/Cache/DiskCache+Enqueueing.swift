import VitrineCore

extension DiskCache {
    /// Queues a change if there is room now, without waiting.
    func tryEnqueue(_ operation: Operation, forKey key: CacheKey) -> Bool {
        switch engine.queue.add(operation, forKey: key) {
        case .full: return false
        case .queued: return true
        case .queuedFirst:
            engine.startDraining()
            return true
        }
    }

    /// Returns when there may be room for a change.
    func waitForRoom(for operation: Operation) async {
        await engine.queue.waitForRoom(for: operation)
    }
}
