internal import VitrineCore

/// Encodes values, and decodes values that any version of the program encoded.
///
/// ```swift
/// let bytes = try PersistentCoder().encode(place)
/// let again = try PersistentCoder().decode(Place.self, from: bytes)
/// ```
///
/// Decoding needs the ``Schema`` under which a value was encoded. An ``ObjectStore`` keeps the schemas beside its
/// values. If you keep the bytes elsewhere, keep ``Schema/encoded`` with them and add the schema to the
/// ``TypeRegistry``.
public struct PersistentCoder: Sendable {
    /// The default ``depthLimit``, which fits the stack of any thread.
    package static let defaultDepthLimit = 256

    /// The known types and schemas.
    public let registry: TypeRegistry
    /// The largest number of nested structs and enums, for encoding and decoding. Each takes some hundred bytes of
    /// stack. Links between objects have no limit.
    let depthLimit: Int
    /// Whether data that a later version of the program wrote is read as far as it is known.
    let readsNewerData: Bool

    /// Creates a coder.
    ///
    /// - Parameters:
    ///   - registry: The known types and schemas. Default: those of the whole program.
    ///   - depthLimit: The largest number of structs and enums inside each other. Default 256. Links between objects
    ///     have no limit.
    ///   - readsNewerData: Whether data that a later version of the program wrote is read. Properties with known names
    ///     and types are read then. A property with a default value gets that value, and an optional property nil, if
    ///     the stored case of an enum, raw value or class is unknown. Reading leaves the stored bytes as they are. Values
    ///     that are unknown are lost when the value is stored again. Default false: decoding throws
    ///     ``PersistenceError/newerThanCode(type:stored:code:)``.
    public init(registry: TypeRegistry = .shared, depthLimit: Int = 256, readsNewerData: Bool = false) {
        self.registry = registry
        self.depthLimit = depthLimit
        self.readsNewerData = readsNewerData
    }

    // MARK: Encoding

    // The bytes of a value are `B5`, the number of the format, the fingerprint of the schema (8 bytes, little endian),
    // the properties, and a checksum of all these (4 bytes, little endian).

    /// Encodes a value.
    ///
    /// - Throws: ``PersistenceError/tooDeep(limit:)`` or ``PersistenceError/duplicateName(_:)``.
    public func encode<Value: PersistentValue>(_ value: Value) throws(PersistenceError) -> [UInt8] {
        try encodeWithSchemas(value).bytes
    }

    /// Encodes a value. Returns the fingerprints of all schemas that decoding needs as well, the value's own first.
    package func encodeWithSchemas<Value: PersistentValue>(
        _ value: Value
    ) throws(PersistenceError) -> (bytes: [UInt8], fingerprints: [UInt64]) {
        var writer = BinaryWriter(registry: registry, depthLimit: depthLimit)
        let type = value._persistentDynamicType
        let root = try registry.schema(of: type).fingerprint
        Self.begin(root, &writer)
        writer.write(value)
        try Self.end(&writer)
        return (writer.bytes, [root] + writer.fingerprints)
    }

    private static func begin(_ fingerprint: UInt64, _ writer: inout BinaryWriter) {
        writer.write(byte: magic)
        writer.write(byte: format)
        writer.write(word: fingerprint)
    }

