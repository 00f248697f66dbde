import CGTK

/// What shows an item of a list, and after that others: made once for each place that GTK keeps.
///
/// GTK 4 binds hundreds of cells for the dozen that are seen, and the far ones again and again. Do little in
/// ``bind(_:)``; ``ImageWidget/load(_:when:onSuccess:onFailure:)`` waits until a cell is drawn.
@MainActor
public protocol ListCell: AnyObject {
    /// What the list shows.
    var root: Widget { get }
    /// Shows the item known by `identifier`.
    func bind(_ identifier: String)
    /// Shows none: what is being loaded is not wanted any more.
    func unbind()
}

/// Makes cells, and gives them items in turn: a `GtkSignalListItemFactory`.
@MainActor
public final class ListFactory: GTKObject {
    private static let name = "vitrine-cell"
    /// How many cells were made.
    public private(set) var cellsMade = 0
    /// How often one was given an item.
    public private(set) var bindings = 0

    /// - Parameter make: Makes a cell.
    public init(_ make: @escaping @MainActor () -> any ListCell) {
        super.init(owning: gtk_signal_list_item_factory_new()!)
        on("setup") { [weak self] (item: UnsafeMutableRawPointer) in
            let cell = make()
            self?.cellsMade += 1
            gtk_list_item_set_child(OpaquePointer(item), cell.root.widget)
            // The widget keeps its cell, so the cell must not keep the widget.
            cell.root.attach(cell, as: Self.name)
            cell.root.becomeUnowned()
        }
        on("bind") { [weak self] (item: UnsafeMutableRawPointer) in
            self?.bindings += 1
            guard let string = gtk_list_item_get_item(OpaquePointer(item)) else { return }
            Self.cell(item)?.bind(String(cString: gtk_string_object_get_string(OpaquePointer(string))))
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
