internal import VitrineCore

/// Turns values into bytes and back, whatever version of the program wrote them.
///
/// ```swift
/// let bytes = try PersistentCoder().encode(place)
/// let again = try PersistentCoder().decode(Place.self, from: bytes)
/// ```
///
/// Bytes are: `B5`, the format's number, the fingerprint of the value's schema (8 bytes, little endian), the value, and
/// a checksum of all that (4 bytes, little endian). They are read by their schema, so it must be kept with them, as
/// ``ObjectStore`` does; within one program run ``TypeRegistry`` knows it.
public struct PersistentCoder: Sendable {
    /// What is done with data of a later version of the program.
    public enum NewerData: Sendable {
        /// It is refused by ``PersistenceError/newerThanCode(type:stored:code:)``.
        case refuse
        /// What this version knows of it is read, as far as names and types agree; the rest is lost when it is stored
        /// again.
        case readKnown
    }

    /// How many records may be inside one another unless said otherwise: 256, which fits any
    /// thread's stack.
    public static let defaultDepthLimit = 256

    /// Which types and schemas there are.
    public let registry: TypeRegistry
    /// How many records may be inside one another, in reading as in writing: each takes some hundred bytes of stack.
    public let depthLimit: Int
    /// What is done with data of a later version. Default ``NewerData/refuse``.
    public let newerData: NewerData

    /// A coder.
    public init(
        registry: TypeRegistry = .shared, depthLimit: Int = defaultDepthLimit, newerData: NewerData = .refuse
    ) {
        self.registry = registry
        self.depthLimit = depthLimit
        self.newerData = newerData
    }

    // MARK: Encoding

    /// The bytes of a value.
    ///
    /// - Throws: ``PersistenceError/tooDeep(limit:)`` or ``PersistenceError/duplicateName(_:)``.
    public func encode<Value: PersistentValue>(_ value: Value) throws(PersistenceError) -> [UInt8] {
        try encodeWithSchemas(value).bytes
    }

    /// The bytes of a value and the fingerprints of all schemas that reading them takes, its own first.
    package func encodeWithSchemas<Value: PersistentValue>(
        _ value: Value
    ) throws(PersistenceError) -> (bytes: [UInt8], fingerprints: [UInt64]) {
        var writer = BinaryWriter(registry: registry, depthLimit: depthLimit)
        let type = value.persistentDynamicType
        let root = try registry.schema(of: type).fingerprint
        Self.begin(root, &writer)
        value.persist(to: &writer)
        try Self.end(&writer)
        return (writer.bytes, [root] + writer.fingerprints)
    }

    static func begin(_ fingerprint: UInt64, _ writer: inout BinaryWriter) {
        writer.write(byte: magic)
        writer.write(byte: format)
        writer.write(word: fingerprint)
    }

    static func end(_ writer: inout BinaryWriter) throws(PersistenceError) {
        let sum = writer.withBytes { checksum($0) }
        writer.write(halfWord: sum)
        if let failure = writer.failure { throw failure }
    }

    private static let magic: UInt8 = 0xB5
    private static let format: UInt8 = 1
    private static let headerSize = 10
    private static let checksumSize = 4

