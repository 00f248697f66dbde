#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes a tree of data as JSON for people.
struct TreeDescription {
    private(set) var json = JSONText()
    private var described: Set<ObjectIdentifier> = []

    mutating func add(_ value: MigrationValue) {
        switch value {
        case .null: json.literal("null")
        case .bool(let bool): json.literal(bool ? "true" : "false")
        case .int(let number): json.literal("\(number)")
        case .uint(let number): json.literal("\(number)")
        case .float(let number): add(number)
        case .double(let number): add(number)
        case .decimal(let number): number.isNaN ? json.string("nan") : json.literal(number.description)
        case .string(let text): json.string(text)
        case .data(let data): json.string(data.base64EncodedString())
        case .date(let date): json.string(Self.text(of: date))
        case .uuid(let identifier): json.string(identifier.uuidString)
        case .url(let url): json.string(url.absoluteString)
        case .array(let values):
            json.open("[")
            for value in values {
                json.element()
                add(value)
            }
            json.close("]")
        case .dictionary(let entries):
            json.open("{")
            for entry in entries {
                json.member(Self.key(entry.key))
                add(entry.value)
            }
            json.close("}")
        case .record(let data): add(data)
        }
    }

    private mutating func add<Number: BinaryFloatingPoint & LosslessStringConvertible>(_ number: Number) {
        // JSON has no word for these.
        number.isFinite ? json.literal("\(number)") : json.string("\(number)")
    }

    private mutating func add(_ data: MigrationData) {
        if data.isObject, !described.insert(ObjectIdentifier(data)).inserted {
            return json.string("<*\(data.typeName) again>")
        }
        if let name = data.caseName {
            guard !data.names.isEmpty else { return json.string(name) }
            json.open("{")
            json.member(name)
            json.open("{")
            add(data.names, of: data)
            json.close("}")
            json.close("}")
            return
        }
        json.open("{")
        if let chain = data.schema?.chain(data.typeName), !chain.isEmpty {
            add(chain[...], of: data, mark: "*")
        } else {
            json.member("*" + data.typeName)
            json.open("{")
            add(data.names, of: data)
            json.close("}")
        }
        json.close("}")
    }

    private mutating func add(_ chain: ArraySlice<RecordSchema>, of data: MigrationData, mark: String) {
        guard let record = chain.first else { return }
        json.member(mark + record.name)
        json.open("{")
        if record.isExtensible { add(data.extensionSchemas.keys.sorted(), of: data) }
        add(record.properties.map(\.name), of: data)
        add(chain.dropFirst(), of: data, mark: "**")
        json.close("}")
    }

    private mutating func add(_ names: [String], of data: MigrationData) {
        for name in names {
            guard let value = data[name] else { continue }
            json.member(name)
            add(value)
        }
    }

    private static func key(_ value: MigrationValue) -> String {
        if case .string(let text) = value { return text }
        var description = TreeDescription()
        description.add(value)
        let text = description.json.text
        return text.hasPrefix("\"") ? String(text.dropFirst().dropLast()) : text
    }

    /// ISO 8601 for the years it has four digits for; else the seconds since 2001.
    private static func text(of date: Date) -> String {
        let seconds = date.timeIntervalSinceReferenceDate
        guard seconds > -63_113_904_000, seconds < 252_423_993_600 else { return "\(seconds)" }
        return date.formatted(.iso8601)
    }
}
