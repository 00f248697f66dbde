#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads an encoded value as untyped data, by the schema under which it was written.
package struct TreeReader {
    private let registry: TypeRegistry
    private var objects: [MigrationData] = []
    /// The schemas of the classes found, in order.
    private var classes: [Schema] = []

    private init(registry: TypeRegistry) { self.registry = registry }

    /// Reads a value. All bytes must belong to it.
    package static func read(
        _ body: UnsafeRawBufferPointer, under schema: Schema, registry: TypeRegistry, depthLimit: Int
    ) throws(PersistenceError) -> MigrationTree {
        var reader = BinaryReader(body, registry: registry, depthLimit: depthLimit)
        return try read(&reader, under: schema)
    }

    /// Reads the value of an extension's property, whose bytes stand in those of another reader.
    private static func value(
        _ body: [UInt8], under schema: Schema, inside outer: borrowing BinaryReader
    ) throws(PersistenceError) -> MigrationTree {
        // Closures cannot capture a borrowed reader, so the bytes are held here for as long as they are read.
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: body.count, alignment: 16)
        defer { bytes.deallocate() }
        bytes.copyBytes(from: body)
        var reader = BinaryReader(UnsafeRawBufferPointer(bytes), inside: outer)
        return try read(&reader, under: schema)
    }

    private static func read(
        _ reader: inout BinaryReader, under schema: Schema
    ) throws(PersistenceError) -> MigrationTree {
        var tree = TreeReader(registry: reader.registry)
        do throws(PersistenceError) {
            let value = try tree.value(schema.root, schema: schema, reader: &reader)
            guard reader.remaining == 0 else { throw .malformed("\(reader.remaining) bytes after the value") }
            return value
        } catch {
            // Objects that were read before the error can form cycles.
            for data in tree.objects { data.removeAll() }
            throw error
        }
    }

    private mutating func value(
        _ type: ValueType, schema: Schema, reader: inout BinaryReader
    ) throws(PersistenceError) -> MigrationTree {
        switch type {
        case .optional(let type):
            guard try reader.readByte() != 0 else { return .null }
            return try value(type, schema: schema, reader: &reader).inOptional
        case .array(let type), .set(let type):
            let count = try reader.readCount()
            var values: [MigrationTree] = []
            values.reserveCapacity(reader.reservation(count, stride: MemoryLayout<MigrationTree>.stride))
            for _ in 0..<count { values.append(try value(type, schema: schema, reader: &reader)) }
            return .array(values)
        case .dictionary(let keyType, let valueType):
            let count = try reader.readCount()
            var entries: [MigrationTree.Entry] = []
            entries.reserveCapacity(reader.reservation(count, stride: MemoryLayout<MigrationTree.Entry>.stride))
            for _ in 0..<count {
                let key = try value(keyType, schema: schema, reader: &reader)
                entries.append(
                    MigrationTree.Entry(key: key, value: try value(valueType, schema: schema, reader: &reader)))
            }
            return .dictionary(entries)
        case .record(let name): return .record(try inlineRecord(name, schema: schema, reader: &reader))
        case .object: return .record(try object(&reader))
        default: return try Self.leaf(type, &reader)
        }
    }

    // A separate function keeps the stack frame of the recursive one small.
    @inline(never)
    private static func leaf(
        _ type: ValueType, _ reader: inout BinaryReader
    ) throws(PersistenceError) -> MigrationTree {
        switch type {
        case .bool: .bool(try reader.read())
        case .int8, .int16, .int32, .int64: .int(try reader.readSigned())
        case .uint8, .uint16, .uint32, .uint64: .uint(try reader.readUnsigned())
        case .float: .float(try reader.read())
        case .double: .double(try reader.read())
        case .string: .string(try reader.read())
        case .data: .data(try reader.read())
        case .date: .date(try reader.read())
        case .uuid: .uuid(try reader.read())
        case .url: .url(try reader.read())
        case .decimal: .decimal(try reader.read())
        case .optional, .array, .set, .dictionary, .record, .object: .null
        }
    }

    private mutating func inlineRecord(
        _ name: String, schema: Schema, reader: inout BinaryReader
    ) throws(PersistenceError) -> MigrationData {
        guard let record = schema.records[name] else { throw .malformed("there is no record of \(name)") }
        try reader.enter()
        let data = MigrationData(record, schema)
        if record.kind == .enumeration {
            let element = try record.readCase(&reader)
            data.caseName = element.name
            for part in element.payload {
                data.append(part.name, try value(part.type, schema: schema, reader: &reader))
            }
        } else if record.isEmpty {
            _ = try reader.readByte()
        } else {
            try properties(record, data: data, schema: schema, reader: &reader)
        }
        reader.leave()
        return data
    }

    private mutating func properties(
        _ record: RecordSchema, data: MigrationData, schema: Schema, reader: inout BinaryReader
    ) throws(PersistenceError) {
        data.reserve(record.early.count + record.late.count)
        for property in record.early {
            data.append(property.name, try value(property.type, schema: schema, reader: &reader))
        }
        if let name = record.superclass {
            guard let superclass = schema.records[name] else { throw .malformed("there is no record of \(name)") }
            try properties(superclass, data: data, schema: schema, reader: &reader)
        }
        for property in record.late {
            data.append(property.name, try value(property.type, schema: schema, reader: &reader))
        }
        if record.isExtensible { try extensions(data, &reader) }
    }

    private func extensions(_ data: MigrationData, _ reader: inout BinaryReader) throws(PersistenceError) {
        for entry in try ExtensionEntry.entries(from: &reader) {
            guard let schema = registry.schema(fingerprint: entry.fingerprint) else {
                throw .unknownSchema(fingerprint: entry.fingerprint)
            }
            let value = try Self.value(entry.body, under: schema, inside: reader)
            data.append(entry.name.description, value)
            data.extensionSchemas[entry.name.description] = schema
        }
    }

    private mutating func object(_ reader: inout BinaryReader) throws(PersistenceError) -> MigrationData {
        let tag = try reader.readUnsigned()
        if tag == 0 {
            let number = try reader.readUnsigned()
            guard number < UInt64(objects.count) else { throw .malformed("there is no object \(number)") }
            return objects[Int(number)]
        }
        if tag == 1 {
            let fingerprint = try reader.readWord()
            guard let schema = registry.schema(fingerprint: fingerprint) else {
                throw .unknownSchema(fingerprint: fingerprint)
            }
            classes.append(schema)
        } else if tag - 2 >= UInt64(classes.count) {
            throw .malformed("there is no class \(tag)")
        }
        let schema = tag == 1 ? classes[classes.count - 1] : classes[Int(tag - 2)]
        guard case .object = schema.root, let record = schema.rootRecord else { throw .malformed("no class") }
        let data = MigrationData(record, schema)
        objects.append(data)
        try reader.insideObject { reader throws(PersistenceError) in
            try properties(record, data: data, schema: schema, reader: &reader)
        }
        return data
    }
}

