import VitrineCore

/// Keeps downloads going: held by a manager, all its handles and all who follow them. When the last of them goes,
/// what this process does stops.
final class BackendLease: Sendable {
    let backend: any DownloadBackend
    private let poster = Locked<Task<Void, Never>?>(nil)

    init(_ backend: any DownloadBackend) {
        self.backend = backend
        let board = backend.board
        let task = Task { [weak self] in
            let reference = WeakLease(lease: self)
            await NotificationPoster.run(board) { reference.lease }
        }
        poster.withLock { $0 = task }
    }

    deinit {
        poster.withLock { $0 }?.cancel()
        backend.shutDown()
    }
}

/// A reference that keeps nothing going.
private struct WeakLease: Sendable {
    weak let lease: BackendLease?
}
