/// The storage for properties that extensions of a type declare.
///
/// Types that are `@Persistable(extensible: true)` have a storage named `persistentExtensions`. A property finds its
/// value by an ``ExtensionKey``. `@ExtensionProperty` generates this code:
///
/// ```swift
/// extension Foo {
///     var etag: String? {
///         get { persistentExtensions[ExtensionKey("etag", category: "Sync", default: nil)] }
///         set { persistentExtensions[ExtensionKey("etag", category: "Sync", default: nil)] = newValue }
///     }
/// }
/// ```
///
/// Values that no extension of this program declares stay encoded and are stored again unchanged. The storage has value
/// semantics.
public struct ExtensionStorage: Hashable {
    private enum Entry {
        case stored(ExtensionEntry)
        case live(any PersistentValue)
    }

    /// The entries, shared by copies until one is changed. Encoded values are decoded on first access.
    private final class Box: Hashable {
        var entries: [ExtensionName: Entry]
        let coder: PersistentCoder?

        init(entries: [ExtensionName: Entry], coder: PersistentCoder?) {
            self.entries = entries
            self.coder = coder
        }

        func value<Value: PersistentValue>(_ name: ExtensionName, _ type: Value.Type) -> Value? {
            guard let entry = entries[name] else { return nil }
            switch entry {
            case .live(let value): return value as? Value
            case .stored(let entry):
                let coder = coder ?? PersistentCoder()
                let value = entry.body.withUnsafeBytes { body in
                    try? coder.decode(type, fingerprint: entry.fingerprint, body: body)
                }
                if let value { entries[name] = .live(value) }
                return value
            }
        }

        /// Returns whether the same properties are set to equal values.
        static func == (first: Box, second: Box) -> Bool {
            if first === second { return true }
            guard first.entries.count == second.entries.count else { return false }
            return first.entries.allSatisfy { name, entry in
                guard let other = second.entries[name] else { return false }
                switch (entry, other) {
                case (.stored(let entry), .stored(let other)): return entry == other
                case (.live(let value), _): return second.has(value, name)
                case (.stored, .live(let value)): return first.has(value, name)
                }
            }
        }

        private func has<Value: PersistentValue>(_ value: Value, _ name: ExtensionName) -> Bool {
            self.value(name, Value.self) == value
        }

        /// Hashes the names of the properties that are set.
        func hash(into hasher: inout Hasher) { for name in entries.keys.sorted() { hasher.combine(name) } }
    }

    /// nil while no property is set.
    private var box: Box?

    /// Creates an empty storage.
    public init() {}

    /// The value of a property. The default if no value is stored or if the stored value has another type.
    public subscript<Value: PersistentValue>(key: ExtensionKey<Value>) -> Value {
        get { box?.value(key.name, Value.self) ?? key.defaultValue() }
        set {
            if !isKnownUniquelyReferenced(&box) { box = Box(entries: box?.entries ?? [:], coder: box?.coder) }
            box?.entries[key.name] = .live(newValue)
        }
    }

    // MARK: Bytes

    /// Writes all values with their names.
    fileprivate func write(to writer: inout BinaryWriter) {
        guard let box else { return writer.write(byte: 0) }
        var entries: [ExtensionEntry] = []
        for (name, entry) in box.entries {
            switch entry {
            case .stored(let entry): entries.append(entry)
            case .live(let value):
                if let entry = Self.entry(name, value: value, writer: &writer) { entries.append(entry) }
            }
        }
        ExtensionEntry.write(entries, to: &writer)
    }

    private static func entry<Value: PersistentValue>(
        _ name: ExtensionName, value: Value, writer: inout BinaryWriter
    ) -> ExtensionEntry? {
        do throws(PersistenceError) {
            let type = value._persistentDynamicType
            let schema = try writer.registry.schema(of: type)
            var body = BinaryWriter(inside: writer)
            value._persist(to: &body)
            if let failure = body.failure { throw failure }
            return ExtensionEntry(
                name: name, fingerprint: schema.fingerprint, needed: body.fingerprints, body: body.bytes)
        } catch {
            writer.fail(error)
            return nil
        }
    }

    /// Reads values that ``write(to:)`` wrote.
    fileprivate init(from reader: inout BinaryReader) throws(PersistenceError) {
        let entries = try ExtensionEntry.entries(from: &reader)
        guard !entries.isEmpty else { return }
        var named: [ExtensionName: Entry] = [:]
        for entry in entries { named[entry.name] = .stored(entry) }
        let coder = PersistentCoder(registry: reader.registry, depthLimit: max(0, reader.levels))
        box = Box(entries: named, coder: coder)
    }
}

/// The name, category, type and default value of a property that an extension declares.
///
/// A key is not `Sendable`: it evaluates the default value in the isolation of the property.
public struct ExtensionKey<Value: PersistentValue> {
    let name: ExtensionName
    let defaultValue: () -> Value

    /// Creates a key.
    ///
    /// - Parameters:
    ///   - name: The name under which the property is stored.
    ///   - category: Distinguishes properties of the same name in different extensions. Default empty.
    ///   - value: The value of the property until it is set.
    public init(_ name: String, category: String = "", default value: @escaping @autoclosure () -> Value) {
        self.name = ExtensionName(name, category: category)
        defaultValue = value
    }
}

/// The name of a property that an extension declares. Name and category together are unique.
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

/// An encoded property of an extension. It is decoded when a program that declares the property reads it.
struct ExtensionEntry: Equatable {
    let name: ExtensionName
    /// The schema of the value.
    let fingerprint: UInt64
    /// The schemas of the objects in the value.
    let needed: [UInt64]
    let body: [UInt8]

    /// Writes entries, sorted by name.
    static func write(_ entries: [ExtensionEntry], to writer: inout BinaryWriter) {
        writer.write(unsigned: UInt64(entries.count))
        for entry in entries.sorted(by: { $0.name < $1.name }) {
            writer.write(entry.name.category)
            writer.write(entry.name.name)
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

    /// Reads entries that ``write(_:to:)`` wrote.
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

extension BinaryWriter {
    /// Writes the properties of extensions.
    public mutating func write(_ extensions: ExtensionStorage) { extensions.write(to: &self) }
}

extension BinaryReader {
    /// Reads the properties of extensions.
    public mutating func read(
        _ type: ExtensionStorage.Type = ExtensionStorage.self
    ) throws(PersistenceError) -> ExtensionStorage {
        try ExtensionStorage(from: &self)
    }
}
