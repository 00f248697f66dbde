import CGTK

/// A reusable cell, which shows one item of a list after another. GTK creates one for each place that it keeps.
///
/// GTK 4 binds hundreds of cells for a dozen visible ones, and rebinds distant cells often. Keep ``bind(_:)`` short.
/// ``ImageWidget/load(_:in:when:onSuccess:onFailure:)`` waits until a cell is drawn.
@MainActor
public protocol ListCell: AnyObject {
    /// The widget that the list shows.
    var root: Widget { get }
    /// Shows the item with an identifier.
    func bind(_ identifier: String)
    /// The name of the item for screen readers. Default nil: the texts of the cell.
    var accessibleLabel: String? { get }
    /// Shows no item. Cancel the load of its image.
    func unbind()
}

extension ListCell {
    public var accessibleLabel: String? { nil }

    /// Gives ``accessibleLabel`` to GTK again, after it changed while the item stayed the same.
    public func updateAccessibleLabel() {
        // The focus is on the widget that GTK puts around the cell.
        guard let item = gtk_widget_get_parent(root.widget) else { return }
        Widget(sinking: item).setAccessibleLabel(accessibleLabel)
    }

    /// Moves the keyboard focus to the cell, from which the arrow keys continue.
    public func grabFocus() {
        guard let item = gtk_widget_get_parent(root.widget) else { return }
        gtk_widget_grab_focus(item)
    }
}

/// A `GtkSignalListItemFactory` that creates cells and binds items to them.
@MainActor
public final class ListFactory: GTKObject {
    private static let name = "vitrine-cell"
    /// The number of cells created.
    public private(set) var cellsMade = 0
    /// The number of calls of ``ListCell/bind(_:)``.
    public private(set) var bindings = 0

    /// Creates a factory.
    ///
    /// - Parameter make: Returns a new cell.
    public init(_ make: @escaping @MainActor () -> any ListCell) {
        super.init(owning: gtk_signal_list_item_factory_new()!)
        on("setup") { [weak self] (item: UnsafeMutableRawPointer) in
            let cell = make()
            self?.cellsMade += 1
            gtk_list_item_set_child(OpaquePointer(item), cell.root.widget)
            // The widget retains its cell, so the cell must not retain the widget.
            cell.root.attach(cell, as: Self.name)
            cell.root.becomeUnowned()
        }
        on("bind") { [weak self] (item: UnsafeMutableRawPointer) in
            self?.bindings += 1
            guard let string = gtk_list_item_get_item(OpaquePointer(item)) else { return }
            guard let cell = Self.cell(item) else { return }
            cell.bind(String(cString: gtk_string_object_get_string(OpaquePointer(string))))
            cell.updateAccessibleLabel()
        }
        on("unbind") { (item: UnsafeMutableRawPointer) in Self.cell(item)?.unbind() }
    }

    private static func cell(_ item: UnsafeMutableRawPointer) -> (any ListCell)? {
        guard let child = gtk_list_item_get_child(OpaquePointer(item)),
            let data = g_object_get_data(UnsafeMutableRawPointer(child).assumingMemoryBound(to: GObject.self), name)
        else { return nil }
        return Unmanaged<AnyObject>.fromOpaque(data).takeUnretainedValue() as? any ListCell
    }
}
