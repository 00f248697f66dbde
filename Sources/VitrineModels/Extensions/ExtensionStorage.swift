/// Where a value keeps its properties that are declared in extensions, under the name `persistentExtensions` in types
/// that are `@Persistable(extensible: true)`.
///
/// A property looks its value up by a key. `@ExtensionProperty` writes this:
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
/// Values that no extension of this program knows stay as bytes and are stored again as they came. A copy of the
/// storage is a value of its own.
public struct ExtensionStorage {
    private enum Entry {
        case stored(ExtensionEntry)
        case live(any PersistentValue)
    }

    /// What the storages of one value share until one is changed: values are made of bytes when first looked at.
    private final class Box {
        var entries: [ExtensionName: Entry]
        let coder: PersistentCoder?

        init(entries: [ExtensionName: Entry], coder: PersistentCoder?) {
            self.entries = entries
            self.coder = coder
        }
    }

    private var box: Box?

    /// A storage without values.
    public init() {}

    /// A property's value, or its default if there is none or if it is of another type.
    public subscript<Value: PersistentValue>(key: ExtensionKey<Value>) -> Value {
        get { value(key.name, Value.self) ?? key.defaultValue() }
        set {
            if !isKnownUniquelyReferenced(&box) { box = Box(entries: box?.entries ?? [:], coder: box?.coder) }
            box?.entries[key.name] = .live(newValue)
        }
    }

    private func value<Value: PersistentValue>(_ name: ExtensionName, _ type: Value.Type) -> Value? {
        guard let box, let entry = box.entries[name] else { return nil }
        switch entry {
        case .live(let value): return value as? Value
        case .stored(let entry):
            let coder = box.coder ?? PersistentCoder()
            let value = entry.body.withUnsafeBytes { body in
                try? coder.decode(type, fingerprint: entry.fingerprint, body: body)
            }
            if let value { box.entries[name] = .live(value) }
            return value
        }
    }

    // MARK: Bytes

    /// Writes all values with their names.
    public func persist(to writer: inout BinaryWriter) {
        guard let box else { return writer.write(byte: 0) }
        var entries: [ExtensionEntry] = []
        for (name, entry) in box.entries {
            switch entry {
            case .stored(let entry): entries.append(entry)
            case .live(let value):
                if let entry = Self.entry(name, value, &writer) { entries.append(entry) }
            }
        }
        ExtensionEntry.write(entries, to: &writer)
    }

    private static func entry<Value: PersistentValue>(
        _ name: ExtensionName, _ value: Value, _ writer: inout BinaryWriter
    ) -> ExtensionEntry? {
        do throws(PersistenceError) {
            let type = value.persistentDynamicType
            let schema = try writer.registry.schema(of: type)
            var body = BinaryWriter(registry: writer.registry, depthLimit: max(0, writer.levels), capacity: 64)
            value.persist(to: &body)
            if let failure = body.failure { throw failure }
            return ExtensionEntry(
                name: name, fingerprint: schema.fingerprint, needed: body.fingerprints, body: body.bytes)
        } catch {
            writer.fail(error)
            return nil
        }
    }

    /// Reads values as ``persist(to:)`` wrote them.
    public init(from reader: inout BinaryReader) throws(PersistenceError) {
        let entries = try ExtensionEntry.entries(from: &reader)
        guard !entries.isEmpty else { return }
        var named: [ExtensionName: Entry] = [:]
        for entry in entries { named[entry.name] = .stored(entry) }
        let coder = PersistentCoder(registry: reader.registry, depthLimit: max(0, reader.levels))
        box = Box(entries: named, coder: coder)
    }
}

extension ExtensionStorage: Hashable {
    /// Whether the same properties have been set to equal values.
    public static func == (first: Self, second: Self) -> Bool {
        if first.box === second.box { return true }
        let entries = first.box?.entries ?? [:]
        let others = second.box?.entries ?? [:]
        guard entries.count == others.count else { return false }
        return entries.allSatisfy { name, entry in
            guard let other = others[name] else { return false }
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

    /// Feeds the names.
    public func hash(into hasher: inout Hasher) {
        for name in (box?.entries.keys).map({ $0.sorted() }) ?? [] { hasher.combine(name) }
    }
}

/// The name, category, type and default of a property that is declared in an extension.
///
/// It is made where the property is looked up, and stays in that isolation, as the default does.
public struct ExtensionKey<Value: PersistentValue> {
    let name: ExtensionName
    let defaultValue: () -> Value

    /// - Parameters:
    ///   - name: What the property is stored under.
    ///   - category: What sets it apart from properties of the same name in other extensions. Default none.
    ///   - value: What it is before it is set.
    public init(_ name: String, category: String = "", default value: @escaping @autoclosure () -> Value) {
        self.name = ExtensionName(name, category: category)
        defaultValue = value
    }
}
