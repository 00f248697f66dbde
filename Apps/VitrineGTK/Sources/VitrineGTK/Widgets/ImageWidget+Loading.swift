import CGTK
public import VitrineImaging
public import VitrinePipeline
import VitrineViews

extension ImageWidget {
    /// Shows the image of a request, at the size of the widget unless the request has one.
    ///
    /// - Parameters:
    ///   - request: nil to show the placeholder, or no image.
    ///   - pipeline: The pipeline that loads the image. Default: the shared one.
    ///   - moment: When the request starts. Default: when the widget is drawn.
    ///   - onSuccess: Called when the image is shown, unless another request replaced this one.
    ///   - onFailure: Called after each attempt that fails, when the tooltip is set.
    public func load(
        _ request: ImageRequest?, in pipeline: ImagePipeline = .shared, when moment: Moment = .drawn,
        onSuccess: (@MainActor (PixelImage) -> Void)? = nil, onFailure: (@MainActor (any Error) -> Void)? = nil
    ) {
        forget()
        binding.isVisible = true
        guard let request else { return binding.set(nil) }
        wish = Wish(request: request, pipeline: pipeline, onSuccess: onSuccess, onFailure: onFailure)
        var sized = request
        if sized.resizing.mode == .none, let geometry = targetGeometry { sized.resizing = geometry.resizer }
        if moment == .now || pipeline.cachedImage(for: sized) != nil { return begin() }
        // The cell is reused, so its image belongs to another item.
        binding.cancel()
        show(binding.options.placeholder, transition: .none)
        paintable.requestDraw()
    }

    /// Cancels the load. The current image stays.
    public func cancel() {
        forget()
        binding.cancel()
    }

    /// Cancels the load and removes the image, before a cell is reused.
    public func prepareForReuse() {
        forget()
        binding.prepareForReuse()
    }

    private func forget() {
        wish = nil
        retry?.cancel()
        retry = nil
        explain(nil)
        ScrollWatch.forget(self)
    }

    // MARK: Events

    func didDraw() {
        if let size = paintable.drawnSize { sizeHint?.size = size }
        binding.isVisible = true
        if case .empty = binding.state { return viewDidChange() }
        let geometry = targetGeometry
        guard geometry != drawnGeometry else { return }
        drawnGeometry = geometry
        sizeDidChange()
    }

    /// Starts the load of a visible widget, and cancels that of a hidden one.
    func viewDidChange() {
        guard wish != nil, retry == nil else { return }
        switch (binding.state, isInView) {
        case (.empty, true) where !ScrollWatch.isRacing(above: self): begin()
        case (.loading, false): suspend()
        case (.empty, _): ScrollWatch.watch(self)
        default: break
        }
    }

    /// Cancels the load, and stops an animation, until the widget is visible again.
    func suspend() {
        binding.isVisible = false
        guard wish != nil else { return }
        retry?.cancel()
        retry = nil
        binding.cancel()
        paintable.requestDraw()
    }

    /// Loads at the new size after a short delay without changes, because windows are resized in many steps.
    func sizeDidChange() {
        paintable.scale = Double(scaleFactor)
        sizeChange?.cancel()
        sizeChange = Task { [weak self] in
            guard (try? await Task.sleep(for: .milliseconds(150))) != nil else { return }
            self?.binding.targetSizeDidChange()
        }
    }

    private func begin() {
        guard let wish else { return }
        ScrollWatch.watch(self)
        binding.set(wish.request, in: wish.pipeline) { [weak self] image in
            self?.didSucceed(image)
        } onFailure: { [weak self] error in
            self?.didFail(error)
        }
    }

    private func didSucceed(_ image: PixelImage) {
        ScrollWatch.forget(self)
        explain(nil)
        let onSuccess = wish?.onSuccess
        wish = nil
        onSuccess?(image)
    }

    private func didFail(_ error: any Error) {
        explain(error)
        wish?.attempts += 1
        let onFailure = wish?.onFailure
        if let wish, let delay = retryDelay?(error, wish.attempts) {
            binding.cancel()
            show(binding.options.placeholder, transition: .none)
            retry = Task { [weak self] in
                guard (try? await Task.sleep(for: delay)) != nil else { return }
                self?.retry = nil
                self?.viewDidChange()
            }
        } else {
            ScrollWatch.forget(self)
            wish = nil
        }
        onFailure?(error)
    }
}
