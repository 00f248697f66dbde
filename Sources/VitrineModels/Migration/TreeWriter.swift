/// Writes untyped data as a schema wants it: by names, with defaults for what is missing, and numbers widened.
struct TreeWriter {
    /// The schemas of the classes written, by the names their data goes by.
    private var classes: [String: Schema] = [:]

    private init() {}

    /// - Throws: ``PersistenceError`` with the path from the outermost value; the writer's bytes are of no use then.
    static func write(
        _ value: MigrationValue, as schema: Schema, to writer: inout BinaryWriter
    ) throws(PersistenceError) {
        var tree = TreeWriter()
        do throws(PersistenceError) {
            try tree.write(value, schema.root, schema, &writer)
        } catch {
            throw error.below(schema.name)
        }
    }

    private func mismatch(_ type: ValueType, _ value: MigrationValue) -> PersistenceError {
        if case .null = value { return .missingValue(path: "") }
        return .typeMismatch(path: "", expected: type.description, found: value.kind)
    }

    private mutating func write(
        _ value: MigrationValue, _ type: ValueType, _ schema: Schema, _ writer: inout BinaryWriter
    ) throws(PersistenceError) {
        switch (type, value) {
        case (.optional, .null): writer.write(byte: 0)
        case (.optional(let type), _):
            writer.write(byte: 1)
            try write(value, type, schema, &writer)
        case (.array(let type), .array(let values)), (.set(let type), .array(let values)):
            writer.write(unsigned: UInt64(values.count))
            for (index, value) in values.enumerated() {
                do throws(PersistenceError) {
                    try write(value, type, schema, &writer)
                } catch {
                    throw error.below("[\(index)]")
                }
            }
        case (.dictionary(let keyType, let valueType), .dictionary(let entries)):
            writer.write(unsigned: UInt64(entries.count))
            for entry in entries {
                try write(entry.key, keyType, schema, &writer)
                try write(entry.value, valueType, schema, &writer)
            }
        case (.record(let name), .record(let data)): try writeInline(data, name, schema, &writer)
        case (.object(let name), .record(let data)): try writeObject(data, name, &writer)
        default:
            guard Self.writeLeaf(value, type, &writer) else { throw mismatch(type, value) }
        }
    }

    /// - Returns: false if the value is none of the type's.
    private static func writeLeaf(_ value: MigrationValue, _ type: ValueType, _ writer: inout BinaryWriter) -> Bool {
        switch (type, value) {
        case (.bool, .bool(let bool)): bool.persist(to: &writer)
        case (.string, .string(let text)): text.persist(to: &writer)
        case (.data, .data(let data)): data.persist(to: &writer)
        case (.date, .date(let date)): date.persist(to: &writer)
        case (.uuid, .uuid(let identifier)): identifier.persist(to: &writer)
        case (.url, .url(let url)): url.persist(to: &writer)
        case (.decimal, .decimal(let number)): number.persist(to: &writer)
        case (.float, .float(let number)): number.persist(to: &writer)
        case (.double, _):
            guard let number = Double.converted(from: value) else { return false }
            number.persist(to: &writer)
        case (.int8, _): return write(value, as: Int8.self, &writer)
        case (.int16, _): return write(value, as: Int16.self, &writer)
        case (.int32, _): return write(value, as: Int32.self, &writer)
        case (.int64, _): return write(value, as: Int64.self, &writer)
        case (.uint8, _): return write(value, as: UInt8.self, &writer)
        case (.uint16, _): return write(value, as: UInt16.self, &writer)
        case (.uint32, _): return write(value, as: UInt32.self, &writer)
        case (.uint64, _): return write(value, as: UInt64.self, &writer)
        default: return false
        }
        return true
    }

    private static func write<Number: PersistentValue & MigrationConvertible>(
        _ value: MigrationValue, as type: Number.Type, _ writer: inout BinaryWriter
    ) -> Bool {
        guard let number = Number.converted(from: value) else { return false }
        number.persist(to: &writer)
        return true
    }

    // MARK: Records

