public import VitrineCore
public import VitrineDatabase

extension ObjectStore {
    /// How a store is opened.
    public struct Configuration: Sendable {
        /// Whether a power cut may take the last changes. Default `full`: it may not.
        public var durability: Database.Options.Durability
        /// How objects become bytes, and which types there are. Default: the shared registry.
        public var coder: PersistentCoder
        /// What seals the values; nil, the default, stores them as they are. A store is made with a cipher or without,
        /// and stays so. Keys, groups, and names and versions of types are readable in any case.
        public var cipher: (any ValueCipher)?
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
        /// Opens what exists and changes nothing. A file in a directory that cannot be written is read as it is,
        /// without what another process has in its log.
        public var isReadOnly: Bool

        public init(
            durability: Database.Options.Durability = .full, coder: PersistentCoder = PersistentCoder(),
            cipher: (any ValueCipher)? = nil, memoryCapacity: ByteCount = .zero, version: String? = nil,
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
        do throws(DatabaseError) {
            return try Database(path: path, options: options)
        } catch where isReadOnly && (error.reason == .cannotOpen || error.reason == .readOnly) {
            // The log's files cannot be made here, so nobody writes here either.
            options.isImmutable = true
            return try Database(path: path, options: options)
        }
    }
}
