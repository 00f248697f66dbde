import VitrineCore

/// Takes the requests of one group through a pipeline: asks the group, from one thread at a time, whenever one has
/// ended.
final class GroupRun: Sendable {
    private struct State {
        var isRunning = false
        var mustLookAgain = false
        var ended: [ImageTask] = []
    }

    private let group: any ImageTaskGroup
    private let pipeline: ImagePipeline
    private let state = Locked(State())

    init(_ group: any ImageTaskGroup, _ pipeline: ImagePipeline) {
        self.group = group
        self.pipeline = pipeline
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
            for task in ended { group.taskDidEnd(task) }
            for task in group.nextTasks() { start(task) }
        }
    }

    private func next() -> [ImageTask]? {
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

    private func start(_ task: ImageTask) {
        _ = task.joinGroup()
        if task.begin(in: pipeline, byGroup: true) { pipeline.admit(task) }
        task.observeEnd { [self] in
            state.withLock { $0.ended.append(task) }
            proceed()
        }
    }
}
