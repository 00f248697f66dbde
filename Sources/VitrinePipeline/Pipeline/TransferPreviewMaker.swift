import Logging
import VitrineCore
import VitrineImaging
import VitrineNetwork

/// Makes previews of URLs while they are transferred.
final class TransferPreviewMaker: Sendable {
    /// Transfers of more bytes get no previews from there on, as the bytes are kept for them.
    static let maximumBytes = 32 << 20

    /// Decodes of previews. Few at a time: images go first.
    let queue = WorkQueue(limit: 2)
    private let limits: ImageLimits
    private let log: Logger

    init(limits: ImageLimits, log: Logger) {
        self.limits = limits
        self.log = log
    }

    /// Decodes the bytes received so far whenever they give a better image than before, in a task that ends with the
    /// cancellation of the previews.
    ///
    /// - Parameter deliver: Receives each preview; returns whether another is wanted.
    func start(_ previews: RequestScheduler.Previews, deliver: @escaping @Sendable (PixelImage) -> Bool) {
        let task = Task {
            do {
                try await make(previews, deliver: deliver)
            } catch {
                // Damage is reported by the decode of the whole.
                log.debug("No more previews of \(previews.source): \(error)")
            }
        }
        previews.cancellation.onCancel { task.cancel() }
    }

    private func make(_ previews: RequestScheduler.Previews, deliver: (PixelImage) -> Bool) async throws {
        let render = previews.spec.render(limits: limits, cancellation: previews.cancellation)
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
                guard deliver(image) else { return }
            }
            // No preview will follow, whatever the size: the bytes need not be kept.
            if current.isFinished { return previews.arriving.end() }
            arrival = current
        }
    }

    private func preview(
        _ arrival: inout ImageArrival, _ previews: RequestScheduler.Previews
    ) async throws -> PixelImage? {
        let next = try await queue.run(following: previews.priority) { try await arrival.next() }
        guard let image = next?.image else { return nil }
        let processors = previews.spec.processors
        guard !processors.isEmpty else { return image }
        return try await BlockingExecutor.shared.run { () throws(ImageError) in try image.processed(by: processors) }
    }
}
