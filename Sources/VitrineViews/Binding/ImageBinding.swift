import VitrineCache
public import VitrineCore
public import VitrineImaging
public import VitrinePipeline

/// Loads images for one target, and decides which image the target shows at which time.
///
/// ```swift
/// let binding = ImageBinding(picture)
/// binding.options.placeholder = tile
/// binding.set(ImageRequest(url), onFailure: { caption.text = "\($0)" })
/// ```
///
/// - **The latest request wins.** A new request cancels the previous one and drops its results. Setting the request
///   that is shown or being loaded changes nothing.
/// - **Memory hits appear at once.** An image in memory is shown before ``set(_:in:onSuccess:onFailure:)`` returns,
///   without a transition. Images that are loaded fade in. The image of a file is shown as it was at the last look at
///   the file; a new look, on another thread, then confirms it or loads the new one.
/// - **Animations play.** The frames of an animation follow its first one while the target is visible, unless it asks
///   for reduced motion. See ``ImageOptions/playsAnimations``.
/// - **The target is held weakly.** Nothing is loaded for a target that was deallocated. The target keeps its binding,
///   as a property or as an associated object.
@MainActor
public final class ImageBinding<Target: ImageTarget> {
    /// The state of the current request.
    public enum State {
        /// There is no request.
        case empty
        /// The image is being loaded.
        case loading
        /// The image is shown.
        case shown
        /// The request failed.
        case failed(any Error)
    }

    /// The request that is being loaded.
    private struct Wait {
        var load: BindingLoad?
        var onSuccess: (@MainActor (PixelImage) -> Void)?
        var onFailure: (@MainActor (any Error) -> Void)?
    }

    /// The target; nil after it was deallocated.
    public private(set) weak var target: Target?
    /// The options, which apply from the next request on.
    public var options = ImageOptions()
    /// The state of the current request.
    public private(set) var state = State.empty
    /// Whether the target is on the screen. Requests of invisible targets have a lower priority. Default: true.
    ///
    /// Animations play only while it is visible.
    public var isVisible = true {
        didSet {
            guard isVisible != oldValue else { return }
            wait.load?.setPriority(priority)
            if isVisible { play() } else { player?.pause() }
        }
    }
    /// The clock of animations.
    package var animationClock: any Clock<Duration> = ContinuousClock()

    private var content: BindingContent?
    private var sized: BindingContent.Sized?
    private var wait = Wait()
    /// The image of the current request, once it is shown.
    private var shown: PixelImage?
    /// The image that is shown for the current request until its file has been looked at.
    private var assumed: PixelImage?
    /// Plays the animation of the current request.
    private var player: AnimationPlayer?
    /// Finds out whether the shown image belongs to an animation.
    private var opening: Task<Void, Never>?
    /// Whether a load is just beginning: an image that it reports now was in memory.
    private var isStarting = false
    /// Counts the requests, so that results of an earlier one are recognized.
    private var number = 0

    /// Creates a binding, which holds its target weakly.
    public init(_ target: Target) { self.target = target }

    deinit { opening?.cancel() }

    private var priority: RequestPriority { isVisible ? options.priority : min(options.priority, .low) }

    /// Shows the image of a request, and its previews while it is loaded. A request without a size gets that of the
    /// target.
    ///
    /// - Parameters:
    ///   - request: The request; nil to show the placeholder, or no image.
    ///   - pipeline: The pipeline that loads the image. Default: the shared one.
    ///   - onSuccess: Called when the image is shown, before this returns if it is in memory; for a file, when a look at
    ///     it has confirmed the image. Not called if another request replaces this one.
    ///   - onFailure: Called if the request fails.
    public func set(
        _ request: ImageRequest?, in pipeline: ImagePipeline = .shared, onSuccess: (@MainActor (PixelImage) -> Void)? = nil,
        onFailure: (@MainActor (any Error) -> Void)? = nil
    ) {
        set(alternatives: request.map { [$0] } ?? [], in: pipeline, onSuccess: onSuccess, onFailure: onFailure)
    }

