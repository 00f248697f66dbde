#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
public import VitrineCore
internal import VitrineCache

extension PersistentCoder {
    /// Returns an encoded value as JSON, which ``decode(_:fromJSON:)`` of this and later versions of the program reads.
    ///
    /// The JSON contains the schemas of the value. The type of the value is not needed. For readable output use
    /// ``PersistentValue/persistentDescription``.
    ///
    /// - Throws: ``PersistenceError``, for example ``PersistenceError/tooDeep(limit:)``: in JSON, objects are nested
    ///   where they link to each other.
    public func json(of bytes: [UInt8]) throws(PersistenceError) -> String {
        let (tree, schema) = try treeAndSchema(of: bytes)
        defer { tree.breakCycles() }
        return try JSONExport.document(tree, schema, depthLimit: depthLimit).description
    }

    /// Decodes JSON that ``json(of:)`` returned, and migrates the value if an older version of the program wrote it.
    ///
    /// Missing members get the default values of their properties. Unknown members are logged and dropped. JSON without
    /// schemas is read under the present schema.
    ///
    /// - Throws: ``PersistenceError`` with the path from the outermost value.
    public func decode<Value: PersistentValue>(
        _ type: Value.Type = Value.self, fromJSON text: String
    ) throws(PersistenceError) -> Value {
        let document: JSONValue
        do {
            document = try JSONValue(parsing: text.utf8)
        } catch {
            throw .malformed("invalid JSON: \(error)")
        }
        let asked = try registry.schema(of: type)
        var reading = JSONImport(registry: registry, depthLimit: depthLimit)
        let tree = try reading.document(document, asked)
        return try decode(type, from: upgrade(tree, to: asked).bytes.bytes)
    }
}

extension ObjectStore {
    /// Returns the value with a key as JSON, or nil if there is none. The type of the value is not needed.
    ///
    /// ``PersistentCoder/decode(_:fromJSON:)`` reads the JSON.
    public func json(for key: String, in group: GroupPath = .standard) throws(PersistenceError) -> String? {
        try reading(key, group: group) { bytes throws(PersistenceError) in try coder.json(of: bytes) }
    }
}

/// Converts untyped data to JSON that ``JSONImport`` reads.
///
/// - Structs and objects are JSON objects with the names of their properties. A name that begins with `$` gets a second
///   `$`. An object has its number as `$id`, its class as `$type` and its schema as `$schema`. A repeated object is
///   `{"$ref": number}`. Properties of extensions are under `$extensions`, each with `$schema` and `value`.
/// - A case of an enum is its name. A case with a payload is a JSON object with `$case`.
/// - A dictionary is a JSON object if its keys are strings, otherwise an array of pairs. A set is an array.
/// - Data is Base64, a date all bits of its seconds since 2001, a decimal number its digits. A URL with a base is
///   `{"relative", "base"}`.
/// - Numbers that JSON lacks are `"nan"`, `"inf"` and `"-inf"`, and for another NaN `"nan:"` with its bits in
///   hexadecimal.
/// - An optional of an optional that is nil inside is `{"$some": null}`.
private struct JSONExport {
    private let depthLimit: Int
    private var levels: Int
    private var isTooDeep = false
    /// The schemas that the import needs.
    private(set) var schemas: [UInt64: Schema] = [:]
    private var numbers: [ObjectIdentifier: Int] = [:]

    private init(depthLimit: Int) { (self.depthLimit, levels) = (depthLimit, depthLimit) }

    mutating func value(_ value: MigrationTree) -> JSONValue.Node {
        switch value {
        case .null: .null
        case .wrapped(let value): .object([Self.some: self.value(value)])
        case .bool(let bool): .bool(bool)
        case .int(let number): .number(.integer(number))
        case .uint(let number): .number(Int64(exactly: number).map { .integer($0) } ?? .unsigned(number))
        case .float(let number):
            // A conversion to Double would change the bits of some NaN.
            number.isNaN ? Self.nan(number.bitPattern, Float.nan.bitPattern) : Self.number(Double(number))
        case .double(let number): Self.number(number)
        case .decimal(let number): .string(number.isNaN ? "nan" : number.description)
        case .string(let text): .string(text)
        case .data(let data): .string(data.base64EncodedString())
        case .date(let date): Self.number(date.timeIntervalSinceReferenceDate)
        case .uuid(let identifier): .string(identifier.uuidString)
        case .url(let url): Self.url(url)
        case .array(let values): array(values)
        case .dictionary(let entries): dictionary(entries)
        case .record(let data): record(data)
        }
    }

