import VitrineCore

/// Tells whoever listens what the cache's size is.
final class SizeBroadcast: Sendable {
    private struct State {
        var size: Int?
        var nextID = 0
        var listeners: [Int: AsyncStream<ByteCount?>.Continuation] = [:]
    }

    private let state = Locked(State())

    deinit {
        for listener in state.withLock({ $0.listeners.values.map { $0 } }) { listener.finish() }
    }

    /// A stream that begins with what is known.
    func stream() -> AsyncStream<ByteCount?> {
        let (stream, continuation) = AsyncStream.makeStream(of: ByteCount?.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { state in
            let id = state.nextID
            state.nextID += 1
            state.listeners[id] = continuation
            continuation.yield(state.size.map { ByteCount($0) })
            continuation.onTermination = { [weak self] _ in
                self?.remove(id)
            }
        }
        return stream
    }

    private func remove(_ id: Int) { state.withLock { _ = $0.listeners.removeValue(forKey: id) } }

    /// Whether the size is known.
    var isKnown: Bool { state.withLock { $0.size != nil } }

    /// Tells a size, if it is news.
    func send(_ size: Int) {
        state.withLock { state in
            guard state.size != size else { return }
            state.size = size
            for listener in state.listeners.values { listener.yield(ByteCount(size)) }
        }
    }
}
