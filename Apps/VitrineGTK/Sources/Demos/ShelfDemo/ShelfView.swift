import CGTK
import DemoSupport
import Foundation
import VitrineGTK

/// The grid of the shelf, which accepts dropped files, and a line for error messages.
@MainActor
final class ShelfView {
    let shelf: Shelf
    let list: ItemList
    /// The drop target for files.
    let drop: GTKObject
    private let problem = Box.paragraph(classes: "problem")
    /// The scroller of the messages, because many files can be refused.
    private let problems = Widget(sinking: gtk_scrolled_window_new()!)
    private let empty = Box.label("Drop images here to store them, or add them with the button above.")

    init(_ shelf: Shelf, _ demo: Demo) {
        self.shelf = shelf
        list = ItemList(.grid(columns: 6), of: ListItems()) { ShelfCell(shelf) }
        gtk_grid_view_set_min_columns(list.view.opaque, 2)
        drop = GTKObject(owning: gtk_drop_target_new(gdk_file_list_get_type(), GDK_ACTION_COPY)!)
        g_object_ref(drop.raw)
        problem.setMargins(6)
        gtk_scrolled_window_set_child(problems.opaque, problem.widget)
        gtk_scrolled_window_set_policy(problems.opaque, GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC)
        gtk_scrolled_window_set_propagate_natural_height(problems.opaque, 1)
        gtk_scrolled_window_set_max_content_height(problems.opaque, 120)
        problems.isShown = false
        list.setAccessibleLabel("Images on the shelf")
        demo.addToBar(
            Box.button(icon: "list-add-symbolic", tooltip: "Add images") {
                FileChooser.chooseFiles("Add Images", in: demo.window) { files in Task { await shelf.keep(files) } }
            })
        let overlay = Widget(sinking: gtk_overlay_new()!)
        gtk_overlay_set_child(overlay.opaque, list.scroller.widget)
        gtk_overlay_add_overlay(overlay.opaque, empty.widget)
        gtk_widget_set_vexpand(overlay.widget, 1)
        demo.window.setContent(Box.column(0, overlay, problems))
        gtk_widget_add_controller(demo.window.widget, drop.opaque)
        drop.onDrop { [weak self] value in self?.take(value) ?? false }
        shelf.onProblems = { [weak self] in self?.showProblems() }
        shelf.onChange = { [weak self] names in self?.show(names) }
        shelf.open(keeping: demo.arguments.has("--auto") ? [] : demo.arguments.rest)
    }

    /// The error messages of the last operation, one a line.
    var problemText: String { problem.text }

    private func showProblems() {
        problem.text = shelf.problems.joined(separator: "\n")
        problems.isShown = !shelf.problems.isEmpty
        // The scroller has the focus, not the text in it.
        problems.setAccessibleLabel(problem.text)
    }

    private func show(_ names: [String]) {
        list.items.replace(with: names)
        gtk_widget_set_visible(empty.widget, names.isEmpty ? 1 : 0)
    }

    /// Stores the files of a `GdkFileList`.
    private func take(_ value: UnsafePointer<GValue>) -> Bool {
        guard let list = g_value_get_boxed(value) else { return false }
        let files = gdk_file_list_get_files(OpaquePointer(list))
        var paths: [String] = [], others: [String] = [], node = files
        while let file = node?.pointee.data {
            if let path = g_file_get_path(OpaquePointer(file)) {
                paths.append(String(cString: path))
                g_free(path)
            } else if let address = g_file_get_uri(OpaquePointer(file)) {
                others.append(String(cString: address))
                g_free(address)
            }
            node = node?.pointee.next
        }
        g_slist_free(files)
        Task { [shelf] in
            await shelf.keep(paths)
            shelf.refuse(others)
        }
        return !paths.isEmpty || !others.isEmpty
    }
}

