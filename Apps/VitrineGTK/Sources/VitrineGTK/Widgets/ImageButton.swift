import CGTK
public import VitrineImaging
public import VitrineViews

/// A `GtkButton` with pictures: one for each of its states, and one behind each.
///
/// ```swift
/// let button = ImageButton(width: 96, height: 48)
/// button.slots[.image(.normal)].set(ImageRequest(icon))
/// button.slots[.background(.pressed)].set(ImageRequest(glow))
/// button.on("clicked") { … }
/// ```
///
/// A state without a picture of its own shows that of ``State/normal``. Pictures of all slots are loaded when they are
/// set.
@MainActor
public final class ImageButton: Widget, MultiImageTarget {
    /// What the button is doing.
    public enum State: Sendable, Hashable, CaseIterable {
        case normal
        /// The pointer is above it.
        case hovered
        /// It is held down.
        case pressed
        /// It cannot be used.
        case disabled
    }

    /// A place for a picture.
    public enum Slot: Sendable, Hashable {
        case image(State)
        case background(State)
    }

    /// Loads pictures into the slots.
    public private(set) lazy var slots = ImageBindings(self)
    private let image = ImagePaintable(), background = ImagePaintable()
    private let place: (width: Int, height: Int)
    private var pictures: [Slot: Image] = [:]

    /// - Parameters:
    ///   - width: Of its content, in points.
    ///   - height: Of its content, in points.
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

    /// The state it is in, as far as pictures are concerned.
    public var state: State {
        let flags = gtk_widget_get_state_flags(widget).rawValue
        if flags & GTK_STATE_FLAG_INSENSITIVE.rawValue != 0 { return .disabled }
        if flags & GTK_STATE_FLAG_ACTIVE.rawValue != 0 { return .pressed }
        return flags & GTK_STATE_FLAG_PRELIGHT.rawValue != 0 ? .hovered : .normal
    }

    /// The picture that is seen in front, if there is one.
    public var shownImage: Image? { pictures[.image(state)] ?? pictures[.image(.normal)] }
    /// The picture that is seen behind, if there is one.
    public var shownBackground: Image? { pictures[.background(state)] ?? pictures[.background(.normal)] }

    /// Shows a picture in a slot; for ``slots``.
    public func show(_ image: Image?, in slot: Slot, transition: ImageTransition) {
        pictures[slot] = image
        update(transition)
    }

    /// The button's content, in pixels of the display.
    public func targetGeometry(of slot: Slot) -> TargetGeometry? {
        let mode: ContentFit = if case .background = slot { .cover } else { .contain }
        return TargetGeometry(
            width: Double(place.width), height: Double(place.height), scale: Double(scaleFactor), mode: mode.mode,
            allowsUpscaling: false)
    }

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
