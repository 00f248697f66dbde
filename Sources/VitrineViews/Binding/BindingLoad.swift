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
        /// One for each request, made once; nil for a source whose identity takes a look at a file.
        private let identities: [ImageRequest.ViewIdentity?]

        init(requests: [ImageRequest], pipeline: ImagePipeline) {
            self.requests = requests
            self.pipeline = pipeline
            identities = requests.map(\.viewIdentity)
        }

        var sizes: [ImageResizer] { requests.map(\.resizing) }

        /// Identifies the images; nil if a source has no identity that is known without a look at a file.
        var identity: ContentIdentity? {
            guard !identities.contains(nil) else { return nil }
            return ContentIdentity(pipeline: ObjectIdentifier(pipeline), images: identities)
        }

        /// Whether both are known to give the same image.
        func isSame(as other: Sized?) -> Bool {
            guard let other, pipeline === other.pipeline, identities == other.identities else { return false }
            return !identities.contains(nil)
        }

        /// An image in memory.
        struct Found {
            let image: PixelImage
            /// The place of its request among the others.
            let index: Int
            /// Whether it is certainly the image of the request. If not, its file was not looked at again.
            let isVerified: Bool
        }

        /// The best image in memory. Never blocks.
        func inMemory() -> Found? {
            for index in requests.indices {
                if let image = pipeline.cachedImage(for: requests[index], identities[index]) {
                    return Found(image: image, index: index, isVerified: true)
                }
                if case .image = identities[index] { continue }
                if let image = pipeline.rememberedImage(for: requests[index]) {
                    return Found(image: image, index: index, isVerified: false)
                }
            }
            return nil
        }
    }

    /// Gives requests without a size that of a target.
    func sized(for geometry: TargetGeometry?) -> Sized {
        guard let geometry else { return Sized(requests: requests, pipeline: pipeline) }
        var sized = requests
        for index in sized.indices where sized[index].resizing.mode == .none {
            sized[index].resizing = geometry.resizer
        }
        return Sized(requests: sized, pipeline: pipeline)
    }
}

/// Distinguishes the contents of targets.
struct ContentIdentity: Hashable, Sendable {
    let pipeline: ObjectIdentifier
    let images: [ImageRequest.ViewIdentity?]
}

/// The loading of one content, which ends when this is deallocated.
@MainActor
final class BindingLoad {
    /// A result that a load reports.
    enum Step: Sendable {
        /// A preview or an alternative.
        case interim(PixelImage)
        case done(Result<PixelImage, any Error>)
    }

    private let task: ImageTask
    private let alternatives: Task<Void, Never>?

    /// Starts to load. Reports on the main actor, also before this returns.
    ///
    /// - Parameter shownIndex: The alternative that the target shows already; nil for none.
    init(
        _ content: BindingContent.Sized, shownIndex: Int?, priority: RequestPriority,
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

    func setPriority(_ priority: RequestPriority) { task.priority = priority }
}
