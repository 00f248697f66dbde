internal import VitrineCache

extension PersistentCoder {
    /// Stored bytes as JSON that can be read back, by this or a later version of the program: it holds the schemas it
    /// was written under. No code of the types is needed.
    ///
    /// - Throws: ``PersistenceError``.
    public func json(of bytes: [UInt8]) throws(PersistenceError) -> String {
        let (tree, schema) = try treeAndSchema(of: bytes)
        return JSONExport.document(tree, schema).text
    }

    /// The value of JSON as ``json(of:)`` makes it, brought up to date if it is of an older version. What is missing is
    /// taken from defaults; unknown members are logged and dropped. JSON without schemas, written by people, is read as
    /// the present version would write it.
    ///
    /// - Throws: ``PersistenceError`` with the path from the outermost value.
    public func decode<Value: PersistentValue>(
        _ type: Value.Type = Value.self, fromJSON text: String
    ) throws(PersistenceError) -> Value {
        let document: JSON
        do throws(JSONError) {
            document = try JSON(parsing: text)
        } catch {
            throw .malformed("no JSON: \(error)")
        }
        let asked = try registry.schema(of: type)
        var reading = JSONImport(registry: registry, depthLimit: depthLimit)
        let tree = try reading.document(document, asked)
        return try decode(type, from: upgrade(tree, to: asked).bytes)
    }
}

extension PersistentValue {
    /// The value as JSON with the schemas it was written under, which ``PersistentCoder/decode(_:fromJSON:)`` reads back.
    ///
    /// ``persistentDescription`` is the one for people.
    public func persistentJSON(by coder: PersistentCoder = PersistentCoder()) throws(PersistenceError) -> String {
        try coder.json(of: coder.encode(self))
    }
}

extension ObjectStore {
    /// The value with a key as JSON, for which no code of its type is needed; nil if there is none. See
    /// ``PersistentCoder/decode(_:fromJSON:)`` for the way back.
    public func json(for key: String, in group: ObjectGroup = .root) throws(PersistenceError) -> String? {
        try reading(key, group) { bytes throws(PersistenceError) in try coder.json(of: bytes) }
    }
}
