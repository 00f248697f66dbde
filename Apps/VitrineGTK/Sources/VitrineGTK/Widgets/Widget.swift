public import CGTK

/// A widget. Its parent retains it as well.
@MainActor
open class Widget: GTKObject {
    /// The widget, for calls of GTK.
    ///
    /// The pointer is valid as long as this object, or as long as the widget has a parent or another owner. Swift can
    /// release an object after its last use, which can be the call that gets the pointer.
    public var widget: UnsafeMutablePointer<GtkWidget> { raw.assumingMemoryBound(to: GtkWidget.self) }

    /// The size in points; 0 before the first layout.
    public var size: (width: Int, height: Int) {
        (Int(gtk_widget_get_width(widget)), Int(gtk_widget_get_height(widget)))
    }

    /// The number of pixels a point.
    public var scaleFactor: Int { Int(gtk_widget_get_scale_factor(widget)) }

    /// Requests a minimum size, in points; -1 for none.
    public func setSizeRequest(_ width: Int, _ height: Int) {
        gtk_widget_set_size_request(widget, Int32(width), Int32(height))
    }

    /// Whether any part of the widget is on screen, inside its nearest scrolling parent.
    public var isInView: Bool {
        guard gtk_widget_get_mapped(widget) != 0 else { return false }
        guard let scroller = gtk_widget_get_ancestor(widget, gtk_scrolled_window_get_type()) else { return true }
        var bounds = graphene_rect_t()
        guard gtk_widget_compute_bounds(widget, scroller, &bounds) != 0 else { return false }
        let (width, height) = (Float(gtk_widget_get_width(scroller)), Float(gtk_widget_get_height(scroller)))
        return bounds.origin.x < width && bounds.origin.y < height && bounds.origin.x + bounds.size.width > 0
            && bounds.origin.y + bounds.size.height > 0
    }

    /// Sets the name that screen readers speak; nil for the name that GTK finds, such as the text of a button.
    ///
    /// Give one to every button with only an icon, every entry, and every picture that has a meaning.
    public func setAccessibleLabel(_ text: String?) { setAccessible(GTK_ACCESSIBLE_PROPERTY_LABEL, text) }

    /// Sets the text that screen readers speak after the name; nil for none.
    public func setAccessibleDescription(_ text: String?) { setAccessible(GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, text) }

    private func setAccessible(_ property: GtkAccessibleProperty, _ text: String?) {
        guard let text else { return gtk_accessible_reset_property(opaque, property) }
        var property = property, value = GValue()
        g_value_init(&value, GType(16 << 2))  // G_TYPE_STRING is a macro that the importer skips: gtype.h
        g_value_set_string(&value, text)
        gtk_accessible_update_property_value(opaque, 1, &property, &value)
        g_value_unset(&value)
    }

    /// The texture memory that is fastest for the renderer of the widget.
    var textureMemory: Texture.Memory {
        guard let native = gtk_widget_get_native(widget), let renderer = gtk_native_get_renderer(native),
            let name = g_type_name_from_instance(
                UnsafeMutableRawPointer(renderer).assumingMemoryBound(to: GTypeInstance.self))
        else { return .shared }
        return String(cString: name) == "GskCairoRenderer" ? .packed : .shared
    }

    /// Draws the current state of the widget into a PNG file, without the window system.
    ///
    /// - Returns: false if the widget has no size or is waiting for a new drawing, or if the file cannot be written.
    public func writePNG(to path: String) -> Bool {
        let (width, height) = size, scale = Double(scaleFactor)
        guard width > 0, height > 0, let paintable = gtk_widget_paintable_new(widget),
            let snapshot = gtk_snapshot_new()
        else { return false }
        gdk_paintable_snapshot(paintable, snapshot, Double(width), Double(height))
        defer { g_object_unref(UnsafeMutableRawPointer(paintable)) }
        guard let node = gtk_snapshot_free_to_node(snapshot) else { return false }
        defer { gsk_render_node_unref(node) }
        let surface = cairo_image_surface_create(
            CAIRO_FORMAT_RGB24, Int32(Double(width) * scale), Int32(Double(height) * scale))
        defer { cairo_surface_destroy(surface) }
        let context = cairo_create(surface)
        cairo_scale(context, scale, scale)
        gsk_render_node_draw(node, context)
        cairo_destroy(context)
        return cairo_surface_write_to_png(surface, path) == CAIRO_STATUS_SUCCESS
    }
}
