#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import VitrineCache

/// Makes untyped data of JSON as ``JSONExport`` writes it, by a schema.
struct JSONImport {
    private let registry: TypeRegistry
    private var objects: [Int: MigrationData] = [:]
    private var levels: Int
    private let depthLimit: Int

    init(registry: TypeRegistry, depthLimit: Int) {
        (self.registry, levels, self.depthLimit) = (registry, depthLimit, depthLimit)
    }

    /// The value and the schema of a whole document.
    ///
    /// - Parameter asked: The schema of the type asked for, for a document that names none.
    mutating func document(_ json: JSON, _ asked: Schema) throws(PersistenceError) -> MigrationValue {
        for (name, encoded) in json["schemas"]?.object ?? [:] {
            guard let text = encoded.string, let bytes = Data(base64Encoded: text) else {
                throw .malformed("the schema \(name) is no Base64")
            }
            registry.add(try Schema(encoded: [UInt8](bytes), registry: registry))
        }
        let schema = try json["$schema"].map { name throws(PersistenceError) in try self.schema(name) } ?? asked
        guard let value = json["value"] else { throw .missingValue(path: "value") }
        do throws(PersistenceError) {
            return try self.value(value, schema.root, schema)
        } catch {
            throw error.below(schema.name)
        }
    }

    private func schema(_ name: JSON.Value) throws(PersistenceError) -> Schema {
        guard let text = name.string, let fingerprint = UInt64(text, radix: 16) else {
            throw .malformed("no fingerprint of a schema")
        }
        guard let schema = registry.schema(fingerprint: fingerprint) else {
            throw .unknownSchema(fingerprint: fingerprint)
        }
        return schema
    }

    private mutating func value(
        _ json: JSON.Value, _ type: ValueType, _ schema: Schema
    ) throws(PersistenceError) -> MigrationValue {
        switch type {
        case .optional(let type): return json.isNull ? .null : try value(json, type, schema)
        case .array(let type), .set(let type):
            guard let elements = json.array else { throw Self.mismatch(type, json) }
            return .array(try values(elements) { element, `import` throws(PersistenceError) in
                try `import`.value(element, type, schema)
            })
        case .dictionary(let keyType, let valueType): return try dictionary(json, keyType, valueType, schema)
        case .record(let name): return .record(try inlineRecord(json, name, schema))
        case .object(let name): return .record(try object(json, name, schema))
        default:
            guard let value = JSONLeaf.value(json, type) else { throw Self.mismatch(type, json) }
            return value
        }
    }

    private mutating func values<Element>(
        _ elements: [JSON.Value],
        _ body: (JSON.Value, inout JSONImport) throws(PersistenceError) -> Element
    ) throws(PersistenceError) -> [Element] {
        var values: [Element] = []
        for (index, element) in elements.enumerated() {
            do throws(PersistenceError) {
                values.append(try body(element, &self))
            } catch {
                throw error.below("[\(index)]")
            }
        }
        return values
    }

    private static func mismatch(_ type: ValueType, _ json: JSON.Value) -> PersistenceError {
        let found = switch json {
        case .null: "null"
        case .bool: "a Boolean"
        case .number(let number): number.text
        case .string(let text): "\"\(text)\""
        case .array: "an array"
        case .object: "an object"
        }
        return .typeMismatch(path: "", expected: type.description, found: found)
    }

    private mutating func dictionary(
        _ json: JSON.Value, _ keyType: ValueType, _ valueType: ValueType, _ schema: Schema
    ) throws(PersistenceError) -> MigrationValue {
        if let members = json.object, keyType == .string || members.isEmpty {
            var entries: [MigrationEntry] = []
            for (key, member) in members.sorted(by: { JSONExport.precedes($0.key, $1.key) }) {
                do throws(PersistenceError) {
                    entries.append(MigrationEntry(key: .string(key), value: try value(member, valueType, schema)))
                } catch {
                    throw error.below("[\(key)]")
                }
            }
            return .dictionary(entries)
        }
        guard let pairs = json.array else { throw Self.mismatch(.dictionary(keyType, valueType), json) }
        return .dictionary(try values(pairs) { pair, `import` throws(PersistenceError) in
            guard let parts = pair.array, parts.count == 2 else { throw Self.mismatch(.array(keyType), pair) }
            let key = try `import`.value(parts[0], keyType, schema)
            return MigrationEntry(key: key, value: try `import`.value(parts[1], valueType, schema))
        })
    }

