public import VitrineCore

extension DiskCache {
    /// The order in which entries are evicted. Expired entries are evicted first.
    public enum Eviction: Sendable, CaseIterable {
        /// Greedy dual by size and frequency (GDSF: Cherkasova 1998, HPL-98-69): the least used entries for their size,
        /// with aging. Has the best hit ratio for bodies of different sizes.
        case sizeAndFrequency
        /// The least recently used entries.
        case leastRecentlyUsed
    }

    /// The limits of the queued writes.
    package struct WriteBehind: Sendable {
        /// The maximum number of operations.
        package var entries: Int
        /// The maximum size of the bodies. A larger body is queued when no other write is.
        package var bytes: ByteCount

        /// Creates limits.
        package init(entries: Int = 256, bytes: ByteCount = .megabytes(8)) {
            self.entries = entries
            self.bytes = bytes
        }
    }

    /// A cache's limits and options.
    public struct Configuration: Sendable {
        /// The most bytes all entries may count; 0 keeps nothing. The directory takes at most this and
        /// 48 MiB for indexes and changes under way.
        public var capacity: ByteCount
        /// The order in which entries are evicted.
        public var eviction: Eviction
        /// How long an entry is fresh unless its put says otherwise; nil for ever.
        public var timeToLive: Duration?
        /// How long an expired entry stays readable for who asks for expired ones, unless its room is needed.
        package var expiredRetention: Duration = .seconds(86_400)
        /// Bodies larger than this are files of their own.
        package var inlineLimit: ByteCount = .kibibytes(64)
        /// The limits of the queued writes.
        package var writeBehind = WriteBehind()
        /// The version of the application. Opening a cache of another version, not in ``compatibleVersions``, empties
        /// it. Default nil: any version.
        public var version: String?
        /// Versions whose entries this one can read.
        public var compatibleVersions: [String]
        /// Opens an existing cache and changes nothing, not even access times.
        public var isReadOnly: Bool
        /// Tells the time for expiry and last use. Default: the system's clock.
        public var clock: WallClock = .system
        /// Whether an entry with a lifetime that was created in the future, before the clock was set back, is expired.
        /// Otherwise its lifetime begins now.
        package var expiresFutureEntries = false
        /// Whether readers map the database into memory. Otherwise they read its pages into buffers: a lookup takes a few
        /// microseconds more, and the pages it has touched do not count as memory of the process. Default: true.
        package var mapsDatabase = true

        /// Creates a configuration.
        public init(
            capacity: ByteCount = .megabytes(500), eviction: Eviction = .sizeAndFrequency, timeToLive: Duration? = nil,
            version: String? = nil, compatibleVersions: [String] = [], isReadOnly: Bool = false
        ) {
            self.capacity = capacity
            self.eviction = eviction
            self.timeToLive = timeToLive
            self.version = version
            self.compatibleVersions = compatibleVersions
            self.isReadOnly = isReadOnly
        }
    }
}