/// A cell with an image that can be dragged, its editable name, and a button that deletes it.
@MainActor
final class ShelfCell: ListCell {
    let root: Widget
    private let photo = ExplainedPicture(fit: .contain)
    private var picture: Picture { photo.picture }
    private let deletion = Widget(sinking: gtk_button_new_from_icon_name("user-trash-symbolic")!)
    private let label = Widget(sinking: gtk_entry_new()!)
    private let shelf: Shelf
    private(set) var name: String?
    static var alive = 0
    private static var cells: [ObjectIdentifier: Weak] = [:]

    private struct Weak { weak var cell: ShelfCell? }

    init(_ shelf: Shelf) {
        self.shelf = shelf
        photo.picture.setSizeRequest(150, 120)
        gtk_editable_set_alignment(label.opaque, 0.5)
        gtk_entry_set_has_frame(UnsafeMutablePointer<GtkEntry>(label.opaque), 0)
        label.addClass("name")
        gtk_editable_set_width_chars(label.opaque, 10)
        gtk_widget_set_tooltip_text(deletion.widget, "Delete")
        for name in ["flat", "circular"] { deletion.addClass(name) }
        label.expand()
        root = Box.column(4, photo.root, Box.row(2, label, deletion))
        gtk_widget_set_valign(root.widget, GTK_ALIGN_START)
        Self.alive += 1
        Self.cells[ObjectIdentifier(self)] = Weak(cell: self)
        deletion.on("clicked") { [weak self] in self?.delete() }
        label.on("activate") { [weak self] in self?.rename() }
        let drag = GTKObject(owning: gtk_drag_source_new()!)
        g_object_ref(drag.raw)
        gtk_widget_add_controller(picture.widget, drag.opaque)
        drag.onDragPrepare { [weak self] in self?.dragged() }
    }

    isolated deinit {
        Self.alive -= 1
        Self.cells[ObjectIdentifier(self)] = nil
    }

    /// Returns the cell that shows an image.
    static func showing(_ name: String) -> ShelfCell? {
        cells.values.compactMap(\.cell).first { $0.name == name && $0.picture.isInView }
    }

    /// Whether the image is shown.
    var isShown: Bool {
        if case .shown = picture.binding.state { true } else { false }
    }

    var accessibleLabel: String? { name }

    func bind(_ identifier: String) {
        name = identifier
        label.setAccessibleLabel("Name of \(identifier)")
        deletion.setAccessibleLabel("Delete \(identifier)")
        gtk_editable_set_text(label.opaque, identifier)
        // Long names do not fit.
        gtk_widget_set_tooltip_text(label.widget, identifier)
        picture.tooltip = identifier
        picture.load(shelf.request(identifier), in: shelf.service) { [weak self] _ in
            self?.photo.explain(nil)
        } onFailure: { [weak self] error in
            self?.photo.explain(error)
        }
    }

    func unbind() {
        name = nil
        photo.explain(nil)
        picture.prepareForReuse()
    }

    /// Renames the image like a user: enters a name and presses Return.
    func edit(_ text: String) {
        gtk_editable_set_text(label.opaque, text)
        rename()
    }

    func delete() {
        guard let name else { return }
        Task { [shelf] in await shelf.delete(name) }
    }

    private func rename() {
        guard let name, let text = gtk_editable_get_text(label.opaque).map({ String(cString: $0) }), text != name
        else { return }
        // Shows the old name until the store reports the change.
        gtk_editable_set_text(label.opaque, name)
        Task { [shelf] in await shelf.rename(name, to: text) }
    }

    private func dragged() -> OpaquePointer? {
        guard let name, let path = shelf.file(name), let file = g_file_new_for_path(path) else { return nil }
        var value = GValue()
        g_value_init(&value, g_file_get_type())
        g_value_take_object(&value, UnsafeMutableRawPointer(file))
        defer { g_value_unset(&value) }
        return gdk_content_provider_new_for_value(&value).map { OpaquePointer($0) }
    }
}
