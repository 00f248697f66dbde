/// The record of one struct, enum or class at one version. Parts that only the code of the type has are not encoded.
package struct RecordSchema: Sendable {
    /// The kind of a type.
    package enum Kind: UInt8, Sendable {
        case structure, enumeration, object
    }

    /// A stored property.
    package struct Property: Sendable {
        /// The name under which the property is stored.
        package let name: String
        package let type: ValueType
        /// Earlier names of the property. Not encoded.
        let aliases: [String]
        /// Writes the default value; nil if there is none. Not encoded.
        var writeDefault: ((inout BinaryWriter) -> Void)? { defaultValue?.write }
        private let defaultValue: DefaultValue?
        /// Tells raw values that the type has from others. Not encoded.
        let check: ValueCheck?

        init(
            _ name: String, _ type: ValueType, aliases: [String] = [],
            writeDefault: ((inout BinaryWriter) -> Void)? = nil, check: ValueCheck? = nil
        ) {
            (self.name, self.type, self.aliases, self.check) = (name, type, aliases, check)
            defaultValue = writeDefault.map { DefaultValue(write: $0) }
        }
    }

    /// The expression of a default value.
    ///
    /// Unchecked: a `@Sendable` closure cannot evaluate the initial values of types that are isolated to an actor. The
    /// only closures that are not `@Sendable` come from ``RecordBuilder/_property(_:_:late:renamedFrom:default:)``.
    /// They are the initial values that stand in a declaration, so they capture no variables. They run only in
    /// conversions of values of the type, which need the conformance of the type, and so its isolation.
    private struct DefaultValue: @unchecked Sendable {
        let write: (inout BinaryWriter) -> Void
    }

    /// A case of an enum. The name of a payload value is its label, or an underscore and its number.
    package struct Case: Sendable, Equatable {
        let name: String
        let payload: [Payload]

        /// One value of a case.
        struct Payload: Sendable, Equatable {
            let name: String
            let type: ValueType
            /// Tells raw values that the type has from others. Not encoded.
            var check: ValueCheck?

            static func == (first: Self, second: Self) -> Bool {
                first.name == second.name && first.type == second.type
            }
        }
    }

    let name: String
    var version: SchemaVersion = "1"
    var kind = Kind.structure
    var superclass: String?
    /// The properties that are read before an object exists. All properties of a struct.
    var early: [Property] = []
    /// The properties that are read after the object exists. They follow those of the superclass.
    var late: [Property] = []
    var cases: [Case] = []
    /// Whether properties that extensions declare are stored.
    var isExtensible = false
    /// Earlier names of the type. Not encoded.
    var aliases: [String] = []
    /// The migration steps. Not encoded.
    var steps: [MigrationStep] = []

    init(name: String) { self.name = name }

    /// All properties, in the order of their bytes within this level of a class.
    package var properties: [Property] { early + late }

    /// Whether a value has no properties, so that it is stored as one byte 0.
    var isEmpty: Bool { kind == .structure && early.isEmpty && late.isEmpty && !isExtensible }
}

extension RecordSchema {
    func write(to writer: inout BinaryWriter) {
        writer.write(name)
        writer.write(version.canonicalText)
        writer.write(byte: kind.rawValue)
        writer.write(superclass)
        writer.write(isExtensible)
        for list in [early, late] {
            writer.write(unsigned: UInt64(list.count))
            for property in list {
                writer.write(property.name)
                property.type.write(to: &writer)
            }
        }
        writer.write(unsigned: UInt64(cases.count))
        for element in cases {
            writer.write(element.name)
            writer.write(unsigned: UInt64(element.payload.count))
            for value in element.payload {
                writer.write(value.name)
                value.type.write(to: &writer)
            }
        }
    }

    init(from reader: inout BinaryReader) throws(PersistenceError) {
        name = try reader.read()
        version = SchemaVersion(try reader.read(String.self))
        guard let kind = Kind(rawValue: try reader.readByte()) else { throw .malformed("unknown kind of type") }
        self.kind = kind
        superclass = try reader.read()
        isExtensible = try reader.read()
        early = try Self.properties(from: &reader)
        late = try Self.properties(from: &reader)
        for _ in 0..<(try reader.readCount()) {
            let name = try reader.read(String.self)
            var payload: [Case.Payload] = []
            for _ in 0..<(try reader.readCount()) {
                payload.append(Case.Payload(name: try reader.read(), type: try ValueType(from: &reader)))
            }
            cases.append(Case(name: name, payload: payload))
        }
    }