extension RecordSchema {
    /// Reads the case of an enum.
    func readCase(_ reader: inout BinaryReader) throws(PersistenceError) -> Case {
        let number = try reader.readUnsigned()
        guard number < UInt64(cases.count) else { throw .malformed("\(name) has no case \(number)") }
        return cases[Int(number)]
    }
}

/// Writes untyped data under a schema. Properties are found by name, missing ones get defaults, and numbers are
/// widened.
struct TreeWriter {
    /// The schemas of the classes written, by the names their data goes by.
    private var classes: [String: Schema] = [:]
    /// Whether properties that have a value of a later version get their default values.
    private let replacesUnknownValues: Bool

    private init(replacesUnknownValues: Bool) { self.replacesUnknownValues = replacesUnknownValues }

    /// Writes a value.
    ///
    /// - Parameter replacesUnknownValues: Whether a property whose value has a case, a raw value or a class that the
    ///   program does not have gets its default value, or nil. Default false: the value is an error.
    /// - Throws: ``PersistenceError`` with the path from the outermost value. The bytes of the writer are useless then.
    static func write(
        _ value: MigrationTree, as schema: Schema, replacesUnknownValues: Bool = false,
        to writer: inout BinaryWriter
    ) throws(PersistenceError) {
        var tree = TreeWriter(replacesUnknownValues: replacesUnknownValues)
        do throws(PersistenceError) {
            try tree.write(value, type: schema.root, schema: schema, writer: &writer)
        } catch {
            throw error.below(schema.name)
        }
    }

