import CGTK
package import VitrineGTK
import VitrinePipeline

/// A picture, with the reason in words over it when its image cannot be shown.
@MainActor
package final class ExplainedPicture {
    /// The overlay of the picture and the text.
    package let root: Widget
    package let picture: Picture
    /// Created at the first failure, because most pictures have none.
    private var label: Widget?

    package init(fit: ContentFit) {
        picture = Picture(fit: fit)
        root = Widget(sinking: gtk_overlay_new()!)
        gtk_overlay_set_child(root.opaque, picture.widget)
    }

    /// The reason that is shown; nil for none.
    package var reason: String? { label.flatMap { $0.isShown ? $0.text : nil } }

    /// Shows the reason of a failure; nil removes it.
    package func explain(_ error: (any Error)?) {
        guard let error else {
            label?.isShown = false
            return
        }
        let label = label ?? makeLabel()
        label.text = failureText(error)
        label.isShown = true
    }

    private func makeLabel() -> Widget {
        let new = Box.paragraph(classes: "reason")
        // The tooltip has the rest of a long reason.
        gtk_label_set_lines(new.opaque, 3)
        gtk_label_set_ellipsize(new.opaque, PANGO_ELLIPSIZE_END)
        gtk_widget_set_valign(new.widget, GTK_ALIGN_END)
        gtk_widget_set_can_target(new.widget, 0)
        gtk_overlay_add_overlay(root.opaque, new.widget)
        label = new
        return new
    }
}

/// Returns a sentence with the reason of a failure, without the path of the file.
package func failureText(_ error: any Error) -> String {
    let reason = (error as? ImagePipelineError)?.reason ?? "\(error)"
    let sentence = reason.prefix(1).uppercased() + reason.dropFirst()
    return sentence.hasSuffix(".") ? sentence : sentence + "."
}
