import CGTK

/// A `GtkImage` that loads its image: a square of fixed size, for menus, headers and rows.
@MainActor
public final class Icon: ImageWidget {
    /// Creates an icon.
    ///
    /// - Parameters:
    ///   - side: The width and height, in points.
    ///   - fit: The way images fit into the icon.
    ///   - shared: The paintable of another widget, whose images the icon shows as well. Default: a new one.
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
