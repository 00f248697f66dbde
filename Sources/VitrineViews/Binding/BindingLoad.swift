import VitrineCore
import VitrineImaging
import VitrinePipeline

/// The requests of a binding or a lazy image, and their pipeline.
struct BindingContent {
    /// Best first; at least one.
    let requests: [ImageRequest]
    let pipeline: ImagePipeline

    /// The requests at the size of a target.
    struct Sized {
        let requests: [ImageRequest]
        let pipeline: ImagePipeline

        var sizes: [ImageResizer] { requests.map(\.size) }

        /// Identifies the images; nil if a source has no identity that is known without a look at a file.
        var identity: ContentIdentity? {
            var keys: [CacheKey] = []
            for request in requests {
                guard let key = request.viewIdentity else { return nil }
                keys.append(key)
            }
            return ContentIdentity(pipeline: ObjectIdentifier(pipeline), keys: keys)
        }

        /// Whether both are known to give the same image.
        @MainActor
        func isSame(as other: Sized?) -> Bool {
            guard let other, let identity else { return false }
            return identity == other.identity
        }

        /// The best image in memory, and its place among the requests. Never blocks.
        func inMemory() -> (image: Image, index: Int)? {
            for (index, request) in requests.enumerated() {
                if let image = pipeline.cachedImage(for: request) { return (image, index) }
            }
            return nil
        }
    }

    /// Gives requests without a size that of a target.
    func sized(for geometry: TargetGeometry?) -> Sized {
        let sized = requests.map { request in
            guard request.size.mode == .none, let geometry else { return request }
            var request = request
            request.size = geometry.resizer
            return request
        }
        return Sized(requests: sized, pipeline: pipeline)
    }
}

/// Distinguishes the contents of targets.
struct ContentIdentity: Hashable, Sendable {
    let pipeline: ObjectIdentifier
    let keys: [CacheKey]
}

/// The loading of one content, which ends when this is deallocated.
@MainActor
final class BindingLoad {
    /// A result that a load reports.
    enum Step: Sendable {
        /// A preview or an alternative.
        case interim(Image)
        case done(Result<Image, any Error>)
    }

    private let task: ImageTask
    private let alternatives: Task<Void, Never>?

    /// Starts to load. Reports on the main actor, also before this returns.
    ///
    /// - Parameter shownIndex: The alternative that the target shows already; nil for none.
    init(
        _ content: BindingContent.Sized, shownIndex: Int?, priority: Priority,
        report: @escaping @MainActor @Sendable (Step) -> Void
    ) {
        var best = content.requests[0]
        best.priority = priority
        let task = ImageTask(best)
        self.task = task
        let showsAlternative = Locked(shownIndex != nil)
        task.onPreview { image in
            // A complete image is better than a preview.
            if !showsAlternative.withLock({ $0 }) { report(.interim(image)) }
        }
        task.onImage { report(.done($0.mapError { $0 })) }
        content.pipeline.start(task)
        let others = content.requests[..<(shownIndex ?? content.requests.count)].dropFirst()
        guard !others.isEmpty, !task.state.isFinal else {
            alternatives = nil
            return
        }
        let pipeline = content.pipeline
        alternatives = Task { @MainActor in
            for var other in others {
                other.priority = priority
                guard await pipeline.contains(other), let image = try? await pipeline.image(for: other) else { continue }
                guard !Task.isCancelled, !task.state.isFinal else { return }
                showsAlternative.withLock { $0 = true }
                return report(.interim(image))
            }
        }
    }

    deinit {
        task.cancel()
        alternatives?.cancel()
    }

    func setPriority(_ priority: Priority) { task.priority = priority }
}
