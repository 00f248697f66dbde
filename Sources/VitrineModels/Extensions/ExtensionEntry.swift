/// The name of a property that is declared in an extension: unique together with its category.
struct ExtensionName: Hashable, Comparable, CustomStringConvertible {
    let category: String
    let name: String

    /// `(Category)name`, or `name` without a category.
    var description: String { category.isEmpty ? name : "(\(category))\(name)" }

    init(_ name: String, category: String) {
        self.name = name
        self.category = category
    }

    init(description: String) {
        if description.hasPrefix("("), let end = description.firstIndex(of: ")") {
            category = String(description[description.index(after: description.startIndex)..<end])
            name = String(description[description.index(after: end)...])
        } else {
            (category, name) = ("", description)
        }
    }

    static func < (first: Self, second: Self) -> Bool {
        (first.category, first.name) < (second.category, second.name)
    }
}

/// A stored property of an extension as bytes: they stay as they are until a program that knows the property looks.
struct ExtensionEntry: Equatable {
    let name: ExtensionName
    /// The schema of the value.
    let fingerprint: UInt64
    /// The schemas of objects in it.
    let needed: [UInt64]
    let body: [UInt8]

    /// Writes entries in the order of their names.
    static func write(_ entries: [ExtensionEntry], to writer: inout BinaryWriter) {
        writer.write(unsigned: UInt64(entries.count))
        for entry in entries.sorted(by: { $0.name < $1.name }) {
            entry.name.category.persist(to: &writer)
            entry.name.name.persist(to: &writer)
            writer.write(word: entry.fingerprint)
            writer.need(entry.fingerprint)
            writer.write(unsigned: UInt64(entry.needed.count))
            for fingerprint in entry.needed {
                writer.write(word: fingerprint)
                writer.need(fingerprint)
            }
            entry.body.withUnsafeBytes { writer.write(counted: $0) }
        }
    }

    /// Reads entries as they were written.
    static func entries(from reader: inout BinaryReader) throws(PersistenceError) -> [ExtensionEntry] {
        var entries: [ExtensionEntry] = []
        for _ in 0..<(try reader.readCount()) {
            let category = try reader.read(String.self)
            let name = ExtensionName(try reader.read(), category: category)
            let fingerprint = try reader.readWord()
            var needed: [UInt64] = []
            for _ in 0..<(try reader.readCount()) { needed.append(try reader.readWord()) }
            let body = [UInt8](try reader.readCounted())
            entries.append(ExtensionEntry(name: name, fingerprint: fingerprint, needed: needed, body: body))
        }
        return entries
    }
}