    /// Shows the image of a key, which a closure makes if no cache has it.
    ///
    /// ```swift
    /// binding.set(key: CacheKey("chart", month)) { try await drawChart(month) }
    /// ```
    ///
    /// The image is resized to the target and kept under the key. Other pixels need another key.
    ///
    /// - Parameters:
    ///   - key: Identifies the image in the caches.
    ///   - pipeline: The pipeline that keeps the image. Default: the shared one.
    ///   - onSuccess: Called when the image is shown, before this returns if it is in memory.
    ///   - onFailure: Called if the closure throws.
    ///   - make: Returns the image. It is called off the main actor, once for all targets that wait for the key.
    public func set(
        key: CacheKey, in pipeline: ImagePipeline = .shared, onSuccess: (@MainActor (PixelImage) -> Void)? = nil,
        onFailure: (@MainActor (any Error) -> Void)? = nil, make: @escaping @Sendable () async throws -> PixelImage
    ) {
        let request = ImageRequest(.fetcher(ValueFetcher(key: key, load: make)))
        set(request, in: pipeline, onSuccess: onSuccess, onFailure: onFailure)
    }

    /// Shows the image of the first request, and the best cached alternative while it is loaded.
    ///
    /// The pipeline loads only the first request. The others are looked up in memory and on disk, so they must have the
    /// size with which they were cached. An alternative stays if the first request fails.
    ///
    /// ```swift
    /// binding.set(alternatives: [ImageRequest(large), ImageRequest(small, resizing: .fit(200))])
    /// ```
    ///
    /// - Parameters:
    ///   - requests: Requests for images of one subject, best first; none to show the placeholder, or no image.
    ///   - pipeline: The pipeline that loads the image. Default: the shared one.
    ///   - onSuccess: Called when the image of the first request is shown.
    ///   - onFailure: Called if the first request fails.
    public func set(
        alternatives requests: [ImageRequest], in pipeline: ImagePipeline = .shared,
        onSuccess: (@MainActor (PixelImage) -> Void)? = nil, onFailure: (@MainActor (any Error) -> Void)? = nil
    ) {
        guard let target else { return cancel() }
        guard !requests.isEmpty else {
            cancel()
            target.show(options.placeholder, transition: .none)
            return
        }
        let content = BindingContent(requests: requests, pipeline: pipeline)
        let sized = content.sized(for: target.targetGeometry)
        switch state {
        case .loading where sized.isSame(as: self.sized):
            (wait.onSuccess, wait.onFailure) = (onSuccess, onFailure)
            return
        case .shown where sized.isSame(as: self.sized) && !hasOtherImage(sized):
            if let shown { onSuccess?(shown) }
            return
        default: break
        }
        begin(content, sized: sized, wait: Wait(onSuccess: onSuccess, onFailure: onFailure), in: target)
    }

    /// Shows an image that is already available, without a transition. Cancels the current request.
    public func show(_ image: PixelImage) {
        cancel()
        target?.show(image, transition: .none)
        (state, shown) = (.shown, image)
    }

    /// Loads the current request again if the size of the target has changed. The previous image stays until then.
    ///
    /// Requests with a size of their own do not depend on the target.
    public func targetSizeDidChange() {
        guard let target, let content, let before = sized else { return }
        let sized = content.sized(for: target.targetGeometry)
        guard sized.sizes != before.sizes else { return }
        begin(content, sized: sized, wait: wait, in: target, isOther: false)
    }

    /// Cancels the current request. The target keeps its image, and no closure is called.
    public func cancel() {
        number += 1
        (content, sized, shown, assumed, wait) = (nil, nil, nil, nil, Wait())
        stopPlaying()
        state = .empty
    }

    /// Prepares the target for reuse, as in a cell of a list: cancels the current request and removes the image.
    public func prepareForReuse() {
        cancel()
        target?.show(nil, transition: .none)
    }

    // MARK: Steps

    private func begin(
        _ content: BindingContent, sized: BindingContent.Sized, wait: Wait, in target: Target, isOther: Bool = true
    ) {
        number += 1
        (self.content, self.sized, shown, assumed, self.wait) = (content, sized, nil, nil, wait)
        stopPlaying()
        // The previous load ends here.
        self.wait.load = nil
        state = .loading
        let found = sized.inMemory()
        if let found {
            if found.index == 0, found.isVerified { return show(found.image, in: target, transition: .none) }
            if found.index == 0 { assumed = found.image }
            target.show(found.image, transition: .none)
        } else if isOther {
            if let placeholder = options.placeholder {
                target.show(placeholder, transition: .none)
            } else if !options.keepsPreviousImage {
                target.show(nil, transition: .none)
            }
        }
        let number = number
        isStarting = true
        let load = BindingLoad(sized, shownIndex: found?.index, priority: priority) { [weak self] step in
            self?.take(step, of: number)
        }
        isStarting = false
        // It may have ended already, or a closure may have set another request.
        if number == self.number, case .loading = state { self.wait.load = load }
    }

