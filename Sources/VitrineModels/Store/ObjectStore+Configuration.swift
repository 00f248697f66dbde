public import VitrineCore
import VitrineDatabase

extension ObjectStore {
    /// How a store is opened.
    public struct Configuration: Sendable {
        /// Whether a power cut may take the last changes. Default `full`: it may not.
        public var durability: Durability
        /// How objects become bytes, and which types there are. Default: the shared registry.
        public var coder: PersistentCoder
        /// What seals the values; nil, the default, stores them as they are. A store is made with a cipher or without,
        /// and stays so. Keys, groups, and names and versions of types are readable in any case.
        public var cipher: (any ObjectEncryption)?
        /// How many bytes of values that were read are kept in memory, opened. 0, the default, keeps none. Changes by
        /// other processes are seen all the same; memory pressure empties it.
        public var memoryCapacity: ByteCount
        /// The program's version. When another one, not among ``compatibleVersions``, wrote last, everything but the
        /// ``reservedGroups`` is removed when the store is opened (R49). nil, the default, removes nothing.
        public var version: String?
        /// Versions whose objects this one keeps.
        public var compatibleVersions: [String]
        /// Groups that stay, with those below them, whatever version wrote them.
        public var reservedGroups: [ObjectGroup]
        /// Opens what exists and changes nothing. A file in a directory that cannot be written is read with all that
        /// was committed.
        public var isReadOnly: Bool

        public init(
            durability: Durability = .full, coder: PersistentCoder = PersistentCoder(),
            cipher: (any ObjectEncryption)? = nil, memoryCapacity: ByteCount = .zero, version: String? = nil,
            compatibleVersions: [String] = [], reservedGroups: [ObjectGroup] = [], isReadOnly: Bool = false
        ) {
            self.durability = durability
            self.coder = coder
            self.cipher = cipher
            self.memoryCapacity = memoryCapacity
            self.version = version
            self.compatibleVersions = compatibleVersions
            self.reservedGroups = reservedGroups
            self.isReadOnly = isReadOnly
        }
    }
}

extension ObjectStore.Configuration {
    /// Another connection to the file.
    ///
    /// - Parameter isReading: Whether it is for reading only, although the store is not.
    func connect(_ path: String, isReading: Bool = false) throws(DatabaseError) -> Database {
        var options = Database.Options()
        options.durability = durability
        // Processes get the lock by asking again and again: one that writes without a pause may keep others waiting.
        options.busyMilliseconds = 60_000
        options.isReadOnly = isReadOnly || isReading
        return try Database(path: path, options: options)
    }

    /// The connections of a store. On a full disk, and where nothing may be written, there is one for reading.
    func open(_ path: String, _ seal: ValueSeal) throws -> (DatabaseWriter, DatabaseReader) {
        let openToWrite = { @Sendable () throws -> sending Database in
            let database = try connect(path)
            try ObjectTables.open(database, self, seal)
            return database
        }
        do {
            let database = try openToWrite()
            try ObjectTables.loadSchemas(database, into: coder.registry)
            return (DatabaseWriter(database), try reader(path))
        } catch let failure as DatabaseError where failure.reason == .full || isReadOnly && failure.mayBeReadAlone {
            let reader = try reader(path)
            let check = try reader.withDatabase { database in
                Result {
                    guard try ObjectTables.mayBeRead(database, self, seal) else { throw failure }
                    try ObjectTables.loadSchemas(database, into: coder.registry)
                }
            }
            try check.get()
            let isReadOnly = isReadOnly
            let writer = DatabaseWriter { () throws -> sending Database in
                guard !isReadOnly else { throw DatabaseError.readOnly(path) }
                return try openToWrite()
            }
            return (writer, reader)
        }
    }

    /// A connection for reading, whether or not there is room on the disk.
    ///
    /// - Parameter isTemporary: Whether the store has others: the last one takes the log with it, and must be able to.
    func reader(_ path: String, isTemporary: Bool = false) throws(DatabaseError) -> DatabaseReader {
        try DatabaseReader(path: path) { () throws(DatabaseError) in try connect(path, isReading: isTemporary) }
    }
}
