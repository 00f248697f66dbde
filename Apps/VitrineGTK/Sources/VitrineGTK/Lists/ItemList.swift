import CGTK

/// A scrolling grid or list of reusable cells. A cell loads its image when it is first drawn.
///
/// ```swift
/// let grid = ItemList(.grid(columns: 6), of: ListItems(paths)) { PhotoCell(service) }
/// gtk_window_set_child(window, grid.scroller.widget)
/// ```
@MainActor
public final class ItemList {
    /// The layout of the cells.
    public enum Layout: Sendable, Hashable {
        /// A grid with at most this number of columns. Choose no more than fit: GTK keeps 32 times as many cells.
        case grid(columns: Int)
        /// One column.
        case list
    }

    /// The selection mode.
    public enum Selection: Sendable, Hashable { case none, single }

    /// The items.
    public let items: ListItems
    /// The factory of the cells.
    public let factory: ListFactory
    /// The `GtkGridView` or `GtkListView`.
    public let view: Widget
    /// The `GtkScrolledWindow` that contains the list.
    public let scroller: Widget
    private let selection: GTKObject

    /// Creates a list.
    ///
    /// - Parameters:
    ///   - layout: The layout of the cells.
    ///   - items: The items.
    ///   - selection: The selection mode. Default: none.
    ///   - make: Returns a new cell.
    public init(
        _ layout: Layout, of items: ListItems, selection: Selection = .none,
        cell make: @escaping @MainActor () -> any ListCell
    ) {
        self.items = items
        factory = ListFactory(make)
        // Views and models take ownership of the references passed to them.
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
        leaveItemsByTab()
    }

    /// Lets Tab leave an item for the next widget after the list, where GTK can do that: from 4.12 on. Before, Tab goes
    /// through all items. The arrow keys go from item to item in every version.
    private func leaveItemsByTab() {
        let instance = view.raw.assumingMemoryBound(to: GTypeInstance.self)
        let type = UnsafeMutableRawPointer(instance.pointee.g_class).assumingMemoryBound(to: GObjectClass.self)
        guard let property = g_object_class_find_property(type, "tab-behavior") else { return }
        var value = GValue()
        g_value_init(&value, property.pointee.value_type)
        g_value_set_enum(&value, 1)  // GTK_LIST_TAB_ITEM: https://docs.gtk.org/gtk4/enum.ListTabBehavior.html
        g_object_set_property(view.raw.assumingMemoryBound(to: GObject.self), "tab-behavior", &value)
        g_value_unset(&value)
    }

    /// Sets the name that screen readers speak; nil for none.
    ///
    /// The scroller gets it as well, because it has the focus while the list is empty.
    public func setAccessibleLabel(_ text: String?) {
        for widget in [view, scroller] { widget.setAccessibleLabel(text) }
    }

    /// The scroll position, in points.
    public var offset: Double {
        get { gtk_adjustment_get_value(adjustment) }
        set { gtk_adjustment_set_value(adjustment, newValue) }
    }

    /// The largest scroll position, in points.
    public var maximumOffset: Double {
        max(0, gtk_adjustment_get_upper(adjustment) - gtk_adjustment_get_page_size(adjustment))
    }

    /// Scrolls by the smallest distance that makes an item visible.
    public func scroll(to index: Int) {
        guard items.identifiers.indices.contains(index) else { return }
        gtk_widget_activate_action_variant(view.widget, "list.scroll-to-item", g_variant_new_uint32(guint32(index)))
    }

    /// The selected item; nil for none.
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

    /// Calls a closure when the selection changes.
    public func onSelection(_ body: @escaping @MainActor () -> Void) {
        guard isSelecting else { return }
        selection.on("notify::selected") { (_: UnsafeMutableRawPointer) in body() }
    }

    /// Whether one click activates an item. The pointer then selects items. Default: false, for a double click.
    public var activatesOnSingleClick: Bool {
        get {
            isGrid
                ? gtk_grid_view_get_single_click_activate(view.opaque) != 0
                : gtk_list_view_get_single_click_activate(view.opaque) != 0
        }
        set {
            if isGrid {
                gtk_grid_view_set_single_click_activate(view.opaque, newValue ? 1 : 0)
            } else {
                gtk_list_view_set_single_click_activate(view.opaque, newValue ? 1 : 0)
            }
        }
    }

    /// Calls a closure when an item is activated by Return, or by a double click; see ``activatesOnSingleClick``.
    public func onActivation(_ body: @escaping @MainActor (Int) -> Void) { view.onPosition("activate", body) }

    private var isGrid: Bool {
        g_type_check_instance_is_a(view.raw.assumingMemoryBound(to: GTypeInstance.self), gtk_grid_view_get_type()) != 0
    }

    private var isSelecting: Bool {
        g_type_check_instance_is_a(
            selection.raw.assumingMemoryBound(to: GTypeInstance.self), gtk_single_selection_get_type()) != 0
    }

    private var adjustment: UnsafeMutablePointer<GtkAdjustment>? {
        gtk_scrolled_window_get_vadjustment(scroller.opaque)
    }
}
