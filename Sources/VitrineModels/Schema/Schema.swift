internal import VitrineCore

/// The version of the stored form of a type: numbers separated by dots. `1.0` equals `1`, and `1.10` is after `1.9`.
/// A version is printed as it was given.
///
/// Versions order migration steps. The fingerprint of a schema decides whether stored data is old.
public struct SchemaVersion: Hashable, Comparable, Sendable, ExpressibleByStringLiteral {
    private let numbers: [Int]
    /// The text that it was made from.
    private let text: String

    /// Creates a version from text. Parts that are not numbers count as 0.
    package init(_ text: String) {
        var numbers = text.split(separator: ".", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        while numbers.last == 0, numbers.count > 1 { numbers.removeLast() }
        self.numbers = numbers
        self.text = text
    }

    /// Creates a version from a literal.
    public init(stringLiteral text: String) { self.init(text) }

    /// Returns whether the numbers of two versions are equal.
    public static func == (first: Self, second: Self) -> Bool { first.numbers == second.numbers }

    public func hash(into hasher: inout Hasher) { hasher.combine(numbers) }

    /// The text that equal versions share. It is part of encoded schemas and of their fingerprints.
    var canonicalText: String { numbers.map { String($0) }.joined(separator: ".") }

    /// Returns whether a version is before another one.
    public static func < (first: Self, second: Self) -> Bool {
        first.numbers.lexicographicallyPrecedes(second.numbers)
    }
}

extension SchemaVersion: CustomStringConvertible {
    /// The text that the version was made from.
    public var description: String { text }
}

/// The record of a type at one version: its properties, superclasses, and nested structs and enums.
///
/// Decoding a value needs its schema. Keep the ``encoded`` schema beside the value, as ``ObjectStore`` does. Nested
/// objects have schemas of their own.
public final class Schema: Sendable {
    /// The type of the value.
    package let root: ValueType
    /// The records by name.
    package let records: [String: RecordSchema]
    /// The first 8 bytes of the SHA-256 of ``encoded``, in big endian. It is never 0.
    package let fingerprint: UInt64
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

    /// Reads an encoded schema.
    ///
    /// - Parameters:
    ///   - encoded: The bytes of ``encoded``.
    ///   - registry: The known types. Default: those of the whole program.
    /// - Throws: ``PersistenceError`` if the bytes are not a consistent schema.
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
    /// The largest nesting of types in a property.
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

    /// Returns a fingerprint as 16 hexadecimal digits.
    package static func name(of fingerprint: UInt64) -> String {
        let digits = String(fingerprint, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    // MARK: Parts

    /// The record of the value; nil for values without a record, such as arrays.
    package var rootRecord: RecordSchema? {
        switch root {
        case .record(let name), .object(let name): records[name]
        default: nil
        }
    }

    /// The name of the value's type.
    package var name: String { root.description }

    /// The version of the value's record; `0` if there is no record.
    package var version: SchemaVersion { rootRecord?.version ?? "0" }

    /// Returns the record of a class and those of its superclasses, most derived class first.
    package func chain(_ name: String) -> [RecordSchema] {
        var chain: [RecordSchema] = []
        var next = Optional(name)
        while let name = next, let record = records[name], chain.count <= records.count {
            chain.append(record)
            next = record.superclass
        }
        return chain
    }

    // MARK: Checking

    /// Checks that all names are names of records, and that every chain of superclasses consists of classes and ends.
    private func check() throws(PersistenceError) {
        try check(root)
        for record in records.values {
            guard record.kind == .object || (record.superclass == nil && record.late.isEmpty) else {
                throw .malformed("\(record.name) has the parts of a class, but is not one")
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