    private mutating func writeInline(
        _ data: MigrationData, _ name: String, _ schema: Schema, _ writer: inout BinaryWriter
    ) throws(PersistenceError) {
        guard let record = schema.records[name] else { throw .unregisteredType(name) }
        guard data.typeName == name || record.aliases.contains(data.typeName) else {
            throw mismatch(.record(name), .record(data))
        }
        guard writer.enter() else { throw writer.failure ?? .malformed("too deep") }
        if record.kind == .enumeration {
            guard let number = record.cases.firstIndex(where: { $0.name == data.caseName }) else {
                throw .typeMismatch(path: "", expected: name, found: "case \(data.caseName ?? "")")
            }
            writer.write(unsigned: UInt64(number))
            for part in record.cases[number].payload {
                do throws(PersistenceError) {
                    try write(data[part.name] ?? .null, part.type, schema, &writer)
                } catch {
                    throw error.below("." + part.name)
                }
            }
        } else {
            var taken = [Bool](repeating: false, count: data.names.count)
            if record.isEmpty {
                writer.write(byte: 0)
            } else {
                try writeProperties(record, data, schema, &taken, &writer)
            }
            noteDropped(data, taken, writer.registry)
        }
        writer.leave()
    }

    private mutating func writeObject(
        _ data: MigrationData, _ name: String, _ writer: inout BinaryWriter
    ) throws(PersistenceError) {
        guard let schema = classes[data.typeName] ?? writer.registry.currentSchema(named: data.typeName) else {
            throw .unregisteredType(data.typeName)
        }
        classes[data.typeName] = schema
        let chain = schema.chain(schema.name)
        guard let record = chain.first, chain.contains(where: { $0.name == name }) else {
            throw mismatch(.object(name), .record(data))
        }
        // The writer knows the objects: default values may be objects as well.
        guard writer.beginObject(data, fingerprint: schema.fingerprint) else {
            if let failure = writer.failure { throw failure }
            return
        }
        var taken = [Bool](repeating: false, count: data.names.count)
        try writeProperties(record, data, schema, &taken, &writer)
        noteDropped(data, taken, writer.registry)
        writer.leave()
    }

    /// - Parameter taken: Gets which of the data's values something was made of.
    private mutating func writeProperties(
        _ record: RecordSchema, _ data: MigrationData, _ schema: Schema, _ taken: inout [Bool],
        _ writer: inout BinaryWriter
    ) throws(PersistenceError) {
        for property in record.early { try write(property, data, schema, &taken, &writer) }
        if let name = record.superclass, let superclass = schema.records[name] {
            try writeProperties(superclass, data, schema, &taken, &writer)
        }
        for property in record.late { try write(property, data, schema, &taken, &writer) }
        if record.isExtensible { try writeExtensions(data, &taken, &writer) }
    }

    /// Tells which of the data's names nothing was made of (R138).
    private func noteDropped(_ data: MigrationData, _ taken: [Bool], _ registry: TypeRegistry) {
        guard data.schema != nil, taken.contains(false) else { return }
        registry.noteDropped(taken.indices.filter { !taken[$0] }.map { data.names[$0] }, of: data.typeName)
    }

    private mutating func write(
        _ property: RecordSchema.Property, _ data: MigrationData, _ schema: Schema, _ taken: inout [Bool],
        _ writer: inout BinaryWriter
    ) throws(PersistenceError) {
        var index = data.index(property.name)
        for alias in property.aliases where index == nil { index = data.index(alias) }
        if let index { taken[index] = true }
        switch index.map({ data.values[$0] }) {
        case .null? where !property.type.isOptional, nil:
            if let writeDefault = property.writeDefault {
                writeDefault(&writer)
            } else if property.type.isOptional {
                writer.write(byte: 0)
            } else {
                throw .missingValue(path: "." + property.name)
            }
        case let value?:
            do throws(PersistenceError) {
                try write(value, property.type, schema, &writer)
            } catch {
                throw error.below("." + property.name)
            }
        }
    }

    private func writeExtensions(
        _ data: MigrationData, _ taken: inout [Bool], _ writer: inout BinaryWriter
    ) throws(PersistenceError) {
        var entries: [ExtensionEntry] = []
        for (key, schema) in data.extensionSchemas {
            guard let index = data.index(key) else { continue }
            taken[index] = true
            let value = data.values[index]
            var body = BinaryWriter(registry: writer.registry, depthLimit: max(0, writer.levels), capacity: 64)
            do throws(PersistenceError) {
                try Self.write(value, as: schema, to: &body)
            } catch {
                throw error.below("." + key)
            }
            if let failure = body.failure { throw failure }
            entries.append(
                ExtensionEntry(
                    name: ExtensionName(description: key), fingerprint: schema.fingerprint,
                    needed: body.fingerprints, body: body.bytes))
        }
        ExtensionEntry.write(entries, to: &writer)
    }
}
