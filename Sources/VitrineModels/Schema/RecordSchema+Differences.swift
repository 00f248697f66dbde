extension RecordSchema {
    /// What a later form of the type changed that needs a new version: everything but added properties that have a
    /// default or are optional, renamed ones that say so, and types that hold all values of the old ones.
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
        for property in properties {
            guard let other = new.successor(of: property.name) else {
                differences.append("\(property.name) was removed")
                continue
            }
            if !other.type.holds(property.type), !(property.type == .optional(other.type) && other.hasDefault) {
                differences.append("\(property.name) was \(property.type) and is \(other.type)")
            }
        }
        for property in new.properties where !property.hasDefault && !property.type.isOptional {
            if !properties.contains(where: { property.isSuccessor(of: $0.name) }) {
                differences.append("\(property.name) was added without a default value")
            }
        }
        return differences
    }

    /// The property that has the values of one that was stored under this name.
    func successor(of name: String) -> Property? {
        properties.first { $0.name == name } ?? properties.first { $0.aliases.contains(name) }
    }
}

extension RecordSchema.Property {
    var hasDefault: Bool { writeDefault != nil }

    func isSuccessor(of name: String) -> Bool { self.name == name || aliases.contains(name) }
}

extension ValueType {
    /// Whether every value of another type can be stored as one of this.
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
