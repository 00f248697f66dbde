import VitrineCore
public import VitrineImaging

extension ThumbnailService {
    /// Puts thumbnails on disk before anybody wants to see them (R107).
    ///
    /// In the order of the sources, at the lowest priority and a few at a time. What is on disk is passed over, what is
    /// in memory only is written. A request for the same thumbnail joins the work and makes it as urgent as itself.
    /// Where the service does not use the disk there is nothing to do, and all are passed over.
    ///
    /// - Parameters:
    ///   - sources: What the thumbnails are made from.
    ///   - size: The box, in points.
    ///   - scale: Pixels for each point.
    ///   - mode: How pictures are brought to the box.
    ///   - allowsUpscaling: Whether they may grow.
    /// - Returns: A handle to watch and to stop it; it goes on without.
    @discardableResult
    public func precache(
        _ sources: some Sequence<any ThumbnailSource>, size: PixelSize, scale: Double = 1,
        mode: ImageResizer.Mode = .aspectFit, allowsUpscaling: Bool = true
    ) -> Precaching {
        let sources = Array(sources)
        let precaching = Precaching(total: sources.count)
        let width = 2 * configuration.concurrency
        let task = Task { [self] in
            await withTaskGroup(of: Void.self) { group in
                for (index, source) in sources.enumerated() {
                    if index >= width { await group.next() }
                    guard !Task.isCancelled else { return }
                    let request = ThumbnailRequest(
                        source, size: size, scale: scale, mode: mode, allowsUpscaling: allowsUpscaling)
                    group.addTask { await self.precache(request, for: precaching) }
                }
            }
        }
        precaching.cancellation.onCancel { task.cancel() }
        return precaching
    }

    private func precache(_ request: ThumbnailRequest, for precaching: Precaching) async {
        guard configuration.usesDiskCache else { return precaching.update { $0.skipped += 1 } }
        let ticket = PrecacheTicket()
        do {
            let identity = try await identity(of: request.source)
            if let error = request.invalidity(identity) { throw error }
            join(ticket, request.source, identity, request.spec)
            let made = try await ticket.made.wait()
            precaching.update { progress in
                if made.origin == .disk { progress.skipped += 1 } else { progress.made += 1 }
            }
        } catch is CancellationError {
            leave(ticket)
        } catch {
            precaching.update { $0.failed += 1 }
        }
    }
}

/// A precaching's interest in one thumbnail.
private final class PrecacheTicket: ThumbnailSubscriber {
    let made = PendingValue<Made>()

    var queuePriority: Priority { .veryLow }
    var executionPriority: ExecutionPriority { .background }
    var cacheOptions: ThumbnailCacheOptions { .disk }
    var wantsImage: Bool { false }

    func markRunning() {}

    func jobDidEnd(_ result: Result<Made, ThumbnailError>) {
        made.settle(result.mapError { $0 })
    }
}