    private static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        UInt32(truncatingIfNeeded: StableHash.hash(bytes))
    }

    // MARK: Decoding

    /// The value of some bytes, brought up to date if an older version of the program wrote them.
    ///
    /// - Throws: ``PersistenceError``.
    public func decode<Value: PersistentValue>(
        _ type: Value.Type = Value.self, from bytes: [UInt8]
    ) throws(PersistenceError) -> Value {
        try bytes.lend { bytes throws(PersistenceError) in try decode(type, from: bytes) }
    }

    /// The value of some bytes, brought up to date if an older version of the program wrote them.
    ///
    /// - Throws: ``PersistenceError``.
    public func decode<Value: PersistentValue>(
        _ type: Value.Type = Value.self, from bytes: UnsafeRawBufferPointer
    ) throws(PersistenceError) -> Value {
        let (fingerprint, body) = try Self.open(bytes)
        return try decode(type, fingerprint: fingerprint, body: body)
    }

    /// The value behind the header.
    package func decode<Value: PersistentValue>(
        _ type: Value.Type, fingerprint: UInt64, body: UnsafeRawBufferPointer
    ) throws(PersistenceError) -> Value {
        try decodeUpgrading(type, fingerprint: fingerprint, body: body).value
    }

    /// The value of some bytes and, if they were of an older version, their present form.
    func decodeUpgrading<Value: PersistentValue>(
        _ type: Value.Type, from bytes: [UInt8]
    ) throws(PersistenceError) -> (value: Value, upgraded: StoredBytes?) {
        try bytes.lend { bytes throws(PersistenceError) in
            let (fingerprint, body) = try Self.open(bytes)
            return try decodeUpgrading(type, fingerprint: fingerprint, body: body)
        }
    }

    private func decodeUpgrading<Value: PersistentValue>(
        _ type: Value.Type, fingerprint: UInt64, body: UnsafeRawBufferPointer
    ) throws(PersistenceError) -> (value: Value, upgraded: StoredBytes?) {
        if try isCurrent(type, fingerprint: fingerprint) {
            do throws(PersistenceError) {
                return (try decodeCurrent(type, body), nil)
            } catch .unknownSchema {
                // An object inside is of an older version.
            }
        }
        let upgraded = try upgrade(type, fingerprint: fingerprint, body: body)
        let value = try upgraded.bytes.lend { bytes throws(PersistenceError) in
            try decodeCurrent(type, Self.body(bytes))
        }
        return (value, upgraded)
    }

    private func decodeCurrent<Value: PersistentValue>(
        _ type: Value.Type, _ body: UnsafeRawBufferPointer
    ) throws(PersistenceError) -> Value {
        var reader = BinaryReader(body, registry: registry, depthLimit: depthLimit)
        let value = try Value.restore(from: &reader)
        guard reader.remaining == 0 else { throw .malformed("\(reader.remaining) bytes after the value") }
        return value
    }

    /// The fingerprint in a value's header, and the bytes between header and checksum.
    package static func open(
        _ bytes: UnsafeRawBufferPointer
    ) throws(PersistenceError) -> (fingerprint: UInt64, body: UnsafeRawBufferPointer) {
        guard let first = bytes.first else { throw .truncated(offset: 0) }
        guard first == magic else { throw .foreign }
        guard bytes.count >= headerSize + checksumSize else { throw .truncated(offset: bytes.count) }
        guard bytes[1] == format else { throw .unsupportedFormat(Int(bytes[1])) }
        let end = bytes.count - checksumSize
        let sum = bytes.loadUnaligned(fromByteOffset: end, as: UInt32.self)
        guard UInt32(littleEndian: sum) == checksum(UnsafeRawBufferPointer(rebasing: bytes[..<end])) else {
            throw .damaged
        }
        let fingerprint = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
        return (fingerprint, body(bytes))
    }

    private static func body(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[headerSize..<bytes.count - checksumSize])
    }

    // MARK: Copying

    /// A deep copy. What is shared or leads back to itself does so in the copy, among copies.
    ///
    /// - Throws: ``PersistenceError/tooDeep(limit:)`` and others.
    public func copy<Value: PersistentValue>(_ value: Value) throws(PersistenceError) -> Value {
        var writer = BinaryWriter(registry: registry, depthLimit: depthLimit)
        value.persist(to: &writer)
        if let failure = writer.failure { throw failure }
        return try writer.withBytes { bytes throws(PersistenceError) in try decodeCurrent(Value.self, bytes) }
    }
}

extension PersistentRecord {
    /// A deep copy: no object is shared with the original; what is nil stays nil, and what is transient is as in a new
    /// object.
    ///
    /// - Throws: ``PersistenceError/tooDeep(limit:)`` and others.
    public func persistentCopy(by coder: PersistentCoder = PersistentCoder()) throws(PersistenceError) -> Self {
        try coder.copy(self)
    }
}