    private static func properties(from reader: inout BinaryReader) throws(PersistenceError) -> [Property] {
        var properties: [Property] = []
        for _ in 0..<(try reader.readCount()) {
            let name = try reader.read(String.self)
            properties.append(Property(name, try ValueType(from: &reader)))
        }
        return properties
    }
}

extension RecordSchema {
    /// Returns the changes to a later form of the type that need a new version.
    ///
    /// Three changes need none: new properties that are optional or have a default, renamed properties that name their
    /// aliases, and types that hold all values of the old types.
    package func differences(from new: RecordSchema) -> [String] {
        var differences: [String] = []
        if kind != new.kind { differences.append("\(name) is another kind of type") }
        if superclass != new.superclass { differences.append("another superclass") }
        differences += propertyDifferences(from: new)
        for element in cases {
            guard let other = new.cases.first(where: { $0.name == element.name }) else {
                differences.append("case \(element.name) was removed")
                continue
            }
            if other != element { differences.append("case \(element.name) holds other values") }
        }
        return differences
    }

    private func propertyDifferences(from new: RecordSchema) -> [String] {
        var differences: [String] = []
        let (old, new) = (properties, new.properties)
        let names = old.map(\.name)
        let renamed = new.renamed(in: names)
        let sources = new.map { renamed[$0.name] ?? names.firstIndex(of: $0.name) }
        for (index, property) in old.enumerated() {
            guard let other = sources.firstIndex(of: index).map({ new[$0] }) else {
                differences.append("\(property.name) was removed")
                continue
            }
            if !other.type.holds(property.type), !(property.type == .optional(other.type) && other.hasDefault) {
                differences.append("\(property.name) was \(property.type) and is \(other.type)")
            }
        }
        for (property, source) in zip(new, sources) where !property.hasDefault && !property.type.isOptional {
            if source == nil { differences.append("\(property.name) was added without a default value") }
        }
        return differences
    }
}

extension RecordSchema.Property {
    var hasDefault: Bool { writeDefault != nil }
}

// MARK: Earlier names

extension RecordSchema {
    /// Whether a property has earlier names.
    var hasAliases: Bool {
        early.contains { !$0.aliases.isEmpty } || late.contains { !$0.aliases.isEmpty }
    }

    /// A name that two properties have; nil if there is none.
    var repeatedName: String? {
        var names: Set<String> = []
        return properties.first { !names.insert($0.name).inserted }?.name
    }

    /// The reason why earlier names do not tell where a stored value belongs; nil if they do.
    var ambiguity: String? {
        var owners: [String: String] = [:]
        for property in properties {
            for alias in property.aliases where alias != property.name {
                if let owner = owners.updateValue(property.name, forKey: alias), owner != property.name {
                    return "\(owner) and \(property.name) were both named \(alias)"
                }
            }
        }
        // Each name has at most one later name, so following them either ends or comes back.
        for property in properties {
            var next = owners[property.name]
            for _ in properties {
                guard let name = next else { break }
                if name == property.name { return "the later names of \(name) lead back to \(name)" }
                next = owners[name]
            }
        }
        return nil
    }
}

extension [RecordSchema.Property] {
    /// Finds the values of properties that were renamed.
    ///
    /// Data without a property is older than the property, so that an earlier name in the data means this property. A
    /// property that has that name now is a later one, and its value is sought in the same way.
    ///
    /// - Parameter names: The names in the data.
    /// - Returns: For each property whose value does not stand under its own name, the index of the value; nil if the
    ///   data has no value of it.
    func renamed(in names: [String]) -> [String: Int?] {
        guard contains(where: { !$0.aliases.isEmpty }) else { return [:] }
        var sources: [String: Int?] = [:]
        var pending = filter { !names.contains($0.name) }
        while let property = pending.popLast() {
            let source = property.aliases.lazy.compactMap { names.firstIndex(of: $0) }.first
            sources[property.name] = .some(source)
            guard let source, let owner = first(where: { $0.name == names[source] }) else { continue }
            pending.append(owner)
        }
        return sources
    }
}

