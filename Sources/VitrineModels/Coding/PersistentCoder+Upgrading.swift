extension PersistentCoder {
    /// Whether bytes were written under the present schemas, as far as their header tells.
    func isCurrent<Value: PersistentValue>(_ type: Value.Type, fingerprint: UInt64) throws(PersistenceError) -> Bool {
        try fingerprint == registry.schema(of: type).fingerprint || registry.objectType(of: fingerprint) is Value.Type
    }

    /// The bytes as the present version of the program would have written them: migration without an instance.
    ///
    /// - Throws: ``PersistenceError``.
    public func upgrade<Value: PersistentValue>(
        _ bytes: [UInt8], of type: Value.Type
    ) throws(PersistenceError) -> [UInt8] {
        try upgraded(bytes, of: type).bytes
    }

    func upgraded<Value: PersistentValue>(
        _ bytes: [UInt8], of type: Value.Type
    ) throws(PersistenceError) -> StoredBytes {
        try bytes.lend { bytes throws(PersistenceError) in
            let (fingerprint, body) = try Self.open(bytes)
            return try upgrade(type, fingerprint: fingerprint, body: body)
        }
    }

    func upgrade<Value: PersistentValue>(
        _ type: Value.Type, fingerprint: UInt64, body: UnsafeRawBufferPointer
    ) throws(PersistenceError) -> StoredBytes {
        let asked = try registry.schema(of: type)
        guard let old = registry.schema(fingerprint: fingerprint) else {
            throw .unknownSchema(fingerprint: fingerprint)
        }
        guard let plan = registry.bytePlan(from: old, to: asked) else {
            let tree = try TreeReader.read(body, under: old, registry: registry, depthLimit: depthLimit)
            return try upgrade(tree, to: asked, capacity: body.count + 256)
        }
        return try write(asked, capacity: body.count + 256) { writer throws(PersistenceError) in
            try plan.run(body, registry: registry, depthLimit: depthLimit, to: &writer)
        }
    }

    /// The present bytes of a tree of old data.
    func upgrade(
        _ tree: MigrationValue, to asked: Schema, capacity: Int = 512
    ) throws(PersistenceError) -> StoredBytes {
        var run = MigrationRun(registry: registry, newerData: newerData, inline: asked)
        try run.run(tree)
        let current = try target(of: tree, asked)
        return try write(current, capacity: capacity) { writer throws(PersistenceError) in
            try TreeWriter.write(tree, as: current, to: &writer)
        }
    }

    private func write(
        _ schema: Schema, capacity: Int, _ body: (inout BinaryWriter) throws(PersistenceError) -> Void
    ) throws(PersistenceError) -> StoredBytes {
        var writer = BinaryWriter(registry: registry, depthLimit: depthLimit, capacity: capacity)
        Self.begin(schema.fingerprint, &writer)
        try body(&writer)
        try Self.end(&writer)
        return StoredBytes(writer.bytes, [schema.fingerprint] + writer.fingerprints, registry)
    }

    /// The schema a value is stored under: that of an object's own class if it is the one asked for or below it.
    private func target(of tree: MigrationValue, _ asked: Schema) throws(PersistenceError) -> Schema {
        guard case .object(let base) = asked.root, case .record(let data) = tree else { return asked }
        guard let current = registry.currentSchema(named: data.typeName) else {
            throw .unregisteredType(data.typeName)
        }
        guard current.chain(current.name).contains(where: { $0.name == base }) else {
            throw .typeMismatch(path: data.typeName, expected: base, found: data.typeName)
        }
        return current
    }

    /// The value of some bytes as untyped data, for which no code of the type is needed: its schema is enough.
    ///
    /// - Throws: ``PersistenceError``.
    public func tree(of bytes: [UInt8]) throws(PersistenceError) -> MigrationValue {
        try treeAndSchema(of: bytes).tree
    }

    func treeAndSchema(of bytes: [UInt8]) throws(PersistenceError) -> (tree: MigrationValue, schema: Schema) {
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
