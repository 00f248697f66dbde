import CGTK
public import VitrineImaging
public import VitrineViews

/// A `GtkButton` with an image and a background image for each state.
///
/// ```swift
/// let button = ImageButton(width: 96, height: 48)
/// button.slots[.image(.normal)].set(ImageRequest(icon))
/// button.slots[.background(.pressed)].set(ImageRequest(glow))
/// button.on("clicked") { … }
/// ```
///
/// A state without an image shows the image of ``State/normal``. An image is loaded when it is set.
@MainActor
public final class ImageButton: Widget, MultiImageTarget {
    /// The state of the button.
    public enum State: Sendable, Hashable, CaseIterable {
        case normal
        /// The pointer is over the button.
        case hovered
        /// The button is pressed.
        case pressed
        /// The button is disabled.
        case disabled
    }

    /// A place for an image.
    public enum Slot: Sendable, Hashable {
        case image(State)
        case background(State)
    }

    /// The binding that loads images into the slots.
    public private(set) lazy var slots = ImageBindings(self)
    private let image = ImagePaintable(), background = ImagePaintable()
    private let place: (width: Int, height: Int)
    private var pictures: [Slot: PixelImage] = [:]

    /// Creates a button.
    ///
    /// - Parameters:
    ///   - width: The width of the content, in points.
    ///   - height: The height of the content, in points.
    public init(width: Int, height: Int) {
        place = (width, height)
        super.init(sinking: gtk_button_new()!)
        image.fit = .contain
        let overlay = gtk_overlay_new()!
        for (index, paintable) in [background, image].enumerated() {
            let picture = gtk_picture_new_for_paintable(paintable.opaque)!
            gtk_picture_set_content_fit(OpaquePointer(picture), GTK_CONTENT_FIT_FILL)
            gtk_widget_set_size_request(picture, Int32(width), Int32(height))
            if index == 0 {
                gtk_overlay_set_child(OpaquePointer(overlay), picture)
            } else {
                gtk_overlay_add_overlay(OpaquePointer(overlay), picture)
            }
        }
        gtk_button_set_child(UnsafeMutablePointer<GtkButton>(opaque), overlay)
        onPosition("state-flags-changed") { [weak self] _ in self?.stateDidChange() }
        on("notify::scale-factor") { [weak self] (_: UnsafeMutableRawPointer) in self?.stateDidChange() }
    }

    /// The state that selects the images.
    public var state: State {
        let flags = gtk_widget_get_state_flags(widget).rawValue
        if flags & GTK_STATE_FLAG_INSENSITIVE.rawValue != 0 { return .disabled }
        if flags & GTK_STATE_FLAG_ACTIVE.rawValue != 0 { return .pressed }
        return flags & GTK_STATE_FLAG_PRELIGHT.rawValue != 0 ? .hovered : .normal
    }

    /// The current image, if there is one.
    public var shownImage: PixelImage? { pictures[.image(state)] ?? pictures[.image(.normal)] }
    /// The current background image, if there is one.
    public var shownBackground: PixelImage? { pictures[.background(state)] ?? pictures[.background(.normal)] }

    /// Shows an image in a slot, for ``slots``.
    public func show(_ image: PixelImage?, in slot: Slot, transition: ImageTransition) {
        pictures[slot] = image
        update(transition)
    }

    /// The size of the content, in pixels of the display.
    public func targetGeometry(of slot: Slot) -> TargetGeometry? {
        let mode: ContentFit = if case .background = slot { .cover } else { .contain }
        return TargetGeometry(
            width: Double(place.width), height: Double(place.height), scale: Double(scaleFactor), mode: mode.mode,
            allowsUpscaling: false)
    }

    /// Whether the setting `gtk-enable-animations` of the desktop is off.
    public var prefersReducedMotion: Bool { cgtk_allows_animations(widget) == 0 }

    private func stateDidChange() { update(.none) }

    private func update(_ transition: ImageTransition) {
        var fade = Duration.zero
        if case .crossFade(let duration) = transition { fade = duration }
        for (paintable, picture) in [(image, shownImage), (background, shownBackground)]
        where paintable.texture?.pixels !== picture?.sharedPixels {
            paintable.scale = Double(scaleFactor)
            paintable.show(picture.map { Texture($0, memory: textureMemory) }, fade: fade, in: self)
        }
    }
}
