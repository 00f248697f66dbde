import CGTK
import VitrineImaging

/// A `GdkPaintable` that shows one image after another, for any widget that shows paintables.
///
/// - It has no intrinsic size, so a new image never causes a new layout of a list.
/// - It fits images itself, so images of different shapes can cross-fade.
/// - It reports when it is drawn and at which size. GTK offers no other way to find out.
@MainActor
public final class ImagePaintable: GTKObject {
    private let canvas = PaintableCanvas()

    /// Creates an empty paintable.
    public init() {
        super.init(owning: g_object_new_with_properties(Self.type, 0, nil, nil)!)
        attach(canvas, as: Self.canvasName)
    }

    /// The way images fit into the place.
    public var fit: ContentFit {
        get { canvas.fit }
        set {
            canvas.fit = newValue
            invalidate()
        }
    }

    /// The current image. During a fade it is the new one.
    public var texture: Texture? { canvas.shown?.texture }

    /// The size of the last drawing, in points; nil before the first one.
    public var drawnSize: (width: Double, height: Double)? { canvas.drawnSize }

    /// Called after a drawing with a new size, and once after ``requestDraw()``.
    var onDraw: (@MainActor () -> Void)? {
        get { canvas.onDraw }
        set { canvas.onDraw = newValue }
    }

    /// Requests a call of `onDraw` at the next drawing, when the paintable is on screen.
    func requestDraw() {
        canvas.isDrawRequested = true
        invalidate()
    }

    /// Replaces the image.
    ///
    /// - Parameters:
    ///   - texture: The new image; nil for none.
    ///   - fit: The way it fits into the place. Default: ``fit``.
    ///   - fade: The duration of a cross-fade. Default zero.
    ///   - widget: The widget whose frame clock drives the fade. Without a widget there is no fade.
    public func show(_ texture: Texture?, fit: ContentFit? = nil, fade: Duration = .zero, in widget: Widget? = nil) {
        canvas.fading = nil
        let before = canvas.shown
        canvas.shown = texture.map { PaintableCanvas.Layer(texture: $0, fit: fit) }
        invalidate()
        guard let widget, fade > .zero, texture != nil, gtk_widget_get_mapped(widget.widget) != 0 else { return }
        canvas.fading = PaintableCanvas.Fade(from: before)
        let length = Double(fade.components.seconds) + Double(fade.components.attoseconds) / 1e18
        canvas.turn += 1
        widget.onFrame { [weak self, turn = canvas.turn] time in
            guard let self, canvas.turn == turn, canvas.fading != nil else { return false }
            let start = canvas.fading?.start ?? time
            canvas.fading?.start = start
            let progress = Double(time - start) / 1e6 / length
            canvas.fading?.progress = progress
            if progress >= 1 { canvas.fading = nil }
            invalidate()
            return progress < 1
        }
    }

    private func invalidate() { gdk_paintable_invalidate_contents(opaque) }

    /// The number of pixels a point, of the display.
    var scale: Double {
        get { canvas.scale }
        set { canvas.scale = newValue }
    }

    // MARK: The GObject class

    fileprivate static let canvasName = "vitrine-canvas"

    private static let type: GType = {
        // G_TYPE_OBJECT is a macro that the importer skips: gtype.h, G_TYPE_MAKE_FUNDAMENTAL(20).
        let object = GType(20 << 2)
        let type = g_type_register_static_simple(
            object, "VitrineImagePaintable", guint(MemoryLayout<GObjectClass>.size), nil,
            guint(MemoryLayout<GObject>.size), nil, GTypeFlags(rawValue: 0))
        var info = GInterfaceInfo(
            interface_init: { interface, _ in
                let paintable = interface!.assumingMemoryBound(to: GdkPaintableInterface.self)
                paintable.pointee.get_flags = { _ in GdkPaintableFlags(rawValue: 0) }
                paintable.pointee.get_intrinsic_width = { _ in 0 }
                paintable.pointee.get_intrinsic_height = { _ in 0 }
                paintable.pointee.get_intrinsic_aspect_ratio = { _ in 0 }
                paintable.pointee.snapshot = { paintable, snapshot, width, height in
                    nonisolated(unsafe) let (paintable, snapshot) = (paintable!, snapshot!)
                    MainActor.assumeIsolated {
                        let canvas: PaintableCanvas? = GTKObject.attached(
                            ImagePaintable.canvasName, to: UnsafeMutableRawPointer(paintable))
                        canvas?.draw(on: snapshot, width, height)
                    }
                }
            }, interface_finalize: nil, interface_data: nil)
        g_type_add_interface_static(type, gdk_paintable_get_type(), &info)
        return type
    }()
}