extension ValueType {
    /// Returns whether this type can hold every value of another type.
    package func holds(_ other: ValueType) -> Bool {
        if self == other { return true }
        switch (self, other) {
        case (.optional(let type), .optional(let other)): return type.holds(other)
        case (.optional(let type), _): return type.holds(other)
        case (.array(let type), .array(let other)), (.array(let type), .set(let other)),
            (.set(let type), .set(let other)):
            return type.holds(other)
        case (.dictionary(let key, let value), .dictionary(let otherKey, let otherValue)):
            return key.holds(otherKey) && value.holds(otherValue)
        case (.double, .float): return true
        default: break
        }
        guard let (signed, bits) = integer, let (otherSigned, otherBits) = other.integer else {
            return self == .double && (other.integer.map { $0.bits <= 32 } ?? false)
        }
        return signed == otherSigned ? bits >= otherBits : signed && bits > otherBits
    }

    private var integer: (signed: Bool, bits: Int)? {
        switch self {
        case .int8: (true, 8)
        case .int16: (true, 16)
        case .int32: (true, 32)
        case .int64: (true, 64)
        case .uint8: (false, 8)
        case .uint16: (false, 16)
        case .uint32: (false, 32)
        case .uint64: (false, 64)
        default: nil
        }
    }
}

/// The type of a stored value, as schemas record it.
package indirect enum ValueType: Hashable, Sendable {
    case bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float, double
    case string, data, date, uuid, url, decimal
    case optional(ValueType), array(ValueType), set(ValueType), dictionary(ValueType, ValueType)
    /// A struct or enum, inline.
    case record(String)
    /// A class or one of its subclasses.
    case object(String)

    /// The scalar types in the order of their codes, which never changes.
    static let scalars: [ValueType] = [
        .bool, .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64, .float, .double,
        .string, .data, .date, .uuid, .url, .decimal,
    ]
    private static let scalarNames = [
        "Bool", "Int8", "Int16", "Int32", "Int", "UInt8", "UInt16", "UInt32", "UInt", "Float", "Double",
        "String", "Data", "Date", "UUID", "URL", "Decimal",
    ]
    private static let scalarCodes = Dictionary(uniqueKeysWithValues: zip(scalars, UInt8(0)...))

    var isOptional: Bool {
        if case .optional = self { true } else { false }
    }
}

extension ValueType: CustomStringConvertible {
    /// The name of the type in Swift, with `Int` for 64 bits.
    package var description: String {
        switch self {
        case .optional(let type): "\(type)?"
        case .array(let type): "[\(type)]"
        case .set(let type): "Set<\(type)>"
        case .dictionary(let key, let value): "[\(key): \(value)]"
        case .record(let name), .object(let name): name
        default: Self.scalarCodes[self].map { Self.scalarNames[Int($0)] } ?? ""
        }
    }
}

extension ValueType {
    func write(to writer: inout BinaryWriter) {
        switch self {
        case .optional(let type):
            writer.write(byte: 32)
            type.write(to: &writer)
        case .array(let type):
            writer.write(byte: 33)
            type.write(to: &writer)
        case .set(let type):
            writer.write(byte: 34)
            type.write(to: &writer)
        case .dictionary(let key, let value):
            writer.write(byte: 35)
            key.write(to: &writer)
            value.write(to: &writer)
        case .record(let name):
            writer.write(byte: 36)
            writer.write(name)
        case .object(let name):
            writer.write(byte: 37)
            writer.write(name)
        default:
            writer.write(byte: Self.scalarCodes[self] ?? 0)
        }
    }

    init(from reader: inout BinaryReader) throws(PersistenceError) {
        try reader.enter()
        switch try reader.readByte() {
        case 32: self = .optional(try ValueType(from: &reader))
        case 33: self = .array(try ValueType(from: &reader))
        case 34: self = .set(try ValueType(from: &reader))
        case 35:
            let key = try ValueType(from: &reader)
            self = .dictionary(key, try ValueType(from: &reader))
        case 36: self = .record(try reader.read())
        case 37: self = .object(try reader.read())
        case let code where Int(code) < Self.scalars.count: self = Self.scalars[Int(code)]
        case let code: throw .malformed("no type has the code \(code)")
        }
        reader.leave()
    }
}