    private static func end(_ writer: inout BinaryWriter) throws(PersistenceError) {
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

    /// Decodes a value, and migrates it if an older version of the program wrote it.
    ///
    /// - Parameters:
    ///   - type: The type of the value, or a superclass. Usually inferred.
    ///   - bytes: A value that any version of the program encoded.
    /// - Throws: ``PersistenceError``.
    public func decode<Value: PersistentValue>(
        _ type: Value.Type = Value.self, from bytes: [UInt8]
    ) throws(PersistenceError) -> Value {
        try decodeUpgrading(type, from: bytes).value
    }

    /// Decodes the bytes between header and checksum.
    package func decode<Value: PersistentValue>(
        _ type: Value.Type, fingerprint: UInt64, body: UnsafeRawBufferPointer
    ) throws(PersistenceError) -> Value {
        try decodeUpgrading(type, fingerprint: fingerprint, body: body).value
    }

    /// Decodes a value. Returns its present bytes as well if an older version of the program wrote it.
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
                // A nested object is of an older version.
            } catch .typeMismatch {
                return try decodeByTree(type, fingerprint: fingerprint, body: body)
            }
        }
        do throws(PersistenceError) {
            return try decodeUpgraded(type, upgrade(type, fingerprint: fingerprint, body: body))
        } catch .typeMismatch(path: "", _, _) {
            // Byte plans copy raw values unseen.
            return try decodeByTree(type, fingerprint: fingerprint, body: body)
        }
    }

    /// Decodes a value with a raw value or a class that is unknown. Untyped data tells in which property.
    private func decodeByTree<Value: PersistentValue>(
        _ type: Value.Type, fingerprint: UInt64, body: UnsafeRawBufferPointer
    ) throws(PersistenceError) -> (value: Value, upgraded: StoredBytes?) {
        do throws(PersistenceError) {
            return try decodeUpgraded(type, upgrade(type, fingerprint: fingerprint, body: body, byTree: true))
        } catch .typeMismatch(path: "", let expected, let found) {
            let name = try registry.schema(of: type).name
            throw .typeMismatch(path: name, expected: expected, found: found)
        }
    }

    private func decodeUpgraded<Value: PersistentValue>(
        _ type: Value.Type, _ upgraded: (bytes: StoredBytes, isOfLaterVersion: Bool)
    ) throws(PersistenceError) -> (value: Value, upgraded: StoredBytes?) {
        let value = try upgraded.bytes.bytes.lend { bytes throws(PersistenceError) in
            try decodeCurrent(type, Self.body(bytes))
        }
        // Storing data of a later version in the present form would lose what is unknown.
        return (value, upgraded.isOfLaterVersion ? nil : upgraded.bytes)
    }

    private func decodeCurrent<Value: PersistentValue>(
        _ type: Value.Type, _ body: UnsafeRawBufferPointer
    ) throws(PersistenceError) -> Value {
        var reader = BinaryReader(body, registry: registry, depthLimit: depthLimit)
        let value = try Value._restore(from: &reader)
        guard reader.remaining == 0 else { throw .malformed("\(reader.remaining) bytes after the value") }
        return value
    }

    /// Returns the fingerprint in the header and the bytes between header and checksum.
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

    /// Returns a deep copy. Objects that are shared or cyclic in the original are so in the copy.
    ///
    /// - Throws: ``PersistenceError``, for example ``PersistenceError/tooDeep(limit:)``.
    func copy<Value: PersistentValue>(_ value: Value) throws(PersistenceError) -> Value {
        var writer = BinaryWriter(registry: registry, depthLimit: depthLimit)
        writer.write(value)
        if let failure = writer.failure { throw failure }
        return try writer.withBytes { bytes throws(PersistenceError) in try decodeCurrent(Value.self, bytes) }
    }
}

extension PersistentRecord {
    /// Returns a deep copy, which shares no object with the original. Transient properties have their initial values.
    ///
    /// - Throws: ``PersistenceError``, for example ``PersistenceError/tooDeep(limit:)``.
    public func persistentCopy(by coder: PersistentCoder = PersistentCoder()) throws(PersistenceError) -> Self {
        try coder.copy(self)
    }
}

extension PersistentCoder {
    /// Returns whether the header of a value names a present schema.
    private func isCurrent<Value: PersistentValue>(_ type: Value.Type, fingerprint: UInt64) throws(PersistenceError) -> Bool {
        try fingerprint == registry.schema(of: type).fingerprint || registry.objectType(of: fingerprint) is Value.Type
    }

    /// Migrates an encoded value to the present version of its type, without an instance.
    ///
    /// - Parameters:
    ///   - bytes: A value that any version of the program encoded.
    ///   - type: The type of the value, or a superclass.
    /// - Returns: The bytes that ``encode(_:)`` of the present version produces.
    /// - Throws: ``PersistenceError``.
    public func upgrade<Value: PersistentValue>(
        _ bytes: [UInt8], of type: Value.Type
    ) throws(PersistenceError) -> [UInt8] {
        try upgraded(bytes, of: type).bytes.bytes
    }

    /// Migrates an encoded value. The result for data of a later version lacks the parts that are unknown.
    func upgraded<Value: PersistentValue>(
        _ bytes: [UInt8], of type: Value.Type
    ) throws(PersistenceError) -> (bytes: StoredBytes, isOfLaterVersion: Bool) {
        try bytes.lend { bytes throws(PersistenceError) in
            let (fingerprint, body) = try Self.open(bytes)
            return try upgrade(type, fingerprint: fingerprint, body: body)
        }
    }

