/// Keeps an engine going: held by its manager and by all handles. When the last of them goes, everything stops.
final class EngineLease: Sendable {
    let engine: DownloadEngine

    init(_ configuration: DownloadManager.Configuration) {
        engine = DownloadEngine(configuration)
        engine.lease.withLock { $0 = WeakLease(lease: self) }
    }

    deinit { engine.shutDown() }
}

/// The engine's own reference.
struct WeakLease: Sendable {
    weak let lease: EngineLease?
}
