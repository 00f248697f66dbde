import VitrineCore
import VitrineImaging

/// A source whose content may move: an animation or a video. Its methods block.
package protocol MovingSource: BlockingImageSource {
    /// Whether it may have an animation, as far as that is known without a look at a file. Does not block.
    var mayBeAnimated: Bool { get }

    /// Opens the animation; nil for a still image and for a video.
    ///
    /// - Parameters:
    ///   - request: The size of the frames.
    ///   - processors: Processors of each frame.
    func animation(_ request: RenderRequest, processors: [ImageProcessor]) throws -> AnimatedImage?

    /// Calls `take` with the frames of a short clip and the seconds that each is shown.
    ///
    /// - Parameters:
    ///   - clip: Length, rate and place of the clip.
    ///   - request: The size of the frames.
    /// - Returns: Whether there is a clip: not of a still image.
    func clip(
        _ clip: ClipSpec, request: RenderRequest, take: (PixelImage, Double) throws(ImageError) -> Void
    ) throws -> Bool
}

/// Length, rate and place of a clip.
package struct ClipSpec: Sendable, Hashable {
    package var seconds: Double
    package var framesPerSecond: Double
    package var isSpread: Bool

    package init(seconds: Double, framesPerSecond: Double, isSpread: Bool) {
        self.seconds = seconds
        self.framesPerSecond = framesPerSecond
        self.isSpread = isSpread
    }
}

extension ImageFileSource: MovingSource {
    package var mayBeAnimated: Bool {
        guard page == 1 else { return false }
        return switch input {
        case .file: true
        case .bytes(let bytes, _): ImageFormat.mayBeAnimated(bytes)
        case nil: false
        }
    }

    package func animation(_ request: RenderRequest, processors: [ImageProcessor]) throws -> AnimatedImage? {
        try opened(request, processors, budget: .shared)
    }

    /// The animation; nil for other content, and for one frame of an animation.
    private func opened(
        _ request: RenderRequest, _ processors: [ImageProcessor], budget: FrameBudget
    ) throws(ImagePipelineError) -> AnimatedImage? {
        guard let input, page == 1 else { return nil }
        do throws(ImageError) {
            return try AnimatedImage(
                input, at: resizer(request), processors: processors, decoder: decoder(request), budget: budget)
        } catch {
            if case .notAnImage = error { return nil }
            throw ImagePipelineError(error, source: name)
        }
    }

    package func clip(
        _ clip: ClipSpec, request: RenderRequest, take: (PixelImage, Double) throws(ImageError) -> Void
    ) throws -> Bool {
        // Each frame is needed once.
        if let animation = try opened(request, [], budget: FrameBudget(capacity: 0)) {
            try animation.clip(clip, cancellation: request.cancellation, take)
            return true
        }
        guard let other = otherKind as? any MovingSource else { return false }
        return try other.clip(clip, request: request, take: take)
    }
}

extension AnimatedImage {
    /// Calls `take` with the frames that a clip shows, and their seconds. A clip that is not spread shows the beginning
    /// of the animation; one that is spread shows all of it, faster, if it is longer than the clip.
    fileprivate func clip(
        _ clip: ClipSpec, cancellation: CancellationToken, _ take: (PixelImage, Double) throws(ImageError) -> Void
    ) throws(ImageError) {
        for (frame, seconds) in timing.samples(clip) {
            try take(try decodeImage(at: frame, cancellation: cancellation), seconds)
        }
    }
}

extension AnimationTiming {
    /// The frames that are shown at the times of a clip, each once, and for how long.
    package func samples(_ clip: ClipSpec) -> [(frame: Int, seconds: Double)] {
        let length = min(clip.seconds, duration)
        let speed = clip.isSpread ? duration / length : 1
        let step = 1 / clip.framesPerSecond
        var samples: [(frame: Int, seconds: Double)] = []
        for index in 0..<max(1, Int((length / step).rounded(.up))) {
            let begin = Double(index) * step
            // Of two loops, only the first is looked at.
            let frame = begin == 0 ? 0 : position(at: min(begin * speed, duration.nextDown)).frame
            let seconds = min(step, length - begin)
            guard seconds > step / 100 else { break }
            if let last = samples.last, last.frame == frame {
                samples[samples.count - 1].seconds += seconds
            } else {
                samples.append((frame, seconds))
            }
        }
        return samples
    }
}

extension VideoFrameSource: MovingSource {
    package var mayBeAnimated: Bool { false }

    package func animation(_ request: RenderRequest, processors: [ImageProcessor]) -> AnimatedImage? { nil }

    package func clip(
        _ clip: ClipSpec, request: RenderRequest, take: (PixelImage, Double) throws(ImageError) -> Void
    ) throws -> Bool {
        let frames = try self.clip(clip, request)
        for index in 0..<frames.frameCount {
            if request.cancellation.isCancelled { throw ImagePipelineError.cancelled(source: input.name) }
            var image = frames.image(at: index)
            if case .crop = request.mode { image = try request.resizer.resize(image) }
            try take(image, frames.seconds[index])
        }
        return true
    }
}
