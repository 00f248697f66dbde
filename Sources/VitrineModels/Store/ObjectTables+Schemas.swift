import VitrineCore
import VitrineDatabase

extension ObjectTables {
    /// Makes all recorded schemas known to a registry. One that cannot be read is left out: its objects cannot be
    /// read then, and all others can.
    static func loadSchemas(_ database: Database, into registry: TypeRegistry) throws(DatabaseError) {
        let statement = try database.cachedStatement("SELECT fingerprint, record FROM schema")
        while try statement.step() {
            guard registry.schema(fingerprint: UInt64(bitPattern: statement.integer(at: 0))) == nil else { continue }
            if let schema = try? Schema(encoded: statement.bytes(at: 1), registry: registry) { registry.add(schema) }
        }
    }

    /// Records schemas, in the transaction of the first object that needs them.
    ///
    /// - Throws: ``PersistenceError/changedWithoutVersion(type:version:differences:)`` if the store has the same
    ///   version of a type in a form that cannot be read as this one.
    static func record(_ schemas: [Schema], _ database: Database, registry: TypeRegistry) throws {
        for schema in schemas {
            let known = try database.cachedStatement("SELECT 1 FROM schema WHERE fingerprint=?")
            known.bind(Int64(bitPattern: schema.fingerprint), at: 1)
            if try known.step() {
                known.reset()
                continue
            }
            try compare(schema, database, registry)
            let insert = try database.cachedStatement("INSERT INTO schema VALUES(?,?,?,?)")
            insert.bind(Int64(bitPattern: schema.fingerprint), at: 1)
            insert.bind(schema.name, at: 2)
            insert.bind(schema.version.description, at: 3)
            insert.bind(schema.encoded, at: 4)
            try insert.run()
        }
    }

    private static func compare(_ schema: Schema, _ database: Database, _ registry: TypeRegistry) throws {
        let statement = try database.cachedStatement("SELECT record FROM schema WHERE type=? AND version=?")
        statement.bind(schema.name, at: 1)
        statement.bind(schema.version.description, at: 2)
        defer { statement.reset() }
        while try statement.step() {
            guard let stored = try? Schema(encoded: statement.bytes(at: 0), registry: registry) else { continue }
            for (name, record) in schema.records {
                guard let other = stored.records[name], other.version == record.version else { continue }
                let differences = other.differences(from: record)
                guard differences.isEmpty else {
                    throw PersistenceError.changedWithoutVersion(
                        type: name, version: record.version, differences: differences)
                }
            }
        }
    }

    /// All recorded schemas with the number of objects that are stored under each themselves.
    static func versions(_ database: Database) throws(DatabaseError) -> [ObjectStore.StoredVersion] {
        let select = try database.cachedStatement(
            """
            SELECT type, version, fingerprint, (SELECT count(*) FROM object WHERE schema=fingerprint) FROM schema
            """)
        var versions: [ObjectStore.StoredVersion] = []
        while try select.step() {
            versions.append(
                ObjectStore.StoredVersion(
                    type: select.text(at: 0), version: SchemaVersion(select.text(at: 1)),
                    fingerprint: UInt64(bitPattern: select.integer(at: 2)), count: Int(select.integer(at: 3))))
        }
        return versions.sorted { ($0.type, $0.version, $0.fingerprint) < ($1.type, $1.version, $1.fingerprint) }
    }
}
