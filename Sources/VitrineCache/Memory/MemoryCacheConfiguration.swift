import VitrineCore

/// How a ``MemoryCache`` behaves.
///
/// ```swift
/// let thumbnails = MemoryCache<CacheKey, Image>(.init(capacity: .megabytes(100), timeToLive: .seconds(600)))
/// ```
public struct MemoryCacheConfiguration: Sendable {
    /// The most all values may cost together. 0 keeps nothing, `.unlimited` sets no limit. Default 64 MB.
    public var capacity: ByteCount
    /// The most a single value may cost; a dearer one is not kept, as is one dearer than the capacity. Default
    /// `.unlimited`: only the capacity counts.
    public var maximumEntryCost: ByteCount
    /// How long a value counts after it was stored, unless it says otherwise. nil, the default: as long as it is kept.
    public var timeToLive: Duration?
    /// What tells it to let go of memory (R17): at `.warning` it gives up half of what it holds, at `.critical` all.
    /// Default the system's; nil for nothing.
    public var trimsOn: MemoryPressure?
    /// What the cache shares with others. Default: nil, so that only the capacity counts.
    public var budget: MemoryBudget?
    /// Tells the time for lifetimes. Default the system's.
    public var clock: WallClock

    /// A configuration.
    public init(
        capacity: ByteCount = .megabytes(64), maximumEntryCost: ByteCount = .unlimited, timeToLive: Duration? = nil,
        trimsOn: MemoryPressure? = .shared, budget: MemoryBudget? = nil, clock: WallClock = .system
    ) {
        self.capacity = capacity
        self.maximumEntryCost = maximumEntryCost
        self.timeToLive = timeToLive
        self.trimsOn = trimsOn
        self.budget = budget
        self.clock = clock
    }

    /// The thumbnail service's memory level: 3 MiB of decoded pixels (R19). Where it had 0 for unlimited, write
    /// `.unlimited`.
    public static var ancestorThumbnails: Self { Self(capacity: .mebibytes(3)) }

    /// The grouped store's memory level: values of 1 MiB and more are kept only when asked for, with
    /// `ignoringEntryLimit: true` (R24). Limited all the same, which it was not.
    public static var ancestorGroups: Self { Self(maximumEntryCost: .mebibytes(1) - 1) }
}
