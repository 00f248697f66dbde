public import VitrineCore

extension DiskCache {
    /// What is evicted when room is needed. Expired entries always go first.
    public enum Eviction: String, Sendable, CaseIterable {
        /// Greedy dual by size and frequency (GDSF: Cherkasova 1998, HPL-98-69): what was used least for its size, aged
        /// by what was evicted before. The best hit ratio for bodies of differing sizes.
        case sizeAndFrequency
        /// What was not used for the longest time.
        case leastRecentlyUsed
    }

    /// How much may wait to be written.
    public struct WriteBehind: Sendable {
        /// The most operations.
        public var entries: Int
        /// The most bytes of bodies. One larger body is taken when nothing else waits.
        public var bytes: ByteCount

        public init(entries: Int = 256, bytes: ByteCount = .megabytes(8)) {
            self.entries = entries
            self.bytes = bytes
        }
    }

    /// A cache's limits and options.
    public struct Configuration: Sendable {
        /// The most bytes all entries may count; 0 keeps nothing. The directory takes at most this and
        /// ``DiskCache/diskOverhead``.
        public var capacity: ByteCount
        /// What goes when room is needed.
        public var eviction: Eviction
        /// How long an entry is fresh unless its put says otherwise; nil for ever.
        public var timeToLive: Duration?
        /// How long an expired entry stays readable for who asks for expired ones, unless its room is needed.
        public var expiredRetention: Duration
        /// Bodies larger than this are files of their own.
        public var inlineLimit: ByteCount
        /// How much may wait to be written.
        public var writeBehind: WriteBehind
        /// The application's version. A cache that was written by another one is emptied when it is opened, unless that
        /// one is among ``compatibleVersions`` (R49). nil takes any.
        public var version: String?
        /// Versions whose entries this one can read.
        public var compatibleVersions: [String]
        /// Opens what exists and changes nothing, not even the record of uses.
        public var isReadOnly: Bool
        /// Tells the time for expiry and last use.
        public var clock: WallClock
        /// Whether an entry with a lifetime that was created in the future, before the clock was set back, is expired.
        /// Otherwise its lifetime begins now.
        package var expiresFutureEntries = false

        public init(
            capacity: ByteCount = .megabytes(500), eviction: Eviction = .sizeAndFrequency, timeToLive: Duration? = nil,
            expiredRetention: Duration = .seconds(86_400), inlineLimit: ByteCount = .kibibytes(64),
            writeBehind: WriteBehind = WriteBehind(), version: String? = nil, compatibleVersions: [String] = [],
            isReadOnly: Bool = false, clock: WallClock = .system
        ) {
            self.capacity = capacity
            self.eviction = eviction
            self.timeToLive = timeToLive
            self.expiredRetention = expiredRetention
            self.inlineLimit = inlineLimit
            self.writeBehind = writeBehind
            self.version = version
            self.compatibleVersions = compatibleVersions
            self.isReadOnly = isReadOnly
            self.clock = clock
        }
    }
}