    /// - Parameter byTree: Whether untyped data is needed although the schemas do not need it.
    private func upgrade<Value: PersistentValue>(
        _ type: Value.Type, fingerprint: UInt64, body: UnsafeRawBufferPointer, byTree: Bool = false
    ) throws(PersistenceError) -> (bytes: StoredBytes, isOfLaterVersion: Bool) {
        let asked = try registry.schema(of: type)
        guard let old = registry.schema(fingerprint: fingerprint) else {
            throw .unknownSchema(fingerprint: fingerprint)
        }
        guard !byTree, let plan = registry.bytePlan(from: old, to: asked) else {
            let tree = try TreeReader.read(body, under: old, registry: registry, depthLimit: depthLimit)
            // Under the same schema only a program with more raw values writes one that is unknown.
            let isGrown = try isCurrent(type, fingerprint: fingerprint)
            return try upgrade(tree, to: asked, isGrown: isGrown && byTree, capacity: body.count + 256)
        }
        let bytes = try write(asked, capacity: body.count + 256) { writer throws(PersistenceError) in
            try plan.run(body, registry: registry, depthLimit: depthLimit, to: &writer)
        }
        return (bytes, false)
    }

    /// Migrates untyped data and encodes it under the present schema.
    ///
    /// - Parameter isGrown: Whether the data of a later version has the present schema.
    func upgrade(
        _ tree: MigrationTree, to asked: Schema, isGrown: Bool = false, capacity: Int = 512
    ) throws(PersistenceError) -> (bytes: StoredBytes, isOfLaterVersion: Bool) {
        var run = MigrationRun(registry: registry, readsNewerData: readsNewerData, inline: asked)
        defer { run.breakCycles() }
        try run.run(tree)
        let current = try target(of: tree, asked)
        let isOfLaterVersion = run.hasNewerData || (isGrown && readsNewerData)
        let bytes = try write(current, capacity: capacity) { writer throws(PersistenceError) in
            try TreeWriter.write(tree, as: current, replacesUnknownValues: isOfLaterVersion, to: &writer)
        }
        return (bytes, isOfLaterVersion)
    }

    private func write(
        _ schema: Schema, capacity: Int, _ body: (inout BinaryWriter) throws(PersistenceError) -> Void
    ) throws(PersistenceError) -> StoredBytes {
        var writer = BinaryWriter(registry: registry, depthLimit: depthLimit, capacity: capacity)
        Self.begin(schema.fingerprint, &writer)
        try body(&writer)
        try Self.end(&writer)
        return StoredBytes(writer.bytes, fingerprints: [schema.fingerprint] + writer.fingerprints, registry: registry)
    }

    /// The schema under which a value is stored. For an object it is the schema of its class, which may be a subclass.
    private func target(of tree: MigrationTree, _ asked: Schema) throws(PersistenceError) -> Schema {
        guard case .object(let base) = asked.root, case .record(let data) = tree else { return asked }
        guard let current = registry.currentSchema(named: data.typeName) else {
            throw .unregisteredType(data.typeName)
        }
        guard current.chain(current.name).contains(where: { $0.name == base }) else {
            throw .typeMismatch(path: data.typeName, expected: base, found: data.typeName)
        }
        return current
    }

    /// Decodes a value as untyped data. It needs the schema of the value, but not its type.
    ///
    /// - Throws: ``PersistenceError``.
    package func tree(of bytes: [UInt8]) throws(PersistenceError) -> MigrationTree {
        try treeAndSchema(of: bytes).tree
    }

    func treeAndSchema(of bytes: [UInt8]) throws(PersistenceError) -> (tree: MigrationTree, schema: Schema) {
        try bytes.lend { bytes throws(PersistenceError) in
            let (fingerprint, body) = try Self.open(bytes)
            guard let schema = registry.schema(fingerprint: fingerprint) else {
                throw .unknownSchema(fingerprint: fingerprint)
            }
            let tree = try TreeReader.read(body, under: schema, registry: registry, depthLimit: depthLimit)
            return (tree, schema)
        }
    }
}

extension [UInt8] {
    /// `withUnsafeBytes` with typed errors.
    func lend<Result>(
        _ body: (UnsafeRawBufferPointer) throws(PersistenceError) -> Result
    ) throws(PersistenceError) -> Result {
        try withUnsafeBufferPointer { bytes throws(PersistenceError) in try body(UnsafeRawBufferPointer(bytes)) }
    }
}