    // MARK: Records

    private mutating func inlineRecord(
        _ json: JSON.Value, _ name: String, _ schema: Schema
    ) throws(PersistenceError) -> MigrationData {
        guard let record = schema.records[name] else { throw .unregisteredType(name) }
        try enter()
        defer { levels += 1 }
        let data = MigrationData(record, schema)
        guard record.kind == .enumeration else {
            guard json.object != nil else { throw Self.mismatch(.record(name), json) }
            try fill(data, json, [record], schema)
            return data
        }
        guard let caseName = json.string ?? json["$case"]?.string,
            let element = record.cases.first(where: { $0.name == caseName })
        else { throw Self.mismatch(.record(name), json) }
        data.caseName = caseName
        for part in element.payload { try add(part.name, part.type, json, data, schema) }
        return data
    }

    private mutating func object(
        _ json: JSON.Value, _ name: String, _ outer: Schema
    ) throws(PersistenceError) -> MigrationData {
        guard json.object != nil else { throw Self.mismatch(.object(name), json) }
        if let reference = json["$ref"] {
            guard let number = reference.int, let known = objects[number] else {
                throw .malformed("there is no object \(reference.number?.text ?? "") before its reference")
            }
            return known
        }
        let schema = try objectSchema(json, name)
        guard let record = schema.rootRecord, record.kind == .object else { throw .unregisteredType(schema.name) }
        try enter()
        defer { levels += 1 }
        let data = MigrationData(record, schema)
        if let number = json["$id"]?.int { objects[number] = data }
        try fill(data, json, schema.chain(record.name), schema)
        return data
    }

    private func objectSchema(_ json: JSON.Value, _ name: String) throws(PersistenceError) -> Schema {
        if let fingerprint = json["$schema"] { return try schema(fingerprint) }
        let name = json["$type"]?.string ?? name
        guard let schema = registry.currentSchema(named: name) else { throw .unregisteredType(name) }
        return schema
    }

    private mutating func enter() throws(PersistenceError) {
        guard levels > 0 else { throw .tooDeep(limit: depthLimit) }
        levels -= 1
    }

    /// Reads the properties of a class and its superclasses, in the order in which they are stored.
    private mutating func fill(
        _ data: MigrationData, _ json: JSON.Value, _ chain: [RecordSchema], _ schema: Schema
    ) throws(PersistenceError) {
        let properties = chain.flatMap(\.early) + chain.reversed().flatMap(\.late)
        for property in properties { try add(property.name, property.type, json, data, schema) }
        let extensions = json["$extensions"]?.object ?? [:]
        for (name, entry) in extensions.sorted(by: { JSONExport.precedes($0.key, $1.key) }) {
            let schema = try self.schema(entry["$schema"] ?? .null)
            do throws(PersistenceError) {
                data.append(name, try value(entry["value"] ?? .null, schema.root, schema))
            } catch {
                throw error.below(".\(name)")
            }
            data.extensionSchemas[name] = schema
        }
        let known = Set(properties.map { JSONExport.escaped($0.name) })
        let unknown = (json.object ?? [:]).keys.filter { !known.contains($0) && !Self.marks.contains($0) }
        if !unknown.isEmpty { registry.noteDropped(unknown.sorted(), of: data.typeName) }
    }

    private static let marks: Set<String> = ["$id", "$type", "$schema", "$case", "$extensions"]

    /// What is missing stays missing: the type's default stands for it.
    private mutating func add(
        _ name: String, _ type: ValueType, _ json: JSON.Value, _ data: MigrationData, _ schema: Schema
    ) throws(PersistenceError) {
        guard let member = json[JSONExport.escaped(name)] else { return }
        do throws(PersistenceError) {
            data.append(name, try value(member, type, schema))
        } catch {
            throw error.below("." + name)
        }
    }
}
