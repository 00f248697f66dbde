public import VitrineCore

/// A cache's places, limits and options. The defaults suit a desktop program's images.
public struct CacheConfiguration: Sendable {
    /// The directory below which every cache has one of its name. Default: ``defaultRoot``.
    public var root: String
    /// The limit of all formats in memory together, except those with their own capacity. 0 stores nothing in memory.
    /// Default: 64 MB.
    public var memoryCapacity: ByteCount = .megabytes(64)
    /// A limit on the memory of several caches together; nil for none. Default: the process's.
    public var memoryBudget: MemoryBudget? = .shared
    /// The limit on disk of each format without its own capacity. 0 stores nothing on disk. Default: 500 MB.
    public var diskCapacity: ByteCount = .megabytes(500)
    /// The most bytes that the entries of all formats may count on disk together, including formats that are not
    /// registered in this process. The directory takes at most this and 48 MiB for
    /// indexes and changes under way.
    ///
    /// The cache enforces it when it is opened, with every write, and in ``ValueCache/setTotalDiskCapacity(_:)``. Each
    /// format then nominates the entry it would evict, and the least recently used of these is evicted.
    ///
    /// Default: nil, which stands for twice ``diskCapacity`` or, if that is more, the largest capacity of a format: 1
    /// GB unless configured otherwise.
    public var totalDiskCapacity: ByteCount?
    /// The order in which entries are evicted from disk.
    public var eviction: DiskCache.Eviction = .sizeAndFrequency
    /// How long an entry is fresh; nil for ever.
    public var timeToLive: Duration?
    /// How long an expired entry on disk stays usable for ``servesStale`` and revalidation. Default: a day.
    package var expiredRetention: Duration = .seconds(86_400)
    /// The levels that requests may use. Default: all.
    public var levels: CacheLevels = .all
    /// Whether an original that was fetched for another format's sake is kept on disk, so that further formats are made
    /// from it. Default: true.
    public var storesOriginals = true
    /// Whether an expired value is given when the source fails. Default: false.
    public var servesStale = false
    /// The effect of a memory hit on the entry on disk.
    public var memoryHits: MemoryHitPolicy = .refreshLastAccess
    /// The memory pressure that empties the memory level; nil for none. Default: that of the system.
    public var memoryPressure: MemoryPressure? = .shared
    /// Tells the time for expiry and last access.
    public var clock: WallClock = .system
    /// Whose threads decode and transform.
    public var executor: BlockingExecutor = .shared
    /// How many transforms run at once; the others wait in the order of their priorities. Default: the executor's
    /// threads.
    package var transformLimit: Int?
    /// The version of the application. Entries of other versions are removed at opening. Default nil: any version.
    public var version: String?
    /// Versions whose entries this one can read.
    public var compatibleVersions: [String] = []

    /// Whether the disk level maps its database into memory; see ``DiskCache/Configuration``. Default: true.
    package var mapsDatabase = true

    /// The defaults, below a root.
    ///
    /// - Parameter root: nil for ``defaultRoot``.
    public init(root: String? = nil) {
        self.root = root ?? Self.defaultRoot
    }

    /// A configuration for many small images: 3 MiB in memory, and 50 MiB on disk for each format.
    public static var thumbnails: CacheConfiguration {
        var configuration = CacheConfiguration()
        configuration.memoryCapacity = .mebibytes(3)
        configuration.diskCapacity = .mebibytes(50)
        return configuration
    }

    private static let chosenRoot = Locked<(path: String?, isUsed: Bool)>((nil, false))

    /// The directory of all caches without another root: the one set by ``setDefaultRoot(_:)``, or `vitrine` in the
    /// user's caches directory.
    public static var defaultRoot: String {
        chosenRoot.withLock { chosen in
            chosen.isUsed = true
            return chosen.path ?? FilePath.join(Directories.current.caches, "vitrine")
        }
    }

    /// Sets the default root, once and before its first use.
    ///
    /// - Returns: false if the default root has been set or used before. It then stays unchanged.
    @discardableResult
    public static func setDefaultRoot(_ path: String) -> Bool {
        chosenRoot.withLock { chosen in
            guard chosen.path == nil, !chosen.isUsed else { return false }
            chosen.path = path
            return true
        }
    }
}

extension CacheConfiguration {
    /// The disk level's part of the configuration.
    func disk() -> DiskCache.Configuration {
        var disk = DiskCache.Configuration(
            capacity: diskCapacity, eviction: eviction, version: version, compatibleVersions: compatibleVersions)
        disk.clock = clock
        disk.expiredRetention = expiredRetention
        // There is a source to ask, and the age of such an entry is unknown.
        disk.expiresFutureEntries = true
        disk.mapsDatabase = mapsDatabase
        return disk
    }
}

/// The effect of a memory hit on the entry on disk.
public enum MemoryHitPolicy: Sendable, Hashable {
    /// Nothing. Eviction and audits on disk then see uses only that memory did not serve.
    case leaveDisk
    /// Refreshes the last access, in batches of up to 256 hits. This is the default, so that audits by last access keep
    /// the entries that are used most.
    case refreshLastAccess
    /// The last access is refreshed, and an entry that is missing on disk is written again, one check per batch.
    case restoreMissing
}

/// The level at which a lookup ends or a value is found. Each level includes the previous ones.
public enum CacheLevel: Sendable, Hashable, Comparable, CaseIterable {
    /// Memory only. Answers at once.
    case memory
    /// Memory, then disk.
    case disk
    /// Memory, disk, then the source: a fetcher, a closure, the network.
    case source
}

/// The levels of a cache that a request may read and write.
///
/// ```swift
/// let fresh = try await cache.value(forKey: key, levels: .all.subtracting(.readMemory))
/// ```
///
/// ``CacheLevel`` limits the depth of a lookup. Levels that are missing here are skipped. With `[]`, values always come
/// from the source and are not kept.
public struct CacheLevels: OptionSet, Sendable, Hashable {
    /// The levels as bits.
    public let rawValue: UInt8

    /// Creates levels from bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Values may come from memory.
    public static let readMemory = CacheLevels(rawValue: 1)
    /// Values are kept in memory.
    public static let writeMemory = CacheLevels(rawValue: 2)
    /// Values may come from disk.
    public static let readDisk = CacheLevels(rawValue: 4)
    /// Values are kept on disk.
    public static let writeDisk = CacheLevels(rawValue: 8)

    /// Memory, for reading and writing.
    public static let memory: CacheLevels = [.readMemory, .writeMemory]
    /// Disk, for reading and writing.
    public static let disk: CacheLevels = [.readDisk, .writeDisk]
    /// Everything. The default.
    public static let all: CacheLevels = [.memory, .disk]
    /// Reads from everywhere and leaves both levels as they are.
    public static let readOnly: CacheLevels = [.readMemory, .readDisk]
    /// Always fetches from the source, and stores the value.
    public static let writeOnly: CacheLevels = [.writeMemory, .writeDisk]
    /// Neither reads nor keeps anything: always the source.
    package static let none: CacheLevels = []
}