    private static func number(_ number: Double) -> JSONValue.Node {
        if number.isNaN { return nan(number.bitPattern, Double.nan.bitPattern) }
        return number.isFinite ? .number(.double(number)) : .string(number < 0 ? "-inf" : "inf")
    }

    private static func nan<Bits: FixedWidthInteger>(_ bits: Bits, _ usual: Bits) -> JSONValue.Node {
        .string(bits == usual ? "nan" : nanMark + String(bits, radix: 16))
    }

    /// The text before the bits of a NaN.
    static let nanMark = "nan:"
    /// The only member of an optional in an optional.
    static let some = "$some"

    private static func url(_ url: URL) -> JSONValue.Node {
        guard let base = url.baseURL else { return .string(url.relativeString) }
        return .object(["relative": .string(url.relativeString), "base": .string(base.absoluteString)])
    }

    private mutating func array(_ values: [MigrationTree]) -> JSONValue.Node {
        var elements: [JSONValue.Node] = []
        for value in values { elements.append(self.value(value)) }
        return .array(elements)
    }

    /// Sorts entries by key, because members of JSON objects have no order and objects are numbered in order.
    private mutating func dictionary(_ entries: [MigrationTree.Entry]) -> JSONValue.Node {
        var named: [(key: String, value: MigrationTree)] = []
        for entry in entries {
            // A dictionary with this key alone would be read as an optional.
            guard case .string(let key) = entry.key, key != Self.some else {
                return array(entries.map { .array([$0.key, $0.value]) })
            }
            named.append((key, entry.value))
        }
        var members: [String: JSONValue.Node] = [:]
        for (key, value) in named.sorted(by: { Self.precedes($0.key, $1.key) }) {
            members[key] = self.value(value)
        }
        return .object(members)
    }

    private mutating func record(_ data: MigrationData) -> JSONValue.Node {
        var members: [String: JSONValue.Node] = [:]
        guard levels > 0 else {
            isTooDeep = true
            return .null
        }
        levels -= 1
        defer { levels += 1 }
        if data.isObject {
            if let known = numbers[ObjectIdentifier(data)] { return .object(["$ref": .number(.integer(Int64(known)))]) }
            let number = numbers.count
            numbers[ObjectIdentifier(data)] = number
            members["$id"] = .number(.integer(Int64(number)))
            members["$type"] = .string(data.typeName)
            if let schema = data.schema { members["$schema"] = name(of: schema) }
        }
        if let name = data.caseName {
            guard !data.names.isEmpty else { return .string(name) }
            members["$case"] = .string(name)
        }
        for name in data.names where data.extensionSchemas[name] == nil {
            if let value = data.tree(name) { members[Self.escaped(name)] = self.value(value) }
        }
        // Last, in the order of reading.
        var extensions: [String: JSONValue.Node] = [:]
        for (name, schema) in data.extensionSchemas.sorted(by: { Self.precedes($0.key, $1.key) }) {
            guard let value = data.tree(name) else { continue }
            extensions[name] = .object(["$schema": self.name(of: schema), "value": self.value(value)])
        }
        if !extensions.isEmpty { members["$extensions"] = .object(extensions) }
        return .object(members)
    }

    private mutating func name(of schema: Schema) -> JSONValue.Node {
        schemas[schema.fingerprint] = schema
        return .string(Schema.name(of: schema.fingerprint))
    }

    /// The order of members in writing and reading. It gives objects their numbers before they are referenced.
    static func precedes(_ name: String, _ other: String) -> Bool { name.utf8.lexicographicallyPrecedes(other.utf8) }

    /// Returns the name of the member for a property.
    static func escaped(_ name: String) -> String { name.hasPrefix("$") ? "$" + name : name }

    /// Returns a whole document.
    static func document(
        _ value: MigrationTree, _ root: Schema, depthLimit: Int
    ) throws(PersistenceError) -> JSONValue {
        var export = JSONExport(depthLimit: depthLimit)
        let exported = export.value(value)
        if export.isTooDeep { throw .tooDeep(limit: depthLimit) }
        let name = export.name(of: root)
        var schemas: [String: JSONValue.Node] = [:]
        for (fingerprint, schema) in export.schemas {
            schemas[Schema.name(of: fingerprint)] = .string(Data(schema.encoded).base64EncodedString())
        }
        return JSONValue(.object(["$schema": name, "schemas": .object(schemas), "value": exported]))
    }
}

/// Converts JSON that ``JSONExport`` wrote to untyped data.
private struct JSONImport {
    private let registry: TypeRegistry
    private var objects: [Int: MigrationData] = [:]
    private var levels: Int
    private let depthLimit: Int

