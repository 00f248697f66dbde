internal import VitrineCore

/// Everything needed to read a value's bytes without its code: the value's type, its classes up to the root, and every
/// struct and enum inside. Objects inside have schemas of their own.
///
/// Its ``fingerprint`` stands at the beginning of the bytes; its ``encoded`` form is kept beside them.
public final class Schema: Sendable {
    /// The type of the value.
    public let root: ValueType
    /// The records by name.
    public let records: [String: RecordSchema]
    /// The first 8 bytes of the SHA-256 of ``encoded``, in big endian. Never 0.
    public let fingerprint: UInt64
    /// The schema as bytes.
    public let encoded: [UInt8]

    init(root: ValueType, records: [String: RecordSchema], registry: TypeRegistry) {
        self.root = root
        self.records = records
        var writer = BinaryWriter(registry: registry)
        writer.write(byte: Self.format)
        root.write(to: &writer)
        writer.write(unsigned: UInt64(records.count))
        for (_, record) in records.sorted(by: { $0.key < $1.key }) { record.write(to: &writer) }
        encoded = writer.bytes
        fingerprint = Self.fingerprint(of: encoded)
    }

    /// Reads a schema from its bytes.
    ///
    /// - Throws: ``PersistenceError`` if they are not those of a schema that holds together.
    public init(encoded: [UInt8], registry: TypeRegistry = .shared) throws(PersistenceError) {
        let parts = try encoded.lend { bytes throws(PersistenceError) in
            try Self.parts(bytes, registry: registry)
        }
        root = parts.root
        records = parts.records
        self.encoded = encoded
        fingerprint = Self.fingerprint(of: encoded)
        try check()
    }

    private static let format: UInt8 = 1
    /// Types inside types that a record may have.
    private static let depthLimit = 64

    private static func parts(
        _ bytes: UnsafeRawBufferPointer, registry: TypeRegistry
    ) throws(PersistenceError) -> (root: ValueType, records: [String: RecordSchema]) {
        var reader = BinaryReader(bytes, registry: registry, depthLimit: depthLimit)
        let format = try reader.readByte()
        guard format == Self.format else { throw .unsupportedFormat(Int(format)) }
        let root = try ValueType(from: &reader)
        var records: [String: RecordSchema] = [:]
        for _ in 0..<(try reader.readCount()) {
            let record = try RecordSchema(from: &reader)
            guard records.updateValue(record, forKey: record.name) == nil else {
                throw .malformed("two records of \(record.name)")
            }
        }
        guard reader.remaining == 0 else { throw .malformed("\(reader.remaining) bytes after the schema") }
        return (root, records)
    }

    private static func fingerprint(of bytes: [UInt8]) -> UInt64 {
        let value = SHA256Digest.digest(of: bytes).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        return value == 0 ? 1 : value
    }

    /// A fingerprint as 16 hexadecimal digits.
    public static func name(of fingerprint: UInt64) -> String {
        let digits = String(fingerprint, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    // MARK: Parts

    /// The record of the value itself; nil for one that has none, as an array.
    public var rootRecord: RecordSchema? {
        switch root {
        case .record(let name), .object(let name): records[name]
        default: nil
        }
    }

    /// The name of the value's type.
    public var name: String { root.description }

    /// The version of the value's own record; `0` for one that has none.
    public var version: SchemaVersion { rootRecord?.version ?? "0" }

    /// A class's record and those of its superclasses, the most derived first.
    public func chain(_ name: String) -> [RecordSchema] {
        var chain: [RecordSchema] = []
        var next = Optional(name)
        while let name = next, let record = records[name], chain.count <= records.count {
            chain.append(record)
            next = record.superclass
        }
        return chain
    }

    // MARK: Checking

    /// Whether all names are those of records, superclasses are classes and end, and no value is inside itself
    /// without an end.
    private func check() throws(PersistenceError) {
        try check(root)
        for record in records.values {
            guard record.kind == .object || (record.superclass == nil && record.late.isEmpty) else {
                throw .malformed("\(record.name) is no class, but has parts of one")
            }
            if let name = record.superclass {
                guard records[name]?.kind == .object, chain(record.name).count <= records.count else {
                    throw .malformed("\(record.name) has no superclass \(name)")
                }
            }
            for property in record.properties { try check(property.type) }
            for element in record.cases { for value in element.payload { try check(value.type) } }
        }
        if case .object(let name) = root, records[name] == nil { throw .malformed("there is no record of \(name)") }
    }

    private func check(_ type: ValueType) throws(PersistenceError) {
        switch type {
        case .optional(let type), .array(let type), .set(let type): try check(type)
        case .dictionary(let key, let value):
            try check(key)
            try check(value)
        case .record(let name):
            guard let record = records[name], record.kind != .object else {
                throw .malformed("there is no record of \(name)")
            }
        default: break
        }
    }
}
