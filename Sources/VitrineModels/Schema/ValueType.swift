/// The type of a stored value, as schemas record it.
public indirect enum ValueType: Hashable, Sendable {
    case bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float, double
    case string, data, date, uuid, url, decimal
    case optional(ValueType), array(ValueType), set(ValueType), dictionary(ValueType, ValueType)
    /// A struct or enum, inline.
    case record(String)
    /// A class or one of its subclasses.
    case object(String)

    /// In the order of their codes, which never changes.
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

    /// The name of a value's type as it stands in schemas, for the persistent names of generic types.
    public static func name<Value: PersistentValue>(of type: Value.Type) -> String {
        var schema = SchemaBuilder()
        return Value.persistentType(in: &schema).description
    }
}

extension ValueType: CustomStringConvertible {
    /// As in Swift, with `Int` for 64 bits.
    public var description: String {
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
            name.persist(to: &writer)
        case .object(let name):
            writer.write(byte: 37)
            name.persist(to: &writer)
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
