/// One type as it was at one version: what is recorded beside the data, and what its code adds to that.
public struct RecordSchema: Sendable {
    /// What kind of type it is.
    public enum Kind: UInt8, Sendable {
        case structure, enumeration, object
    }

    /// A stored property.
    public struct Property: Sendable {
        /// The name it is stored under.
        public let name: String
        public let type: ValueType
        /// Names it was stored under before. Not recorded.
        public let aliases: [String]
        /// Writes the default value; nil for none. Not recorded.
        var writeDefault: ((inout BinaryWriter) -> Void)? { defaultValue?.write }
        private let defaultValue: DefaultValue?

        init(_ name: String, _ type: ValueType, aliases: [String], writeDefault: ((inout BinaryWriter) -> Void)?) {
            (self.name, self.type, self.aliases) = (name, type, aliases)
            defaultValue = writeDefault.map { DefaultValue(write: $0) }
        }
    }

    /// The expression of a default value.
    ///
    /// Unchecked: it stands in the type's declaration, and is evaluated where values of the type are read and written.
    /// A sendable function could not make values of types that are isolated to an actor.
    private struct DefaultValue: @unchecked Sendable {
        let write: (inout BinaryWriter) -> Void
    }

    /// A case of an enum. A value's name is its label or its number after an underscore.
    public struct Case: Sendable, Equatable {
        public let name: String
        public let payload: [Payload]

        /// One value of a case.
        public struct Payload: Sendable, Equatable {
            public let name: String
            public let type: ValueType
        }
    }

    public let name: String
    public internal(set) var version: SchemaVersion = "1"
    public internal(set) var kind = Kind.structure
    public internal(set) var superclass: String?
    /// Properties an object cannot be made without; all properties of a struct.
    public internal(set) var early: [Property] = []
    /// Properties that are read when the object exists; they come after those of the superclass.
    public internal(set) var late: [Property] = []
    public internal(set) var cases: [Case] = []
    /// Whether properties declared in extensions are stored with it.
    public internal(set) var isExtensible = false
    /// Names the type was stored under before. Not recorded.
    public internal(set) var aliases: [String] = []
    /// How older data is brought up to date. Not recorded.
    public internal(set) var steps: [MigrationStep] = []

    init(name: String) { self.name = name }

    /// All properties, in the order of their bytes within this level of a class.
    public var properties: [Property] { early + late }

    /// Whether a value takes no bytes but the one that stands for nothing.
    var isEmpty: Bool { kind == .structure && early.isEmpty && late.isEmpty && !isExtensible }
}

extension RecordSchema {
    func write(to writer: inout BinaryWriter) {
        name.persist(to: &writer)
        version.description.persist(to: &writer)
        writer.write(byte: kind.rawValue)
        superclass.persist(to: &writer)
        isExtensible.persist(to: &writer)
        for list in [early, late] {
            writer.write(unsigned: UInt64(list.count))
            for property in list {
                property.name.persist(to: &writer)
                property.type.write(to: &writer)
            }
        }
        writer.write(unsigned: UInt64(cases.count))
        for element in cases {
            element.name.persist(to: &writer)
            writer.write(unsigned: UInt64(element.payload.count))
            for value in element.payload {
                value.name.persist(to: &writer)
                value.type.write(to: &writer)
            }
        }
    }

    init(from reader: inout BinaryReader) throws(PersistenceError) {
        name = try reader.read()
        version = SchemaVersion(try reader.read(String.self))
        guard let kind = Kind(rawValue: try reader.readByte()) else { throw .malformed("no kind of type") }
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
            properties.append(Property(name, try ValueType(from: &reader), aliases: [], writeDefault: nil))
        }
        return properties
    }
}
