import CGTK
public import VitrineImaging
public import VitrinePipeline
public import VitrineViews

/// A widget that shows one picture at a time: a ``Picture`` or an ``Icon``.
///
/// ```swift
/// let picture = Picture(fit: .cover)
/// picture.load(ImageRequest(url))
/// picture.load(ImageRequest(.pdf("manual.pdf", page: 3)), when: .drawn)
/// ```
///
/// What it shows at which time is decided by its ``binding``; how placeholders, failures and fades look is said there,
/// in `binding.options`. It adds what GTK asks for:
/// - Pictures are loaded **when the widget is first drawn**, at the size it has then, in pixels of the display.
/// - What is on its way for a widget that has left the screen, by scrolling or because its window has gone, is given
///   up, and asked for again when the widget is drawn again.
/// - A picture that is not to be had is replaced by `binding.options.failureImage`, and a tooltip says why.
@MainActor
open class ImageWidget: Widget, ImageTarget {
    /// When a picture is asked for.
    public enum Moment: Sendable, Hashable {
        /// At once, at the size that is known by then.
        case now
        /// When the widget is drawn. Pictures in memory are shown at once if its size is known.
        case drawn
    }

    /// Draws the pictures; other widgets may show it, too.
    public let paintable: ImagePaintable
    /// Decides what is shown.
    public private(set) lazy var binding: ImageBinding<ImageWidget> = {
        let binding = ImageBinding<ImageWidget>(self)
        binding.options.failureImage = .failure
        return binding
    }()
    /// What size to expect before it was first drawn, and what cells that are alike share; see ``SizeHint``.
    public var sizeHint: SizeHint?
    /// When to try again what has failed: after how long, or nil for never, which is the default. Until then the
    /// placeholder is shown. `attempt` counts failures in a row, from 1.
    public var retryDelay: (@MainActor (_ error: any Error, _ attempt: Int) -> Duration?)?
    /// Its tooltip while there is a picture to be had.
    public var tooltip: String? { didSet { showTooltip() } }

    /// What is to be shown, as long as it is not.
    struct Wish {
        var request: ImageRequest
        var pipeline: ImagePipeline
        var onSuccess: (@MainActor (Image) -> Void)?
        var onFailure: (@MainActor (any Error) -> Void)?
        var attempts = 0
    }

    var wish: Wish?
    var retry: Task<Void, Never>?
    var sizeChange: Task<Void, Never>?
    private var failure: String? { didSet { if failure != oldValue { showTooltip() } } }

    /// - Parameters:
    ///   - pointer: A widget that shows `paintable`.
    ///   - paintable: What it shows.
    ///   - listens: Whether it is the one that loads when that is drawn.
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

    /// How pictures are brought into the place. Default ``ContentFit/cover``.
    public var fit: ContentFit {
        get { paintable.fit }
        set { paintable.fit = newValue }
    }

    // MARK: What the binding asks for

    /// Shows a picture; for ``binding``.
    public func show(_ image: Image?, transition: ImageTransition) {
        paintable.scale = Double(scaleFactor)
        let isFailure = image.map { $0.sharedPixels === binding.options.failureImage?.sharedPixels } ?? false
        var fade = Duration.zero
        if case .crossFade(let duration) = transition { fade = duration }
        let texture = image.map { Texture($0, memory: textureMemory) }
        paintable.show(texture, fit: isFailure ? .scaleDown : nil, fade: fade, in: self)
    }

    /// The place as it was last drawn, or is expected to be, in pixels; nil if that is not known.
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

    /// Says why there is no picture, in the tooltip; nil when there is.
    func explain(_ error: (any Error)?) { failure = error.map { "\($0)" } }

    private func showTooltip() { gtk_widget_set_tooltip_text(widget, failure ?? tooltip) }
}

/// The size that the cells of a list have, learned from the first that is drawn: others can then show what is in memory
/// before they are drawn themselves.
@MainActor
public final class SizeHint {
    /// In points; nil before anything was drawn.
    public internal(set) var size: (width: Double, height: Double)?

    public init() {}
}
