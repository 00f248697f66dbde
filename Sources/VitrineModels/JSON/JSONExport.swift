#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import VitrineCache

/// Makes JSON that can be read back of untyped data.
///
/// - Structs and objects are objects with their properties' names; a name that begins with `$` gets another one before.
///   An object has its number as `$id`, its class as `$type` and its schema as `$schema`; where it comes again it is
///   `{"$ref": number}`. Properties of extensions are under `$extensions`, each with `$schema` and `value`.
/// - A case of an enum is its name, or with values an object with `$case`.
/// - A dictionary is an object if its keys are texts, else an array of pairs. A set is an array.
/// - Data is Base64; a date the seconds since 2001, to the last bit; a decimal number its digits. Numbers that JSON has
///   not are `"nan"`, `"inf"`, `"-inf"`. A URL with a base is `{"relative", "base"}`.
struct JSONExport {
    /// The schemas that reading it takes.
    private(set) var schemas: [UInt64: Schema] = [:]
    private var numbers: [ObjectIdentifier: Int] = [:]

    mutating func value(_ value: MigrationValue) -> JSON.Value {
        switch value {
        case .null: .null
        case .bool(let bool): .bool(bool)
        case .int(let number): .number(.integer(number))
        case .uint(let number): .number(Int64(exactly: number).map { .integer($0) } ?? .unsigned(number))
        case .float(let number): Self.number(Double(number))
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

    private static func number(_ number: Double) -> JSON.Value {
        number.isFinite ? .number(.double(number)) : .string("\(number)")
    }

    private static func url(_ url: URL) -> JSON.Value {
        guard let base = url.baseURL else { return .string(url.relativeString) }
        return .object(["relative": .string(url.relativeString), "base": .string(base.absoluteString)])
    }

    private mutating func array(_ values: [MigrationValue]) -> JSON.Value {
        var elements: [JSON.Value] = []
        for value in values { elements.append(self.value(value)) }
        return .array(elements)
    }

    /// Entries go by the order of their keys, as the members of JSON's objects have none: objects are numbered in it.
    private mutating func dictionary(_ entries: [MigrationEntry]) -> JSON.Value {
        var named: [(key: String, value: MigrationValue)] = []
        for entry in entries {
            guard case .string(let key) = entry.key else {
                return array(entries.map { .array([$0.key, $0.value]) })
            }
            named.append((key, entry.value))
        }
        var members: [String: JSON.Value] = [:]
        for (key, value) in named.sorted(by: { Self.precedes($0.key, $1.key) }) {
            members[key] = self.value(value)
        }
        return .object(members)
    }

    private mutating func record(_ data: MigrationData) -> JSON.Value {
        var members: [String: JSON.Value] = [:]
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
            if let value = data[name] { members[Self.escaped(name)] = self.value(value) }
        }
        // After the others, as they are read.
        var extensions: [String: JSON.Value] = [:]
        for (name, schema) in data.extensionSchemas.sorted(by: { Self.precedes($0.key, $1.key) }) {
            guard let value = data[name] else { continue }
            extensions[name] = .object(["$schema": self.name(of: schema), "value": self.value(value)])
        }
        if !extensions.isEmpty { members["$extensions"] = .object(extensions) }
        return .object(members)
    }

    private mutating func name(of schema: Schema) -> JSON.Value {
        schemas[schema.fingerprint] = schema
        return .string(Schema.name(of: schema.fingerprint))
    }

    /// The order in which named things are written and read, so that objects get their numbers before references.
    static func precedes(_ name: String, _ other: String) -> Bool { name.utf8.lexicographicallyPrecedes(other.utf8) }

    /// The name of a property as a member's.
    static func escaped(_ name: String) -> String { name.hasPrefix("$") ? "$" + name : name }

    /// A whole document.
    static func document(_ value: MigrationValue, _ root: Schema) -> JSON {
        var export = JSONExport()
        let exported = export.value(value)
        let name = export.name(of: root)
        var schemas: [String: JSON.Value] = [:]
        for (fingerprint, schema) in export.schemas {
            schemas[Schema.name(of: fingerprint)] = .string(Data(schema.encoded).base64EncodedString())
        }
        return JSON(["$schema": name, "schemas": .object(schemas), "value": exported])
    }
}
