public import VitrineCore
import VitrineDatabase

/// What a store knows of an object without reading it.
public struct ObjectEntry: Sendable, Equatable {
    public let key: String
    public let group: ObjectGroup
    /// The name of its type, as stored.
    public let type: String
    /// The version of its type that it was stored in; `0` for a plain value or a collection.
    public let version: SchemaVersion
    /// What its value occupies.
    public let size: ByteCount
    /// When it was put, since 1970.
    public let modified: Duration
}

extension ObjectStore {
    /// A form in which objects of a type are or were stored.
    public struct StoredVersion: Sendable, Equatable {
        /// The type's name.
        public let type: String
        public let version: SchemaVersion
        /// The schema's ``Schema/fingerprint``.
        public let fingerprint: UInt64
        /// How many objects are stored so themselves, not inside others.
        public let count: Int
    }

    /// What is in a group, page by page, sorted by the keys' UTF-8.
    ///
    /// - Parameters:
    ///   - group: Default: the root group. Groups below it are not looked into.
    ///   - key: The last one of the page before; nil for the first page.
    ///   - limit: How many at most.
    public func entries(
        in group: ObjectGroup = .root, after key: String? = nil, limit: Int
    ) throws(PersistenceError) -> [ObjectEntry] {
        try group.check()
        return try read { database throws(DatabaseError) in
            try ObjectTables.entries(group, after: key, limit: max(0, limit), database)
        }
    }

    /// What all values in a group itself occupy.
    public func size(in group: ObjectGroup = .root) throws(PersistenceError) -> ByteCount {
        try group.check()
        return ByteCount(
            try read { database throws(DatabaseError) in try ObjectTables.size(group, database) })
    }

    /// All forms of types that the store has a record of, sorted by type and version. The records themselves are in the
    /// ``registry``.
    public func storedVersions() throws(PersistenceError) -> [StoredVersion] {
        try read { database throws(DatabaseError) in try ObjectTables.versions(database) }
    }
}
