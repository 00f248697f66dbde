import CGTK
public import VitrineImaging
import VitrinePipeline
public import VitrineViews

/// A widget that shows one image at a time: a ``Picture`` or an ``Icon``.
///
/// ```swift
/// let picture = Picture(fit: .cover)
/// picture.load(ImageRequest(url))
/// picture.load(ImageRequest(.pdf("manual.pdf", page: 3)), when: .drawn)
/// ```
///
/// The ``binding`` controls the content. `binding.options` sets placeholders, failure images and fades. The widget
/// adds:
/// - Images are loaded **when the widget is first drawn**, at its size in pixels of the display.
/// - A load is cancelled when the widget scrolls off the screen or its window closes. It starts again when the widget
///   is drawn again.
/// - An animation plays while the widget is on the screen, unless the desktop turns animations off.
/// - A failed image is replaced by `binding.options.failureImage`. A tooltip shows the reason.
@MainActor
open class ImageWidget: Widget, ImageTarget {
    /// The start of a load.
    public enum Moment: Sendable, Hashable {
        /// Immediately, at the known size.
        case now
        /// When the widget is drawn. Images in memory are shown immediately if the size of the widget is known.
        case drawn
    }

    /// The paintable that draws the images. Other widgets can show it, too.
    public let paintable: ImagePaintable
    /// The binding that controls the content.
    public private(set) lazy var binding: ImageBinding<ImageWidget> = {
        let binding = ImageBinding<ImageWidget>(self)
        binding.options.failureImage = .failure
        return binding
    }()
    /// The expected size before the first drawing, which similar cells share; see ``SizeHint``.
    public var sizeHint: SizeHint?
    /// Returns the delay before the next attempt after a failure; nil for no further attempt. Default: no further
    /// attempt.
    ///
    /// The placeholder is shown until then. `attempt` counts consecutive failures, from 1.
    public var retryDelay: (@MainActor (_ error: any Error, _ attempt: Int) -> Duration?)?
    /// The tooltip while there is no failure, and the name that screen readers speak.
    public var tooltip: String? {
        didSet {
            showTooltip()
            if tooltip != oldValue { setAccessibleLabel(tooltip) }
        }
    }

    /// The content to load, until it is shown.
    struct Wish {
        var request: ImageRequest
        var pipeline: ImagePipeline
        var onSuccess: (@MainActor (PixelImage) -> Void)?
        var onFailure: (@MainActor (any Error) -> Void)?
        var attempts = 0
    }

    var wish: Wish?
    var retry: Task<Void, Never>?
    var sizeChange: Task<Void, Never>?
    /// The geometry of the last drawing; nil before the first one.
    var drawnGeometry: TargetGeometry?
    private var isDrawn: Bool { drawnGeometry != nil }
    private var failure: String? { didSet { if failure != oldValue { showTooltip() } } }

    /// Creates a widget.
    ///
    /// - Parameters:
    ///   - pointer: A GTK widget that shows `paintable`.
    ///   - paintable: The paintable of the widget.
    ///   - listens: Whether this widget loads images when the paintable is drawn.
    init(_ pointer: some GTKPointer, paintable: ImagePaintable, listens: Bool = true) {
        self.paintable = paintable
        super.init(sinking: pointer)
        guard listens else { return }
        paintable.onDraw = { [weak self] in self?.didDraw() }
        on("unmap") { [weak self] in self?.suspend() }
        on("notify::scale-factor") { [weak self] (_: UnsafeMutableRawPointer) in self?.sizeDidChange() }
    }

    isolated deinit {
        retry?.cancel()
        sizeChange?.cancel()
    }

    /// The way images fit into the widget. Default ``ContentFit/cover``.
    public var fit: ContentFit {
        get { paintable.fit }
        set { paintable.fit = newValue }
    }

    // MARK: Target of the binding

    /// Shows an image, for ``binding``.
    public func show(_ image: PixelImage?, transition: ImageTransition) {
        paintable.scale = Double(scaleFactor)
        let isFailure = image.map { $0.sharedPixels === binding.options.failureImage?.sharedPixels } ?? false
        var fade = Duration.zero
        if case .crossFade(let duration) = transition { fade = duration }
        let texture = image.map { Texture($0, memory: textureMemory) }
        paintable.show(texture, fit: isFailure ? .scaleDown : nil, fade: fade, in: self)
        // An animation goes on when the widget is drawn again.
        if case .shown = binding.state, isDrawn, !isInView { binding.isVisible = false }
    }

    /// Whether the setting `gtk-enable-animations` of the desktop is off.
    public var prefersReducedMotion: Bool { cgtk_allows_animations(widget) == 0 }

    /// The last or the expected size, in pixels; nil if it is unknown.
    public var targetGeometry: TargetGeometry? {
        guard let size = paintable.drawnSize ?? sizeHint?.size ?? requestedSize else { return nil }
        return TargetGeometry(
            width: size.width, height: size.height, scale: Double(scaleFactor), mode: fit.mode, allowsUpscaling: false)
    }

    private var requestedSize: (width: Double, height: Double)? {
        var (width, height) = (Int32(0), Int32(0))
        gtk_widget_get_size_request(widget, &width, &height)
        return width > 0 && height > 0 ? (Double(width), Double(height)) : nil
    }

    // MARK: Failures

    /// Shows the reason of a failure in the tooltip; nil removes it.
    func explain(_ error: (any Error)?) { failure = error.map { "\($0)" } }

    private func showTooltip() { gtk_widget_set_tooltip_text(widget, failure ?? tooltip) }
}

/// The common size of the cells of a list, which the first drawn cell sets.
///
/// Other cells can then show images from memory before they are drawn.
@MainActor
public final class SizeHint {
    /// The size in points; nil before the first drawing.
    public internal(set) var size: (width: Double, height: Double)?

    public init() {}
}
