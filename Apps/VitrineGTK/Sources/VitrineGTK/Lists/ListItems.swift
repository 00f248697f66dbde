import CGTK

/// The items of a list. Each has a unique identifier: a path, a URL or a name.
///
/// Several lists can show the same items. A change of the items updates only the affected cells.
@MainActor
public final class ListItems: GTKObject {
    /// The identifiers of the items, in order.
    public private(set) var identifiers: [String]

    public init(_ identifiers: [String] = []) {
        self.identifiers = identifiers
        super.init(owning: gtk_string_list_new(nil)!)
        splice(0, removing: 0, adding: identifiers[...])
    }

    /// The number of items.
    public var count: Int { identifiers.count }

    /// Replaces the items. Unchanged items at the beginning and at the end keep their cells.
    public func replace(with identifiers: [String]) {
        let old = self.identifiers
        let common = min(old.count, identifiers.count)
        var (head, tail) = (0, 0)
        while head < common, old[head] == identifiers[head] { head += 1 }
        while tail < common - head, old[old.count - 1 - tail] == identifiers[identifiers.count - 1 - tail] { tail += 1 }
        self.identifiers = identifiers
        guard old.count > head + tail || identifiers.count > head + tail else { return }
        splice(head, removing: old.count - head - tail, adding: identifiers[head..<(identifiers.count - tail)])
    }

    private func splice(_ position: Int, removing count: Int, adding texts: ArraySlice<String>) {
        var strings: [UnsafePointer<CChar>?] = texts.map { UnsafePointer(g_strdup($0)) }
        strings.append(nil)
        gtk_string_list_splice(opaque, guint(position), guint(count), &strings)
        for string in strings { g_free(UnsafeMutableRawPointer(mutating: string)) }
    }
}
