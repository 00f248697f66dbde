import VitrineCache
import VitrineCore
import VitrineImaging

/// A running prefetch, which stores images on disk before they are needed: reports progress, and cancels.
public final class PrefetchTask: Sendable {
    /// The progress of a prefetch.
    public struct Progress: Sendable, Hashable {
        /// The number of requests.
        public let total: Int
        /// The number of images that were made and stored.
        public var made = 0
        /// The number of images that were on disk already.
        public var skipped = 0
        /// The number of requests that failed.
        public var failed = 0

        /// The number of requests that have ended.
        public var completed: Int { made + skipped + failed }
    }

    private struct State {
        var progress: Progress
        var isEnded = false
        var streams: [AsyncStream<Progress>.Continuation] = []
    }

    private let state: Locked<State>
    let cancellation = CancellationToken()

    init(total: Int) {
        state = Locked(State(progress: Progress(total: total)))
        if total == 0 { end() }
    }

    /// The present progress.
    package var current: Progress { state.withLock { $0.progress } }

    /// The progress, beginning with the present one. The sequence ends with the prefetch. An iteration that begins
    /// later gets the last progress, and a slow one skips some.
    public var progress: AsyncStream<Progress> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let isEnded = state.withLock { state in
                continuation.yield(state.progress)
                if !state.isEnded { state.streams.append(continuation) }
                return state.isEnded
            }
            if isEnded { continuation.finish() }
        }
    }

    /// The last progress, once the prefetch has ended or was cancelled.
    public var finished: Progress {
        get async {
            for await _ in progress {}
            return current
        }
    }

    /// Cancels the prefetch. Running work stops unless a task needs it.
    public func cancel() {
        cancellation.cancel()
        end()
    }

    // MARK: Calls of the pipeline

    func update(_ change: (inout Progress) -> Void) {
        let isLast = state.withLock { state in
            guard !state.isEnded else { return false }
            change(&state.progress)
            for stream in state.streams { stream.yield(state.progress) }
            return state.progress.completed == state.progress.total
        }
        if isLast { end() }
    }

    private func end() {
        let streams = state.withLock { state in
            state.isEnded = true
            defer { state.streams = [] }
            return state.streams
        }
        for stream in streams { stream.finish() }
    }
}

extension ImagePipeline {
    /// Makes images before they are wanted, and keeps them on disk.
    ///
    /// The requests are served in their order, at the lowest priority and a few at a time. Images that are on disk are
    /// skipped; those that are only in memory are written. A task for the same image joins the work and raises its
    /// priority. A pipeline that does not use the disk skips all.
    ///
    /// - Returns: A handle that reports progress and cancels. The work continues without it.
    @discardableResult
    public func prefetch(_ requests: some Sequence<ImageRequest>) -> PrefetchTask {
        let requests = Array(requests)
        let prefetch = PrefetchTask(total: requests.count)
        let width = 2 * configuration.concurrency
        let task = Task { [self] in
            await withTaskGroup(of: Void.self) { group in
                for (index, request) in requests.enumerated() {
                    if index >= width { await group.next() }
                    guard !Task.isCancelled else { return }
                    group.addTask { await self.prefetch(request, for: prefetch) }
                }
            }
        }
        prefetch.cancellation.onCancel { task.cancel() }
        return prefetch
    }

    private func prefetch(_ request: ImageRequest, for prefetch: PrefetchTask) async {
        guard configuration.usesDiskCache else { return prefetch.update { $0.skipped += 1 } }
        let subscriber = PrefetchSubscriber()
        do {
            let identity = try await caller.identity(of: request.source)
            if let error = request.invalidity(identity) { throw error }
            let spec = request.spec
            join(subscriber, source: request.source, identity: identity, spec: spec, key: spec.key(for: identity))
            let made = try await subscriber.made.cancellableValue().get()
            prefetch.update { progress in
                if made.origin == .disk { progress.skipped += 1 } else { progress.made += 1 }
            }
        } catch is CancellationError {
            leave(subscriber)
        } catch {
            prefetch.update { $0.failed += 1 }
        }
    }
}

/// Subscribes a prefetch to one image.
private final class PrefetchSubscriber: JobSubscriber {
    let made = AsyncPromise<Result<Made, any Error>>()

    var priority: RequestPriority { .veryLow }
    var executionPriority: RequestPriority { .veryLow }
    var cacheLevels: CacheLevels { .disk }
    var wantsImage: Bool { false }
    var isProgressive: Bool { false }
    var wantsPreviews: Bool { false }

    func markRunning() {}

    func previewDidArrive(_ preview: JobPreview) {}

    func jobDidEnd(_ result: Result<Made, ImagePipelineError>) {
        made.fulfill(result.mapError { $0 })
    }
}
