import CGTK

/// A grid or a list of cells that scrolls; cells are used again, and load what they show when it is first drawn.
///
/// ```swift
/// let grid = ItemList(.grid(columns: 6), of: ListItems(paths)) { PhotoCell(service) }
/// gtk_window_set_child(window, grid.scroller.widget)
/// ```
@MainActor
public final class ItemList {
    /// How cells are laid out.
    public enum Layout: Sendable, Hashable {
        /// At most so many beside each other. Say no more than will fit: GTK keeps 32 times as many cells.
        case grid(columns: Int)
        /// One below the other.
        case list
    }

    /// Which items are marked as selected.
    public enum Selection: Sendable, Hashable { case none, single }

    /// The items.
    public let items: ListItems
    /// Makes the cells.
    public let factory: ListFactory
    /// The `GtkGridView` or `GtkListView`.
    public let view: Widget
    /// The `GtkScrolledWindow` around it.
    public let scroller: Widget
    private let selection: GTKObject

    /// - Parameters:
    ///   - layout: How cells are laid out.
    ///   - items: What is shown.
    ///   - selection: Which items are marked. Default: none.
    ///   - make: Makes a cell.
    public init(
        _ layout: Layout, of items: ListItems, selection: Selection = .none,
        cell make: @escaping @MainActor () -> any ListCell
    ) {
        self.items = items
        factory = ListFactory(make)
        // Views and their models take over the references they are given.
        g_object_ref(items.raw)
        let model = selection == .single ? gtk_single_selection_new(items.opaque)! : gtk_no_selection_new(items.opaque)!
        self.selection = GTKObject(owning: model)
        g_object_ref(self.selection.raw)
        g_object_ref(factory.raw)
        switch layout {
        case .grid(let columns):
            view = Widget(sinking: gtk_grid_view_new(model, factory.opaque)!)
            gtk_grid_view_set_max_columns(view.opaque, guint(max(1, columns)))
        case .list:
            view = Widget(sinking: gtk_list_view_new(model, factory.opaque)!)
        }
        scroller = Widget(sinking: gtk_scrolled_window_new()!)
        gtk_scrolled_window_set_child(scroller.opaque, view.widget)
        gtk_widget_set_vexpand(scroller.widget, 1)
    }

    /// How far it is scrolled down, in points.
    public var offset: Double {
        get { gtk_adjustment_get_value(adjustment) }
        set { gtk_adjustment_set_value(adjustment, newValue) }
    }

    /// How far it can be scrolled down, in points.
    public var maximumOffset: Double {
        max(0, gtk_adjustment_get_upper(adjustment) - gtk_adjustment_get_page_size(adjustment))
    }

    /// Scrolls no further than it takes for an item to be seen.
    public func scroll(to index: Int) {
        guard items.identifiers.indices.contains(index) else { return }
        gtk_widget_activate_action_variant(view.widget, "list.scroll-to-item", g_variant_new_uint32(guint32(index)))
    }

    /// The item that is selected; nil for none.
    public var selectedIndex: Int? {
        get {
            guard isSelecting else { return nil }
            let index = Int(gtk_single_selection_get_selected(selection.opaque))
            return items.identifiers.indices.contains(index) ? index : nil
        }
        set {
            guard isSelecting else { return }
            gtk_single_selection_set_selected(selection.opaque, newValue.map { guint($0) } ?? GTK_INVALID_LIST_POSITION)
        }
    }

    /// Calls a closure when another item is selected.
    public func onSelection(_ body: @escaping @MainActor () -> Void) {
        guard isSelecting else { return }
        selection.on("notify::selected") { (_: UnsafeMutableRawPointer) in body() }
    }

    /// Calls a closure when an item is chosen, by a double click or by Return.
    public func onActivation(_ body: @escaping @MainActor (Int) -> Void) { view.onPosition("activate", body) }

    private var isSelecting: Bool {
        g_type_check_instance_is_a(
            selection.raw.assumingMemoryBound(to: GTypeInstance.self), gtk_single_selection_get_type()) != 0
    }

    private var adjustment: UnsafeMutablePointer<GtkAdjustment>? {
        gtk_scrolled_window_get_vadjustment(scroller.opaque)
    }
}
