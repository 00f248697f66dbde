import CGTK
package import VitrineGTK

/// Short forms for common widgets.
@MainActor
package enum Box {
    /// A vertical box.
    package static func column(_ spacing: Int = 6, _ children: Widget...) -> Widget {
        fill(gtk_box_new(GTK_ORIENTATION_VERTICAL, Int32(spacing)), children)
    }

    /// A horizontal box.
    package static func row(_ spacing: Int = 6, _ children: Widget...) -> Widget {
        fill(gtk_box_new(GTK_ORIENTATION_HORIZONTAL, Int32(spacing)), children)
    }

    private static func fill(_ box: UnsafeMutablePointer<GtkWidget>?, _ children: [Widget]) -> Widget {
        let box = Widget(sinking: box!)
        for child in children { box.append(child) }
        return box
    }

    /// A line of text. Text that is too long ends with an ellipsis.
    package static func label(_ text: String = "", classes: String...) -> Widget {
        let label = Widget(sinking: gtk_label_new(text)!)
        gtk_label_set_ellipsize(label.opaque, PANGO_ELLIPSIZE_MIDDLE)
        for name in classes { gtk_widget_add_css_class(label.widget, name) }
        return label
    }

    /// Text that continues on further lines where it is too long.
    package static func paragraph(_ text: String = "", classes: String...) -> Widget {
        let label = Widget(sinking: gtk_label_new(text)!)
        gtk_label_set_wrap(label.opaque, 1)
        gtk_label_set_wrap_mode(label.opaque, PANGO_WRAP_WORD_CHAR)
        gtk_label_set_xalign(label.opaque, 0)
        for name in classes { gtk_widget_add_css_class(label.widget, name) }
        return label
    }

    /// A button with an icon of the theme.
    package static func button(icon: String, tooltip: String, _ body: @escaping @MainActor () -> Void) -> Widget {
        let button = Widget(sinking: gtk_button_new_from_icon_name(icon)!)
        gtk_widget_set_tooltip_text(button.widget, tooltip)
        button.setAccessibleLabel(tooltip)
        button.on("clicked", body)
        return button
    }
}

extension Widget {
    /// The text of a label.
    package var text: String {
        get { gtk_label_get_text(opaque).map { String(cString: $0) } ?? "" }
        set { if newValue != text { gtk_label_set_text(opaque, newValue) } }
    }

    /// Adds a widget to a box.
    package func append(_ child: Widget) {
        withExtendedLifetime(child) { gtk_box_append(UnsafeMutablePointer<GtkBox>(opaque), child.widget) }
    }

    /// Sets the margins, in points.
    package func setMargins(_ points: Int) {
        gtk_widget_set_margin_start(widget, Int32(points))
        gtk_widget_set_margin_end(widget, Int32(points))
        gtk_widget_set_margin_top(widget, Int32(points))
        gtk_widget_set_margin_bottom(widget, Int32(points))
    }

    /// Whether the widget is shown, if its parent is.
    package var isShown: Bool {
        get { gtk_widget_get_visible(widget) != 0 }
        set { gtk_widget_set_visible(widget, newValue ? 1 : 0) }
    }

    package func addClass(_ name: String) { gtk_widget_add_css_class(widget, name) }

    /// Makes the widget expand.
    package func expand() { gtk_widget_set_hexpand(widget, 1) }
}