    init(registry: TypeRegistry, depthLimit: Int) {
        (self.registry, levels, self.depthLimit) = (registry, depthLimit, depthLimit)
    }

    /// Reads a whole document.
    ///
    /// - Parameter asked: The schema of the requested type, for a document that names no schema.
    mutating func document(_ json: JSONValue, _ asked: Schema) throws(PersistenceError) -> MigrationTree {
        for (name, encoded) in json["schemas"]?.object ?? [:] {
            guard let text = encoded.string, let bytes = Data(base64Encoded: text) else {
                throw .malformed("the schema \(name) is not Base64")
            }
            registry.add(try Schema(encoded: [UInt8](bytes), registry: registry))
        }
        let schema = try json["$schema"].map { name throws(PersistenceError) in try self.schema(name) } ?? asked
        guard let value = json["value"] else { throw .missingValue(path: "value") }
        do throws(PersistenceError) {
            return try self.value(value, type: schema.root, schema: schema)
        } catch {
            // Objects that were read before the error can form cycles.
            for data in objects.values { data.removeAll() }
            throw error.below(schema.name)
        }
    }

    private func schema(_ name: JSONValue) throws(PersistenceError) -> Schema {
        guard let text = name.string, let fingerprint = UInt64(text, radix: 16) else {
            throw .malformed("the fingerprint of a schema is invalid")
        }
        guard let schema = registry.schema(fingerprint: fingerprint) else {
            throw .unknownSchema(fingerprint: fingerprint)
        }
        return schema
    }

    private mutating func value(
        _ json: JSONValue, type: ValueType, schema: Schema
    ) throws(PersistenceError) -> MigrationTree {
        switch type {
        case .optional(let type):
            if json.isNull { return .null }
            if type.isOptional, let members = json.object, members.count == 1, let member = json[JSONExport.some] {
                return .wrapped(try value(member, type: type, schema: schema))
            }
            return try value(json, type: type, schema: schema)
        case .array(let type), .set(let type):
            guard let elements = json.array else { throw Self.mismatch(type, json) }
            return .array(try values(elements) { element, `import` throws(PersistenceError) in
                try `import`.value(element, type: type, schema: schema)
            })
        case .dictionary(let keyType, let valueType):
            return try dictionary(json, keyType: keyType, valueType: valueType, schema: schema)
        case .record(let name): return .record(try inlineRecord(json, name: name, schema: schema))
        case .object(let name): return .record(try object(json, name: name, outer: schema))
        default:
            guard let value = JSONLeaf.value(json, type) else { throw Self.mismatch(type, json) }
            return value
        }
    }

