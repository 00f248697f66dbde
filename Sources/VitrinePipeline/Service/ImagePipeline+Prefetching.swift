import VitrineCache
import VitrineCore
import VitrineImaging

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
            let identity = try await identity(of: request.source)
            if let error = request.invalidity(identity) { throw error }
            join(subscriber, request.source, identity, request.spec)
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
    let made = Promise<Result<Made, any Error>>()

    var priority: Priority { .veryLow }
    var executionPriority: ExecutionPriority { .background }
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
