public import VitrineCore
import VitrineDatabase

extension ObjectStore {
    /// The options of a store.
    public struct Configuration: Sendable {
        /// Whether a power failure can lose the last changes. Default `full`: it cannot.
        public var durability: Durability
        /// The coder, with the registry of types. Default: a coder with the shared registry.
        public var coder: PersistentCoder
        /// The cipher for the values. Default nil: values are not encrypted.
        ///
        /// A store is created with or without a cipher, which cannot change later. Keys, groups, and names and versions
        /// of types are never encrypted.
        public var cipher: (any ObjectEncryption)?
        /// The limit of the memory cache, which keeps the decrypted bytes of values that were read. Default 0: no
        /// cache.
        ///
        /// The cache notices changes by other processes. Memory pressure empties it.
        public var memoryCapacity: ByteCount
        /// The version of the program. Default nil.
        ///
        /// Opening a store that another version wrote last, which is not one of the ``compatibleVersions``, removes
        /// everything except the group `reserve` and the groups below it. With nil, nothing is removed.
        public var version: String?
        /// Other versions of the program whose objects are kept. Default none.
        public var compatibleVersions: [String]
        /// Whether the store is opened for reading only. Default false.
        ///
        /// It works in directories that are not writable, and reads all committed changes.
        public var isReadOnly = false

        /// Creates a configuration.
        public init(
            durability: Durability = .full, coder: PersistentCoder = PersistentCoder(),
            cipher: (any ObjectEncryption)? = nil, memoryCapacity: ByteCount = .zero, version: String? = nil,
            compatibleVersions: [String] = []
        ) {
            self.durability = durability
            self.coder = coder
            self.cipher = cipher
            self.memoryCapacity = memoryCapacity
            self.version = version
            self.compatibleVersions = compatibleVersions
        }
    }
}

extension ObjectStore.Configuration {
    /// Opens a connection to the file.
    ///
    /// - Parameter isReading: Whether the connection only reads although the store is writable.
    func connect(_ path: String, isReading: Bool = false) throws(DatabaseError) -> Database {
        var options = Database.Options()
        options.durability = durability
        // SQLite polls for the lock, so a process that writes without a pause can delay others for long.
        options.busyMilliseconds = 60_000
        options.isReadOnly = isReadOnly || isReading
        return try Database(path: path, options: options)
    }

    /// Opens the connections of a store. On a full disk, only reading works, and each write tries to open the file
    /// again. A file that cannot be opened for writing is opened only by a configuration that does not write.
    func open(_ path: String, _ seal: ValueSeal) throws -> (DatabaseWriter, DatabaseReader) {
        let openToWrite: @Sendable () throws -> sending Database = { try openPrepared(path, seal) }
        do {
            let database = try openToWrite()
            try ObjectTables.loadSchemas(database, into: coder.registry)
            let reader = try reader(path, seal)
            guard !isReadOnly else { return (DatabaseWriter(database), reader) }
            let writer = DatabaseWriter(database) { () throws -> sending Database in
                reader.close()
                return try openToWrite()
            }
            return (writer, reader)
        } catch let failure as DatabaseError where failure.reason == .full || isReadOnly && failure.mayBeReadAlone {
            let reader = try reader(path, seal)
            let check = try reader.withDatabase { database in
                Result {
                    guard try ObjectTables.mayBeRead(database, configuration: self, seal: seal) else { throw failure }
                    try ObjectTables.loadSchemas(database, into: coder.registry)
                }
            }
            try check.get()
            let isReadOnly = isReadOnly
            let writer = DatabaseWriter { () throws -> sending Database in
                guard !isReadOnly else { throw DatabaseError.readOnly(path) }
                reader.close()
                return try openToWrite()
            }
            return (writer, reader)
        }
    }

    /// Opens a connection, and creates the tables in a new file: the first one, or one in the place of a deleted one.
    private func openPrepared(_ path: String, _ seal: ValueSeal) throws -> sending Database {
        let database = try connect(path)
        try ObjectTables.open(database, configuration: self, seal: seal)
        return database
    }

    /// Opens a connection for reading, which works on a full disk.
    private func reader(_ path: String, _ seal: ValueSeal) throws(DatabaseError) -> DatabaseReader {
        try DatabaseReader(path: path) { () throws(DatabaseError) in
            do {
                return try openPrepared(path, seal)
            } catch let error as DatabaseError {
                throw error
            } catch {
                // The store was opened before: another file has taken its place.
                throw DatabaseError(reason: .other, code: 0, message: "\(error)", path: path, sql: nil)
            }
        }
    }

    /// Opens a connection for reading beside others of the store. The last one removes the log when it closes, and must
    /// be able to write.
    func temporaryReader(_ path: String) throws(DatabaseError) -> DatabaseReader {
        try DatabaseReader(path: path) { () throws(DatabaseError) in try connect(path, isReading: true) }
    }
}
