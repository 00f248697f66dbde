import VitrineCore
import VitrineImaging

/// The documents given by closures, or in memory, that were used last: open, so that the next page need not ask again.
///
/// One that is closed while a page of it is being drawn stays readable until that is done.
package final class OpenDocumentCache: Sendable {
    private struct Entry {
        var id: ObjectIdentifier
        var source: ByteSource
        var close: @Sendable () -> Void
    }

    /// Documents kept open.
    package static let capacity = 4
    package static let shared = OpenDocumentCache(capacity: capacity)

    private let capacity: Int
    /// The one used last at the end.
    private let entries = Locked<[Entry]>([])

    package init(capacity: Int) { self.capacity = max(1, capacity) }

    /// The open document of `id`.
    package func source(_ id: ObjectIdentifier) -> ByteSource? {
        entries.withLock { entries in
            guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
            let entry = entries.remove(at: index)
            entries.append(entry)
            return entry.source
        }
    }

    /// Keeps a document, and closes the one that has not been used for the longest time.
    package func keep(_ source: ByteSource, of id: ObjectIdentifier, _ close: @escaping @Sendable () -> Void) {
        let closing = entries.withLock { entries in
            entries.append(Entry(id: id, source: source, close: close))
            return entries.count > capacity ? entries.removeFirst().close : nil
        }
        closing?()
    }

    /// Closes the document of `id`, if it is open.
    package func close(_ id: ObjectIdentifier) {
        let closing = entries.withLock { entries in
            entries.firstIndex { $0.id == id }.map { entries.remove(at: $0).close }
        }
        closing?()
    }
}
