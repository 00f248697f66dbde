#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes untyped data of bytes and the schema they were written under.
package struct TreeReader {
    private let registry: TypeRegistry
    private var objects: [MigrationData] = []
    /// The schemas of the classes met, in their order.
    private var classes: [Schema] = []

    private init(registry: TypeRegistry) { self.registry = registry }

    /// Reads a value to its end.
    package static func read(
        _ body: UnsafeRawBufferPointer, under schema: Schema, registry: TypeRegistry, depthLimit: Int
    ) throws(PersistenceError) -> MigrationValue {
        var reader = BinaryReader(body, registry: registry, depthLimit: depthLimit)
        var tree = TreeReader(registry: registry)
        let value = try tree.value(schema.root, schema, &reader)
        guard reader.remaining == 0 else { throw .malformed("\(reader.remaining) bytes after the value") }
        return value
    }

    private mutating func value(
        _ type: ValueType, _ schema: Schema, _ reader: inout BinaryReader
    ) throws(PersistenceError) -> MigrationValue {
        switch type {
        case .optional(let type): return try reader.readByte() == 0 ? .null : try value(type, schema, &reader)
        case .array(let type), .set(let type):
            let count = try reader.readCount()
            var values: [MigrationValue] = []
            values.reserveCapacity(reader.reservation(count, stride: MemoryLayout<MigrationValue>.stride))
            for _ in 0..<count { values.append(try value(type, schema, &reader)) }
            return .array(values)
        case .dictionary(let keyType, let valueType):
            let count = try reader.readCount()
            var entries: [MigrationEntry] = []
            entries.reserveCapacity(reader.reservation(count, stride: MemoryLayout<MigrationEntry>.stride))
            for _ in 0..<count {
                let key = try value(keyType, schema, &reader)
                entries.append(MigrationEntry(key: key, value: try value(valueType, schema, &reader)))
            }
            return .dictionary(entries)
        case .record(let name): return .record(try inlineRecord(name, schema, &reader))
        case .object: return .record(try object(&reader))
        default: return try Self.leaf(type, &reader)
        }
    }

    // A function of its own, so that values inside one another take less of the stack.
    @inline(never)
    private static func leaf(
        _ type: ValueType, _ reader: inout BinaryReader
    ) throws(PersistenceError) -> MigrationValue {
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
        _ name: String, _ schema: Schema, _ reader: inout BinaryReader
    ) throws(PersistenceError) -> MigrationData {
        guard let record = schema.records[name] else { throw .malformed("there is no record of \(name)") }
        try reader.enter()
        let data = MigrationData(record, schema)
        if record.kind == .enumeration {
            let element = try record.readCase(&reader)
            data.caseName = element.name
            for part in element.payload { data.append(part.name, try value(part.type, schema, &reader)) }
        } else if record.isEmpty {
            _ = try reader.readByte()
        } else {
            try properties(record, data, schema, &reader)
        }
        reader.leave()
        return data
    }

    private mutating func properties(
        _ record: RecordSchema, _ data: MigrationData, _ schema: Schema, _ reader: inout BinaryReader
    ) throws(PersistenceError) {
        data.reserve(record.early.count + record.late.count)
        for property in record.early { data.append(property.name, try value(property.type, schema, &reader)) }
        if let name = record.superclass {
            guard let superclass = schema.records[name] else { throw .malformed("there is no record of \(name)") }
            try properties(superclass, data, schema, &reader)
        }
        for property in record.late { data.append(property.name, try value(property.type, schema, &reader)) }
        if record.isExtensible { try extensions(data, &reader) }
    }

    private func extensions(_ data: MigrationData, _ reader: inout BinaryReader) throws(PersistenceError) {
        for entry in try ExtensionEntry.entries(from: &reader) {
            guard let schema = registry.schema(fingerprint: entry.fingerprint) else {
                throw .unknownSchema(fingerprint: entry.fingerprint)
            }
            let value = try entry.body.lend { body throws(PersistenceError) in
                try Self.read(body, under: schema, registry: registry, depthLimit: max(0, reader.levels))
            }
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
        try reader.enter()
        let data = MigrationData(record, schema)
        objects.append(data)
        try properties(record, data, schema, &reader)
        reader.leave()
        return data
    }
}

extension RecordSchema {
    /// Reads which case of an enum follows.
    func readCase(_ reader: inout BinaryReader) throws(PersistenceError) -> Case {
        let number = try reader.readUnsigned()
        guard number < UInt64(cases.count) else { throw .malformed("\(name) has no case \(number)") }
        return cases[Int(number)]
    }
}
