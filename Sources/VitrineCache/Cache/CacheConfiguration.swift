public import VitrineCore

/// A cache's places, limits and options. The defaults suit a desktop program's pictures.
public struct CacheConfiguration: Sendable {
    /// The directory below which every cache has one of its name. Default: ``defaultRoot``.
    public var root: String
    /// What all formats may keep in memory together, but those with a capacity of their own. 0 keeps nothing there.
    /// Default: 64 MB.
    public var memoryCapacity: ByteCount = .megabytes(64)
    /// A limit on the memory of several caches together; nil for none. Default: the process's.
    public var memoryBudget: MemoryBudget? = .shared
    /// What each format may keep on disk that does not say otherwise. 0 keeps nothing there. Default: 500 MB.
    public var diskCapacity: ByteCount = .megabytes(500)
    /// The most bytes that the entries of all formats may count on disk together, including formats that are not
    /// registered in this process. The directory takes at most this and ``DiskCache/diskOverhead``.
    ///
    /// The cache enforces it when it is opened, with every write, and in ``Cache/setTotalDiskCapacity(_:)``. Each format
    /// then nominates the entry it would evict, and the least recently used of these is evicted.
    ///
    /// Default: nil, which stands for twice ``diskCapacity`` or, if that is more, the largest capacity of a format: 1 GB
    /// unless configured otherwise.
    public var totalDiskCapacity: ByteCount?
    /// What goes on disk when room is needed.
    public var eviction: DiskCache.Eviction = .sizeAndFrequency
    /// How long an entry is fresh; nil for ever.
    public var timeToLive: Duration?
    /// How long an expired entry on disk stays usable for ``servesStale`` and revalidation. Default: a day.
    public var expiredRetention: Duration = .seconds(86_400)
    /// Which levels requests may use at all (R21). Default: all.
    public var levels: CacheLevels = .all
    /// Whether an original that was fetched for another format's sake is kept on disk, so that further formats are made
    /// from it. Default: true.
    public var storesOriginals = true
    /// Whether an expired value is given when the source fails. Default: false.
    public var servesStale = false
    /// What a memory hit does to the entry on disk (R37).
    public var memoryHits: MemoryHitPolicy = .refreshLastAccess
    /// Whose reports empty the memory level (R17); nil for nobody's. Default: the system's.
    public var memoryPressure: MemoryPressure? = .shared
    /// Tells the time for expiry and last access.
    public var clock: WallClock = .system
    /// Whose threads decode and transform.
    public var executor: BlockingExecutor = .shared
    /// How many transforms run at once; the others wait in the order of their priorities. Default: the executor's
    /// threads.
    public var transformLimit: Int?
    /// The application's version: what another one wrote is dropped at opening (R49). nil takes any.
    public var version: String?
    /// Versions whose entries this one can read.
    public var compatibleVersions: [String] = []

    /// The defaults, below a root.
    ///
    /// - Parameter root: nil for ``defaultRoot``.
    public init(root: String? = nil) {
        self.root = root ?? Self.defaultRoot
    }

    /// For many small pictures: 3 MiB in memory and 50 MiB per format on disk, the defaults of earlier libraries (R19,
    /// R35).
    public static var thumbnails: CacheConfiguration {
        var configuration = CacheConfiguration()
        configuration.memoryCapacity = .mebibytes(3)
        configuration.diskCapacity = FormatName.automaticDiskCapacity
        return configuration
    }

    private static let chosenRoot = Locked<(path: String?, isUsed: Bool)>((nil, false))

    /// Where caches are that do not say otherwise: `vitrine` in the user's directory for caches, or what
    /// ``setDefaultRoot(_:)`` said.
    public static var defaultRoot: String {
        chosenRoot.withLock { chosen in
            chosen.isUsed = true
            return chosen.path ?? FilePath.join(Directories.current.caches, "vitrine")
        }
    }

    /// Chooses another default root, once and before any use (R44).
    ///
    /// - Returns: false, and nothing changes, if the default root was chosen or used before: caches would be in two
    ///   places.
    @discardableResult
    public static func setDefaultRoot(_ path: String) -> Bool {
        chosenRoot.withLock { chosen in
            guard chosen.path == nil, !chosen.isUsed else { return false }
            chosen.path = path
            return true
        }
    }
}