    private func take(_ step: BindingLoad.Step, of number: Int) {
        guard number == self.number else { return }
        guard let target else { return cancel() }
        let transition = isStarting ? .none : options.transition
        switch step {
        case .interim(let image): target.show(image, transition: transition)
        case .done(.success(let image)): show(image, in: target, transition: transition)
        case .done(.failure(let error)):
            state = .failed(error)
            let onFailure = wait.onFailure
            wait = Wait()
            // An image that could not be confirmed does not stay.
            if let image = options.failureImage ?? (assumed == nil ? nil : options.placeholder) {
                target.show(image, transition: .none)
            } else if assumed != nil {
                target.show(nil, transition: .none)
            }
            assumed = nil
            onFailure?(error)
        }
    }

    private func show(_ image: PixelImage, in target: Target, transition: ImageTransition) {
        // What is shown already stays without another transition.
        if assumed?.sharedPixels !== image.sharedPixels { target.show(image, transition: transition) }
        (state, shown, assumed) = (.shown, image, nil)
        let onSuccess = wait.onSuccess
        wait = Wait()
        openAnimation()
        onSuccess?(image)
    }

    // MARK: Animations

    /// Whether memory has another image for the request than the one that is shown, of which the target may show a later
    /// frame. Not if memory has evicted the image, or if the file was not looked at again.
    private func hasOtherImage(_ sized: BindingContent.Sized) -> Bool {
        guard let found = sized.inMemory(), found.isVerified else { return false }
        return found.index != 0 || found.image.sharedPixels !== shown?.sharedPixels
    }

    /// Whether an animation is playing.
    package var isPlaying: Bool { player?.isPlaying ?? false }

    /// Looks whether the request that is shown has further frames, and plays them.
    private func openAnimation() {
        guard options.playsAnimations, target?.prefersReducedMotion == false, let sized,
            let request = sized.requests.first, sized.pipeline.mayBeAnimated(request)
        else { return }
        let (pipeline, number) = (sized.pipeline, number)
        opening = Task { @MainActor [weak self] in
            let animation = await pipeline.availableAnimation(for: request)
            guard let animation, !Task.isCancelled, let self, number == self.number else { return }
            self.player = AnimationPlayer(animation, clock: AnimationPlayer.Clock(self.animationClock)) {
                [weak self] image in self?.showFrame(image) ?? false
            }
            self.play()
        }
    }

    private func play() {
        if isVisible, let target, !target.prefersReducedMotion { player?.play() }
    }

    /// - Returns: Whether further frames are wanted.
    private func showFrame(_ image: PixelImage) -> Bool {
        guard let target, isVisible, !target.prefersReducedMotion else { return false }
        target.show(image, transition: .none)
        return true
    }

    private func stopPlaying() {
        opening?.cancel()
        player?.pause()
        (opening, player) = (nil, nil)
    }
}

/// Loads images for the slots of one target, each with an ``ImageBinding``. The slots are independent.
///
/// ```swift
/// let slots = ImageBindings(button)
/// slots[.image(.normal)].set(ImageRequest(icon))
/// slots[.background(.highlighted)].set(ImageRequest(glow))
/// ```
@MainActor
public final class ImageBindings<Target: MultiImageTarget> {
    /// One slot as a target.
    public final class SlotTarget: ImageTarget {
        private weak var target: Target?
        private let slot: Target.Slot

        fileprivate init(_ target: Target?, _ slot: Target.Slot) {
            self.target = target
            self.slot = slot
        }

        public func show(_ image: PixelImage?, transition: ImageTransition) {
            target?.show(image, in: slot, transition: transition)
        }

        public var targetGeometry: TargetGeometry? { target?.targetGeometry(of: slot) }

        public var prefersReducedMotion: Bool { target?.prefersReducedMotion ?? true }
    }

    /// The target; nil after it was deallocated.
    package private(set) weak var target: Target?
    private var bindings: [Target.Slot: (target: SlotTarget, binding: ImageBinding<SlotTarget>)] = [:]

    /// Creates the bindings of a target, which is held weakly.
    public init(_ target: Target) { self.target = target }

    /// The binding of a slot, created at its first use.
    public subscript(slot: Target.Slot) -> ImageBinding<SlotTarget> {
        if let known = bindings[slot] { return known.binding }
        let target = SlotTarget(target, slot)
        let binding = ImageBinding(target)
        bindings[slot] = (target, binding)
        return binding
    }

    /// Cancels the requests of all slots.
    public func cancel() {
        for (_, binding) in bindings.values { binding.cancel() }
    }
}
