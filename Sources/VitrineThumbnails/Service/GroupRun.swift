import VitrineCore

/// Takes the requests of one group through a service: asks the group, from one thread at a time, whenever one has
/// ended.
final class GroupRun: Sendable {
    private struct State {
        var isRunning = false
        var mustLookAgain = false
        var ended: [ThumbnailRequest] = []
    }

    private let group: any ThumbnailGroup
    private let service: ThumbnailService
    private let state = Locked(State())

    init(_ group: any ThumbnailGroup, _ service: ThumbnailService) {
        self.group = group
        self.service = service
    }

    /// Goes on. A long line of requests that end within their enqueueing is a loop here, never a recursion.
    func proceed() {
        let isMine = state.withLock { state in
            state.mustLookAgain = true
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard isMine else { return }
        while let ended = next() {
            for request in ended { group.requestDidEnd(request) }
            for request in group.nextRequests() { enqueue(request) }
        }
    }

    private func next() -> [ThumbnailRequest]? {
        state.withLock { state in
            guard state.mustLookAgain else {
                state.isRunning = false
                return nil
            }
            state.mustLookAgain = false
            defer { state.ended = [] }
            return state.ended
        }
    }

    private func enqueue(_ request: ThumbnailRequest) {
        _ = request.joinGroup()
        if request.begin(in: service, byGroup: true) { service.admit(request) }
        request.observeEnd { [self] in
            state.withLock { $0.ended.append(request) }
            proceed()
        }
    }
}
