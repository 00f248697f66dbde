import CGTK

/// The items of a list, each known by a text that no other has: a path, an address, a name.
///
/// Which of several lists shows them does not matter; a change of the items changes no more of the lists than it must.
@MainActor
public final class ListItems: GTKObject {
    /// What the items are known by, in order.
    public private(set) var identifiers: [String]

    public init(_ identifiers: [String] = []) {
        self.identifiers = identifiers
        super.init(owning: gtk_string_list_new(nil)!)
        splice(0, removing: 0, adding: identifiers[...])
    }

    /// How many there are.
    public var count: Int { identifiers.count }

    /// Replaces the items. Those at the beginning and at the end that stay keep their cells.
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
