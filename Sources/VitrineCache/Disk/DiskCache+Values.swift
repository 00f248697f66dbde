public import VitrineCore

extension DiskCache {
    /// An entry as it was read.
    public struct Entry: Sendable {
        public let key: CacheKey
        /// The body, its integrity checked.
        public let bytes: [UInt8]
        /// When it was stored, since 1970.
        public let created: Duration
        /// Until when it is fresh, since 1970; nil for ever.
        public let expires: Duration?
        /// Whether its time had passed when it was read.
        public let isExpired: Bool
        /// What the caller stored with it.
        public let tag: [UInt8]
    }

    /// What is known about an entry without its body.
    public struct EntryInfo: Sendable, Equatable {
        public let key: CacheKey
        /// The body's length.
        public let size: ByteCount
        /// When it was stored, since 1970.
        public let created: Duration
        /// When it was last used, since 1970; exact to a minute.
        public let lastAccess: Duration
        /// Until when it is fresh, since 1970; nil for ever.
        public let expires: Duration?
        /// Whether its time had passed when it was listed.
        public let isExpired: Bool
        /// Uses, as far as eviction counts them: up to 15, and fewer after it has passed over the entry.
        public let hits: Int
        /// What the caller stored with it.
        public let tag: [UInt8]
        /// Whether the body is a file of its own.
        public let isFile: Bool
    }

    /// Counts since the object was made, of this process alone.
    public struct Statistics: Sendable, Equatable {
        /// Reads that found an entry.
        public var hits = 0
        /// Reads that found none.
        public var misses = 0
        /// Entries written.
        public var insertions = 0
        /// Bytes of their bodies.
        public var insertedBytes = 0
        /// Entries removed to make room.
        public var evictions = 0
        /// What they counted, in bytes.
        public var evictedBytes = 0
        /// Entries removed because their time had passed.
        public var expirations = 0
        /// Entries found damaged.
        public var damaged = 0
        /// Puts refused because they were larger than the capacity.
        public var refusals = 0
        /// Puts lost to a full disk or another failure.
        public var dropped = 0
        /// Databases replaced because they were damaged.
        public var recoveries = 0

        /// Nothing counted yet.
        package init() {}

        /// Adds the counts of a batch, or of another cache.
        package mutating func add(_ other: Statistics) {
            hits += other.hits
            misses += other.misses
            insertions += other.insertions
            insertedBytes += other.insertedBytes
            evictions += other.evictions
            evictedBytes += other.evictedBytes
            expirations += other.expirations
            damaged += other.damaged
            refusals += other.refusals
            dropped += other.dropped
            recoveries += other.recoveries
        }
    }

    /// What ``DiskCache/verify(removingDamage:)`` found.
    public struct VerifyReport: Sendable {
        /// One entry that is not what was stored.
        public struct Damage: Sendable, Equatable {
            /// The key as far as it can be read.
            public let key: CacheKey
            /// What is wrong.
            public let reason: String
        }

        /// How many entries are whole.
        public var entries = 0
        /// The bytes of their bodies.
        public var bytes: ByteCount = .zero
        /// Entries that are not what was stored.
        public var damaged: [Damage] = []
        /// Files that belong to no entry, below the cache's directory.
        public var orphans: [String] = []
        /// What the database itself says is wrong with it.
        public var database: [String] = []
        /// Whether nothing is wrong.
        public var isSound: Bool { damaged.isEmpty && orphans.isEmpty && database.isEmpty }
    }
}