    private mutating func values<Element>(
        _ elements: [JSONValue],
        _ body: (JSONValue, inout JSONImport) throws(PersistenceError) -> Element
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

    private static func mismatch(_ type: ValueType, _ json: JSONValue) -> PersistenceError {
        let found = switch json.root {
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
        _ json: JSONValue, keyType: ValueType, valueType: ValueType, schema: Schema
    ) throws(PersistenceError) -> MigrationTree {
        if let members = json.object, keyType == .string || members.isEmpty {
            var entries: [MigrationTree.Entry] = []
            for (key, member) in members.sorted(by: { JSONExport.precedes($0.key, $1.key) }) {
                do throws(PersistenceError) {
                    entries.append(
                        MigrationTree.Entry(
                            key: .string(key), value: try value(member, type: valueType, schema: schema)))
                } catch {
                    throw error.below("[\(key)]")
                }
            }
            return .dictionary(entries)
        }
        guard let pairs = json.array else { throw Self.mismatch(.dictionary(keyType, valueType), json) }
        return .dictionary(try values(pairs) { pair, `import` throws(PersistenceError) in
            guard let parts = pair.array, parts.count == 2 else { throw Self.mismatch(.array(keyType), pair) }
            let key = try `import`.value(parts[0], type: keyType, schema: schema)
            return MigrationTree.Entry(key: key, value: try `import`.value(parts[1], type: valueType, schema: schema))
        })
    }

    // MARK: Records

    private mutating func inlineRecord(
        _ json: JSONValue, name: String, schema: Schema
    ) throws(PersistenceError) -> MigrationData {
        guard let record = schema.records[name] else { throw .unregisteredType(name) }
        try enter()
        defer { levels += 1 }
        let data = MigrationData(record, schema)
        guard record.kind == .enumeration else {
            guard json.object != nil else { throw Self.mismatch(.record(name), json) }
            try fill(data, json: json, chain: [record], schema: schema)
            return data
        }
        guard let caseName = json.string ?? json["$case"]?.string,
            let element = record.cases.first(where: { $0.name == caseName })
        else { throw Self.mismatch(.record(name), json) }
        data.caseName = caseName
        for part in element.payload { try add(part.name, type: part.type, json: json, data: data, schema: schema) }
        return data
    }

    private mutating func object(
        _ json: JSONValue, name: String, outer: Schema
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
        try fill(data, json: json, chain: schema.chain(record.name), schema: schema)
        return data
    }

    private func objectSchema(_ json: JSONValue, _ name: String) throws(PersistenceError) -> Schema {
        if let fingerprint = json["$schema"] { return try schema(fingerprint) }
        let name = json["$type"]?.string ?? name
        guard let schema = registry.currentSchema(named: name) else { throw .unregisteredType(name) }
        return schema
    }

    private mutating func enter() throws(PersistenceError) {
        guard levels > 0 else { throw .tooDeep(limit: depthLimit) }
        levels -= 1
    }

    /// Reads the properties of a class and its superclasses, in the order of storage.
    private mutating func fill(
        _ data: MigrationData, json: JSONValue, chain: [RecordSchema], schema: Schema
    ) throws(PersistenceError) {
        let properties = chain.flatMap(\.early) + chain.reversed().flatMap(\.late)
        for property in properties {
            try add(property.name, type: property.type, json: json, data: data, schema: schema)
        }
        let extensions = json["$extensions"]?.object ?? [:]
        for (name, entry) in extensions.sorted(by: { JSONExport.precedes($0.key, $1.key) }) {
            let schema = try self.schema(entry["$schema"] ?? nil)
            do throws(PersistenceError) {
                data.append(name, try value(entry["value"] ?? nil, type: schema.root, schema: schema))
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

    /// Reads a member into a property. A missing member gets the default value later.
    private mutating func add(
        _ name: String, type: ValueType, json: JSONValue, data: MigrationData, schema: Schema
    ) throws(PersistenceError) {
        guard let member = json[JSONExport.escaped(name)] else { return }
        do throws(PersistenceError) {
            data.append(name, try value(member, type: type, schema: schema))
        } catch {
            throw error.below("." + name)
        }
    }
}

/// Conversion of scalar values from JSON.
private enum JSONLeaf {
    /// Returns the value, or nil if the JSON is not a value of the type.
    static func value(_ json: JSONValue, _ type: ValueType) -> MigrationTree? {
        switch type {
        case .bool: json.bool.map { .bool($0) }
        case .int8, .int16, .int32, .int64: json.number?.int64.map { .int($0) }
        case .uint8, .uint16, .uint32, .uint64: json.number?.uint64.map { .uint($0) }
        case .float:
            (nan(json, UInt32.self).map { Float(bitPattern: $0) } ?? number(json).map { Float($0) }).map { .float($0) }
        case .double: double(json).map { .double($0) }
        case .date: double(json).map { .date(Date(timeIntervalSinceReferenceDate: $0)) }
        case .string: json.string.map { .string($0) }
        case .data: json.string.flatMap { Data(base64Encoded: $0) }.map { .data($0) }
        case .uuid: json.string.flatMap { UUID(uuidString: $0) }.map { .uuid($0) }
        case .url: url(json).map { .url($0) }
        case .decimal: decimal(json).map { .decimal($0) }
        case .optional, .array, .set, .dictionary, .record, .object: nil
        }
    }

    private static func number(_ json: JSONValue) -> Double? {
        if let number = json.double { return number }
        return switch json.string {
        case "nan": .nan
        case "-nan": -.nan
        case "inf": .infinity
        case "-inf": -.infinity
        default: nil
        }
    }

    private static func double(_ json: JSONValue) -> Double? {
        nan(json, UInt64.self).map { Double(bitPattern: $0) } ?? number(json)
    }

    /// Returns the bits of a NaN; nil if the JSON has none.
    private static func nan<Bits: FixedWidthInteger>(_ json: JSONValue, _: Bits.Type) -> Bits? {
        guard let text = json.string, text.hasPrefix(JSONExport.nanMark) else { return nil }
        return Bits(text.dropFirst(JSONExport.nanMark.count), radix: 16)
    }

    private static func url(_ json: JSONValue) -> URL? {
        if let text = json.string { return URL(string: text) }
        guard let text = json["relative"]?.string, let base = json["base"]?.string else { return nil }
        return URL(string: text, relativeTo: URL(string: base))
    }

    private static func decimal(_ json: JSONValue) -> Decimal? {
        guard let text = json.string ?? json.number?.text else { return nil }
        return text == "nan" ? .nan : Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
    }
}
