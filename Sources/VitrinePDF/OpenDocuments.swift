import VitrineImaging

/// The documents that requests came for last, kept open for the next ones.
struct OpenDocuments {
    private struct Entry {
        var file: UInt64
        var password: String?
        var document: OpenDocument
    }

    /// Documents kept open.
    static let capacity = 4
    /// Bytes of documents kept open, beside the one in use. Default 256 MB.
    static let byteCapacity = 256 << 20

    /// The one used last at the end.
    private var entries: [Entry] = []
    /// Documents opened so far.
    private(set) var opened = 0

    /// The document in `source`, open already or opened now.
    ///
    /// - Throws: As ``OpenDocument`` does.
    mutating func document(
        _ source: ByteSource, password: String?, limits: ImageLimits
    ) throws(ImageError) -> OpenDocument {
        let file = source.documentIdentity
        if let file, let index = entries.firstIndex(where: { $0.file == file && $0.password == password }) {
            let entry = entries.remove(at: index)
            entries.append(entry)
            return entry.document
        }
        makeRoom(for: source.count)
        let document = try OpenDocument(source, password: password, limits: limits)
        opened += 1
        if let file { entries.append(Entry(file: file, password: password, document: document)) }
        return document
    }

    private mutating func makeRoom(for count: Int) {
        var bytes = entries.reduce(count) { $0 + $1.document.byteCount }
        while !entries.isEmpty, entries.count >= Self.capacity || bytes > Self.byteCapacity {
            bytes -= entries.removeFirst().document.byteCount
        }
    }
}
