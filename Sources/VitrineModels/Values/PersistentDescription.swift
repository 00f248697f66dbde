#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension PersistentValue {
    /// The stored form as readable JSON.
    ///
    /// Properties of a type appear under `*Type`, those of its superclass inside it under `**Superclass`, and those of
    /// extensions as `(Category)name`. A repeated object appears by its name only, so cycles end. Records that are nested
    /// deeper than 256 levels appear by their names, too.
    public var persistentDescription: String {
        let coder = PersistentCoder()
        do throws(PersistenceError) {
            let tree = try coder.tree(of: coder.encode(self))
            defer { tree.breakCycles() }
            return tree.persistentDescription
        } catch {
            return "<\(Self.self): \(error)>"
        }
    }
}

extension PersistentObject {
    /// ``PersistentValue/persistentDescription`` after a line break, because other text usually precedes the first
    /// line.
    public var description: String { "\n" + persistentDescription }
}

extension MigrationTree {
    /// The data as readable JSON, in the form of ``PersistentValue/persistentDescription``.
    package var persistentDescription: String {
        var description = TreeDescription()
        description.add(self)
        return description.json.text
    }
}

/// Writes untyped data as readable JSON.
private struct TreeDescription {
    private(set) var json = JSONText()
    private var described: Set<ObjectIdentifier> = []
    private var depth = 0

    /// The largest number of nested records. Those in them appear by their names.
    private static let depthLimit = 256

    mutating func add(_ value: MigrationTree) {
        switch value {
        case .null, .wrapped: json.literal("null")
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
        // JSON has no infinities and no NaN.
        number.isFinite ? json.literal("\(number)") : json.string("\(number)")
    }

    private mutating func add(_ data: MigrationData) {
        if data.isObject, !described.insert(ObjectIdentifier(data)).inserted {
            return json.string("<*\(data.typeName) again>")
        }
        guard depth < Self.depthLimit else { return json.string("<*\(data.typeName)>") }
        depth += 1
        defer { depth -= 1 }
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
            guard let value = data.tree(name) else { continue }
            json.member(name)
            add(value)
        }
    }

    private static func key(_ value: MigrationTree) -> String {
        if case .string(let text) = value { return text }
        var description = TreeDescription()
        description.add(value)
        let text = description.json.text
        return text.hasPrefix("\"") ? String(text.dropFirst().dropLast()) : text
    }

    /// ISO 8601 for years of four digits, otherwise the seconds since 2001.
    private static func text(of date: Date) -> String {
        let seconds = date.timeIntervalSinceReferenceDate
        guard seconds > -63_113_904_000, seconds < 252_423_993_600 else { return "\(seconds)" }
        return date.formatted(.iso8601)
    }
}

/// Writes JSON with two spaces of indentation a level, in the given order.
private struct JSONText {
    private(set) var text = ""
    private var indentation = ""
    private var isEmpty: [Bool] = []

    /// Begins an object or array.
    mutating func open(_ bracket: String) {
        text += bracket
        indentation += "  "
        isEmpty.append(true)
    }

    /// Ends the innermost object or array.
    mutating func close(_ bracket: String) {
        indentation.removeLast(2)
        if isEmpty.popLast() == false { text += "\n" + indentation }
        text += bracket
    }

    /// Begins an element of an array.
    mutating func element() {
        text += isEmpty.last == true ? "\n" : ",\n"
        text += indentation
        if !isEmpty.isEmpty { isEmpty[isEmpty.count - 1] = false }
    }

    /// Begins a member of an object.
    mutating func member(_ name: String) {
        element()
        string(name)
        text += " : "
    }

    mutating func literal(_ word: String) { text += word }

    mutating func string(_ string: String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