    private func mismatch(_ type: ValueType, _ value: MigrationTree) -> PersistenceError {
        if case .null = value { return .missingValue(path: "") }
        return .typeMismatch(path: "", expected: type.description, found: value.kind)
    }

    private mutating func write(
        _ value: MigrationTree, type: ValueType, schema: Schema, writer: inout BinaryWriter
    ) throws(PersistenceError) {
        switch (type, value) {
        case (.optional, .null): writer.write(byte: 0)
        case (.optional(let type), .wrapped(let value)):
            guard type.isOptional else {
                return try write(value, type: .optional(type), schema: schema, writer: &writer)
            }
            writer.write(byte: 1)
            try write(value, type: type, schema: schema, writer: &writer)
        case (.optional(let type), _):
            writer.write(byte: 1)
            try write(value, type: type, schema: schema, writer: &writer)
        case (.array(let type), .array(let values)), (.set(let type), .array(let values)):
            writer.write(unsigned: UInt64(values.count))
            for (index, value) in values.enumerated() {
                do throws(PersistenceError) {
                    try write(value, type: type, schema: schema, writer: &writer)
                } catch {
                    throw error.below("[\(index)]")
                }
            }
        case (.dictionary(let keyType, let valueType), .dictionary(let entries)):
            writer.write(unsigned: UInt64(entries.count))
            for entry in entries {
                try write(entry.key, type: keyType, schema: schema, writer: &writer)
                try write(entry.value, type: valueType, schema: schema, writer: &writer)
            }
        case (.record(let name), .record(let data)): try writeInline(data, name: name, schema: schema, writer: &writer)
        case (.object(let name), .record(let data)): try writeObject(data, name: name, writer: &writer)
        default:
            guard Self.writeLeaf(value, type: type, writer: &writer) else { throw mismatch(type, value) }
        }
    }

