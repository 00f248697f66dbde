import CGTK

/// A `GtkPicture` that loads its image at its size.
///
/// ```swift
/// let picture = Picture(fit: .cover)
/// picture.setSizeRequest(180, 120)
/// gtk_box_append(box, picture.widget)
/// picture.load(ImageRequest(url))
/// ```
@MainActor
public final class Picture: ImageWidget {
    private static let name = "vitrine-picture"

    /// Creates a picture.
    public init(fit: ContentFit = .cover) {
        let paintable = ImagePaintable()
        super.init(gtk_picture_new_for_paintable(paintable.opaque)!, paintable: paintable)
        prepare(fit)
    }

    private init(foreign pointer: OpaquePointer, fit: ContentFit) {
        let paintable = ImagePaintable()
        super.init(pointer, paintable: paintable)
        gtk_picture_set_paintable(pointer, paintable.opaque)
        prepare(fit)
    }

    private func prepare(_ fit: ContentFit) {
        gtk_picture_set_can_shrink(opaque, 1)
        gtk_picture_set_content_fit(opaque, GTK_CONTENT_FIT_FILL)
        self.fit = fit
    }

    /// Returns the picture for an existing `GtkPicture`, for example of another binding or of an interface file.
    ///
    /// It lives as long as the `GtkPicture`.
    public static func of(_ picture: OpaquePointer, fit: ContentFit = .cover) -> Picture {
        if let known: Picture = GTKObject.attached(name, to: UnsafeMutableRawPointer(picture)) { return known }
        let new = Picture(foreign: picture, fit: fit)
        new.attach(new, as: name)
        new.becomeUnowned()
        return new
    }
}
