import VitrineModels

/// Bytes as one build of a program wrote them, and what another makes of them.
struct Written {
    let bytes: [UInt8]
    let schemas: [Schema]

    /// - Parameter registry: The types of the build that writes.
    init(_ value: some PersistentValue, by registry: TypeRegistry = TypeRegistry()) throws {
        let (bytes, fingerprints) = try PersistentCoder(registry: registry).encodeWithSchemas(value)
        self.bytes = bytes
        schemas = fingerprints.compactMap { registry.schema(fingerprint: $0) }
    }

    /// A coder of another build, which has only the records of the schemas, from their bytes.
    func coder(
        _ registry: TypeRegistry = TypeRegistry(), readsNewerData: Bool = false
    ) throws -> PersistentCoder {
        for schema in schemas { registry.add(try Schema(encoded: schema.encoded, registry: registry)) }
        return PersistentCoder(registry: registry, readsNewerData: readsNewerData)
    }

    func read<Value: PersistentValue>(
        as type: Value.Type, knowing types: any PersistentRecord.Type..., readsNewerData: Bool = false
    ) throws -> Value {
        let registry = TypeRegistry()
        for type in types { try registry.register(type) }
        return try coder(registry, readsNewerData: readsNewerData).decode(type, from: bytes)
    }

    /// The data without any type's code.
    func tree() throws -> MigrationTree { try coder().tree(of: bytes) }
}
