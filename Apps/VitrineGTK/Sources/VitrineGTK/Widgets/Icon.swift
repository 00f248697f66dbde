import CGTK

/// A `GtkImage` that loads what it shows: a square of fixed size, as in menus, headers and rows.
@MainActor
public final class Icon: ImageWidget {
    /// - Parameters:
    ///   - side: Width and height, in points.
    ///   - fit: How pictures are brought into it.
    ///   - shared: What it shows; nil, the default, for pictures of its own. With another widget's it shows what that
    ///     loads.
    public init(side: Int, fit: ContentFit = .contain, sharing shared: ImagePaintable? = nil) {
        let paintable = shared ?? ImagePaintable()
        super.init(gtk_image_new_from_paintable(paintable.opaque)!, paintable: paintable, listens: shared == nil)
        gtk_image_set_pixel_size(opaque, Int32(side))
        if shared == nil { self.fit = fit }
        let hint = SizeHint()
        hint.size = (Double(side), Double(side))
        sizeHint = hint
    }
}
