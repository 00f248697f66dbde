import CGTK
import DemoSupport
import VitrineGTK

/// One photo in the whole window, with its name, zoom and the way to its neighbours.
@MainActor
final class PhotoViewer {
    /// The scroller of the photo.
    let root: Widget
    /// Called when another photo is shown.
    var onChange: (@MainActor () -> Void)?
    /// The index of the photo; nil for none.
    private(set) var index: Int?
    /// The size of the photo, relative to the window.
    private(set) var zoom = 1.0
    private static let zooms = [1, 1.5, 2, 3, 4]

    private let library: PhotoLibrary
    private let photo = ExplainedPicture(fit: .contain)

    init(_ library: PhotoLibrary) {
        self.library = library
        root = Widget(sinking: gtk_scrolled_window_new()!)
        gtk_scrolled_window_set_child(root.opaque, photo.root.widget)
        gtk_widget_set_focusable(root.widget, 1)
        photo.picture.retryDelay = PhotoLibrary.retryDelay
        let wheel = GTKObject(owning: gtk_event_controller_scroll_new(GTK_EVENT_CONTROLLER_SCROLL_VERTICAL)!)
        g_object_ref(wheel.raw)
        gtk_event_controller_set_propagation_phase(wheel.opaque, GTK_PHASE_CAPTURE)
        gtk_widget_add_controller(root.widget, wheel.opaque)
        wheel.onScroll { [weak self, unowned wheel] _, down in
            // With Ctrl the wheel zooms. Without it, the scroller moves the photo.
            let state = gtk_event_controller_get_current_event_state(wheel.opaque)
            guard state.rawValue & GDK_CONTROL_MASK.rawValue != 0, down != 0 else { return false }
            self?.zoom(by: down < 0 ? 1 : -1)
            return true
        }
    }

    /// The name of the photo, without its directory.
    var name: String { index.map { PhotoLibrary.name(library.identifiers[$0]) } ?? "" }

    /// Whether the photo is shown.
    var isShown: Bool {
        if case .shown = photo.picture.binding.state { true } else { false }
    }

    /// The reason in words why there is no photo; nil for none.
    var reason: String? { photo.reason }

    /// Shows a photo. Ignores numbers without one.
    func show(_ index: Int) {
        guard library.identifiers.indices.contains(index), index != self.index else { return }
        self.index = index
        setZoom(1)
        let text = "\(name), \(index + 1) of \(library.identifiers.count)"
        photo.picture.setAccessibleLabel(text)
        root.setAccessibleLabel(text)
        photo.explain(nil)
        photo.picture.load(library.request(library.identifiers[index]), in: library.service) { [weak self] _ in
            self?.photo.explain(nil)
        } onFailure: { [weak self] error in
            self?.photo.explain(error)
        }
        onChange?()
    }

    /// Shows a neighbour.
    func turn(_ step: Int) { if let index { show(index + step) } }

    /// Shows no photo.
    func clear() {
        index = nil
        photo.picture.prepareForReuse()
    }

    /// Makes the photo larger or smaller by some steps.
    func zoom(by steps: Int) {
        let place = Self.zooms.firstIndex(of: zoom) ?? 0
        setZoom(Self.zooms[min(max(place + steps, 0), Self.zooms.count - 1)])
    }

    /// Shows the whole photo.
    func resetZoom() { setZoom(1) }

    /// Moves a photo that is larger than the window, by tenths of the window.
    ///
    /// - Returns: false if the whole photo is shown.
    func pan(right: Double, down: Double) -> Bool {
        guard zoom > 1 else { return false }
        for (adjustment, tenths) in [(horizontal, right), (vertical, down)] {
            let step = gtk_adjustment_get_page_size(adjustment) / 10 * tenths
            gtk_adjustment_set_value(adjustment, gtk_adjustment_get_value(adjustment) + step)
        }
        return true
    }

    // MARK: Zoom

    private var horizontal: UnsafeMutablePointer<GtkAdjustment>? { gtk_scrolled_window_get_hadjustment(root.opaque) }
    private var vertical: UnsafeMutablePointer<GtkAdjustment>? { gtk_scrolled_window_get_vadjustment(root.opaque) }

    /// Changes the zoom around the centre of the window. The picture is decoded again at its new size.
    private func setZoom(_ new: Double) {
        guard new != zoom else { return }
        zoom = new
        let centres = [horizontal, vertical].map { adjustment in
            let middle = gtk_adjustment_get_value(adjustment) + gtk_adjustment_get_page_size(adjustment) / 2
            return middle / max(1, gtk_adjustment_get_upper(adjustment))
        }
        let (width, height) = root.size
        if new == 1 {
            photo.picture.setSizeRequest(-1, -1)
        } else {
            photo.picture.setSizeRequest(Int(Double(width) * new), Int(Double(height) * new))
        }
        // The scroller knows the new size after the next layout.
        var frames = 0
        root.onFrame { [weak self] _ in
            guard let self else { return false }
            frames += 1
            guard frames == 2 else { return true }
            for (adjustment, centre) in zip([horizontal, vertical], centres) {
                let page = gtk_adjustment_get_page_size(adjustment)
                gtk_adjustment_set_value(adjustment, gtk_adjustment_get_upper(adjustment) * centre - page / 2)
            }
            return false
        }
    }
}