    /// - Returns: false if the value has another type.
    private static func writeLeaf(_ value: MigrationTree, type: ValueType, writer: inout BinaryWriter) -> Bool {
        switch (type, value) {
        case (.bool, .bool(let bool)): writer.write(bool)
        case (.string, .string(let text)): writer.write(text)
        case (.data, .data(let data)): writer.write(data)
        case (.date, .date(let date)): writer.write(date)
        case (.uuid, .uuid(let identifier)): writer.write(identifier)
        case (.url, .url(let url)): writer.write(url)
        case (.decimal, .decimal(let number)): writer.write(number)
        case (.float, .float(let number)): writer.write(number)
        case (.double, _):
            guard let number = Double._converted(from: MigrationValue(value)) else { return false }
            writer.write(number)
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
        _ value: MigrationTree, as type: Number.Type, _ writer: inout BinaryWriter
    ) -> Bool {
        guard let number = Number._converted(from: MigrationValue(value)) else { return false }
        writer.write(number)
        return true
    }

    /// Returns whether a type with raw values has a value. Values of another stored type are accepted.
    static func hasValue<Value: PersistentValue>(_ value: MigrationTree, of type: ValueType, _: Value.Type) -> Bool {
        var writer = BinaryWriter(registry: .shared, capacity: 64)
        guard writeLeaf(value, type: type, writer: &writer) else { return true }
        return writer.withBytes { bytes in
            var reader = BinaryReader(bytes, registry: .shared)
            return (try? Value._restore(from: &reader)) != nil
        }
    }

    // MARK: Unknown values

    /// Returns whether the program has the values in a property: no case of an enum, raw value or class is a later one.
    ///
    /// - Parameter depth: The number of enclosing values. Required properties lead from one value to the next.
    private func knows(
        _ value: MigrationTree, type: ValueType, schema: Schema, registry: TypeRegistry, depth: Int = 0
    ) -> Bool {
        guard depth < 64 else { return true }
        func knowsPart(_ value: MigrationTree, type: ValueType, schema: Schema) -> Bool {
            knows(value, type: type, schema: schema, registry: registry, depth: depth + 1)
        }
        func knowsProperties(_ properties: [RecordSchema.Property], data: MigrationData, schema: Schema) -> Bool {
            properties.allSatisfy { property in
                guard !property.hasDefault, !property.type.isOptional, let value = data.tree(property.name) else {
                    return true
                }
                return property.check?.accepts(value) ?? true && knowsPart(value, type: property.type, schema: schema)
            }
        }
        switch (type, value) {
        case (.optional(let type), .wrapped(let value)), (.optional(let type), let value):
            return value == .null || knowsPart(value, type: type, schema: schema)
        case (.array(let type), .array(let values)), (.set(let type), .array(let values)):
            return values.allSatisfy { knowsPart($0, type: type, schema: schema) }
        case (.dictionary(let key, let type), .dictionary(let entries)):
            return entries.allSatisfy {
                knowsPart($0.key, type: key, schema: schema) && knowsPart($0.value, type: type, schema: schema)
            }
        case (.record(let name), .record(let data)):
            guard let record = schema.records[name] else { return true }
            guard record.kind == .enumeration else {
                return knowsProperties(record.properties, data: data, schema: schema)
            }
            guard let element = record.cases.first(where: { $0.name == data.caseName }) else { return false }
            return element.payload.allSatisfy { part in
                guard let value = data.tree(part.name) else { return true }
                return part.check?.accepts(value) ?? true && knowsPart(value, type: part.type, schema: schema)
            }
        case (.object(let name), .record(let data)):
            guard let schema = registry.currentSchema(named: data.typeName) else { return false }
            let chain = schema.chain(schema.name)
            return chain.contains { $0.name == name }
                && knowsProperties(chain.flatMap(\.properties), data: data, schema: schema)
        default: return true
        }
    }

    // MARK: Records

    private mutating func writeInline(
        _ data: MigrationData, name: String, schema: Schema, writer: inout BinaryWriter
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
                    let value = data.tree(part.name) ?? .null
                    if let check = part.check { try check.require(value) }
                    try write(value, type: part.type, schema: schema, writer: &writer)
                } catch {
                    throw error.below("." + part.name)
                }
            }
        } else {
            var taken = [Bool](repeating: false, count: data.names.count)
            if record.isEmpty {
                writer.write(byte: 0)
            } else {
                let renamed = record.hasAliases ? record.properties.renamed(in: data.names) : [:]
                try writeProperties(
                    record, data: data, schema: schema, renamed: renamed, taken: &taken, writer: &writer)
            }
            noteDropped(data, taken: taken, registry: writer.registry)
        }
        writer.leave()
    }

    private mutating func writeObject(
        _ data: MigrationData, name: String, writer: inout BinaryWriter
    ) throws(PersistenceError) {
        guard let schema = classes[data.typeName] ?? writer.registry.currentSchema(named: data.typeName) else {
            throw .unregisteredType(data.typeName)
        }
        classes[data.typeName] = schema
        let chain = schema.chain(schema.name)
        guard let record = chain.first, chain.contains(where: { $0.name == name }) else {
            throw mismatch(.object(name), .record(data))
        }
        // The writer numbers the objects, because default values can be objects, too.
        guard writer.beginObject(data, fingerprint: schema.fingerprint) else {
            if let failure = writer.failure { throw failure }
            return
        }
        let renamed = chain.contains { $0.hasAliases } ? chain.flatMap(\.properties).renamed(in: data.names) : [:]
        var taken = [Bool](repeating: false, count: data.names.count)
        var failure: PersistenceError?
        writer.insideObject { writer in
            do throws(PersistenceError) {
                try writeProperties(
                    record, data: data, schema: schema, renamed: renamed, taken: &taken, writer: &writer)
            } catch {
                failure = error
            }
        }
        if let failure = failure ?? writer.failure { throw failure }
        noteDropped(data, taken: taken, registry: writer.registry)
    }

    /// - Parameters:
    ///   - renamed: The indices of values that stand under earlier names.
    ///   - taken: Marks the values of the data that were written.
    private mutating func writeProperties(
        _ record: RecordSchema, data: MigrationData, schema: Schema, renamed: [String: Int?],
        taken: inout [Bool], writer: inout BinaryWriter
    ) throws(PersistenceError) {
        for property in record.early {
            try write(property, data: data, schema: schema, renamed: renamed, taken: &taken, writer: &writer)
        }
        if let name = record.superclass, let superclass = schema.records[name] {
            try writeProperties(
                superclass, data: data, schema: schema, renamed: renamed, taken: &taken, writer: &writer)
        }
        for property in record.late {
            try write(property, data: data, schema: schema, renamed: renamed, taken: &taken, writer: &writer)
        }
        if record.isExtensible { try writeExtensions(data, taken: &taken, writer: &writer) }
    }

    /// Records the properties of the data that were not written.
    private func noteDropped(_ data: MigrationData, taken: [Bool], registry: TypeRegistry) {
        guard data.schema != nil, taken.contains(false) else { return }
        registry.noteDropped(taken.indices.filter { !taken[$0] }.map { data.names[$0] }, of: data.typeName)
    }

    private mutating func write(
        _ property: RecordSchema.Property, data: MigrationData, schema: Schema, renamed: [String: Int?],
        taken: inout [Bool], writer: inout BinaryWriter
    ) throws(PersistenceError) {
        let index = renamed[property.name] ?? data.storedIndex(property.name)
        if let index { taken[index] = true }
        switch index.map({ data.values[$0] }) {
        case .null? where !property.type.isOptional, nil:
            guard Self.writeDefault(of: property, &writer) else { throw .missingValue(path: "." + property.name) }
        case let value?:
            do throws(PersistenceError) {
                if replacesUnknownValues {
                    let isKnown = property.check?.accepts(value) ?? true
                        && knows(value, type: property.type, schema: schema, registry: writer.registry)
                    if !isKnown, Self.writeDefault(of: property, &writer) { return }
                }
                if let check = property.check { try check.require(value) }
                try write(value, type: property.type, schema: schema, writer: &writer)
            } catch {
                throw error.below("." + property.name)
            }
        }
    }

    /// - Returns: false if the property has no default value and is not optional.
    private static func writeDefault(of property: RecordSchema.Property, _ writer: inout BinaryWriter) -> Bool {
        if let writeDefault = property.writeDefault {
            writeDefault(&writer)
        } else if property.type.isOptional {
            writer.write(byte: 0)
        } else {
            return false
        }
        return true
    }

    private func writeExtensions(
        _ data: MigrationData, taken: inout [Bool], writer: inout BinaryWriter
    ) throws(PersistenceError) {
        var entries: [ExtensionEntry] = []
        for (key, schema) in data.extensionSchemas {
            guard let index = data.storedIndex(key) else { continue }
            taken[index] = true
            let value = data.values[index]
            var body = BinaryWriter(inside: writer)
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
