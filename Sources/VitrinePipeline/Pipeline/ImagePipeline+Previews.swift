import VitrineCore
import VitrineImaging
import VitrineNetwork

/// Previews of URLs while they are transferred.
extension ImagePipeline {
    /// Transfers of more bytes get no previews from there on, as the bytes are kept for them.
    static let previewedBytes = 32 << 20

    /// Starts the previews of a task's job, unless they have been started.
    func startPreviews(of task: ImageTask) {
        guard let id = state.withLock({ $0.scheduler.job(of: task) }) else { return }
        startPreviews(ofJob: id)
    }

    /// Starts the previews of a job, if they are requested and possible and have not been started.
    func startPreviews(ofJob id: Int) {
        guard let previews = change({ scheduler, _ in scheduler.beginPreviews(of: id) }) else { return }
        let task = Task {
            do {
                try await makePreviews(previews)
            } catch {
                // Damage is reported by the decode of the whole.
                log.debug("No more previews of \(previews.source): \(error)")
            }
        }
        previews.cancellation.onCancel { task.cancel() }
    }

    /// Decodes the bytes received so far whenever they give a better image than before.
    private func makePreviews(_ previews: RequestScheduler.Previews) async throws {
        let render = previews.spec.render(limits: configuration.limits, cancellation: previews.cancellation)
        var position = ArrivingBytes.Position()
        var arrival: ImageArrival?
        while let (bytes, end) = await previews.arriving.bytes(after: position) {
            if end.attempt != position.attempt { arrival = nil }
            position = end
            var current = arrival ?? ImageArrival(
                decoder: ImageDecoder(limits: render.limits), name: previews.source, resizer: render.resizer,
                cancellation: previews.cancellation)
            arrival = nil
            try await current.append(bytes)
            while let image = try await preview(&current, previews) {
                guard let (preview, subscribers) = change({ scheduler, _ in scheduler.setPreview(image, of: previews) }) else {
                    return
                }
                for subscriber in subscribers { subscriber.previewDidArrive(preview) }
            }
            // No preview will follow, whatever the size: the bytes need not be kept.
            if current.isFinished { return previews.arriving.end() }
            arrival = current
        }
    }

    private func preview(_ arrival: inout ImageArrival, _ previews: RequestScheduler.Previews) async throws -> PixelImage? {
        let next = try await previewing.run(following: previews.priority) { try await arrival.next() }
        guard let image = next?.image else { return nil }
        let processors = previews.spec.processors
        guard !processors.isEmpty else { return image }
        return try await BlockingExecutor.shared.run { () throws(ImageError) in try image.processed(by: processors) }
    }
}
