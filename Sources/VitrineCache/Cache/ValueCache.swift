import Logging
public import VitrineCore

/// A cache of values by key with two levels, memory and disk, any number of formats, and any source.
///
/// ```swift
/// let cache = ValueCache<String>(name: "reports")
/// let report = try await cache.value(forKey: "bremen") { try await weather.report("Bremen") }
/// cache["bremen"]     // memory only, at once
/// ```
///
/// - **Memory is synchronous, disk is asynchronous.** Subscripts look in memory only. All other calls are asynchronous
///   or take a callback.
/// - **Work is coalesced.** Concurrent calls for the same value share one lookup, fetch and transform. It runs at the
///   highest of their priorities and is cancelled with the last caller.
/// - **Removed values stay removed.** A load that began before a value was set, removed or cleared does not store its
///   value. Neither does one that began before a purge of one of its tags, in this process or another.
/// - **A damaged entry is a miss.** It is removed, logged and fetched again.
///
/// Each cache has a directory. All formats share one database, one writing thread and one set of open files there.
/// Several processes, and several caches with one name in a process, may use a directory at the same time. Each has its
/// own memory level and may register other formats.
///
/// ## Topics
/// ### Looking up
/// - ``subscript(_:)``
/// - ``value(forKey:format:depth:levels:priority:)``
/// - ``contains(_:format:at:)``
/// - ``depth(of:format:)``
/// ### Loading
/// - ``value(forKey:format:levels:priority:timeToLive:tags:orLoad:)``
/// - ``value(from:format:levels:priority:)``
/// - ``refresh(from:format:priority:)``
/// - ``updates(from:format:levels:priority:revalidatingFresh:)``
/// - ``prefetch(from:format:to:priority:)``
/// - ``fetch(forKey:format:depth:levels:priority:)``
/// ### Limits
/// - ``memoryCapacity``
/// ### Changing
/// - ``set(_:forKey:format:timeToLive:tags:levels:)``
/// - ``remove(_:format:)``
/// - ``removeAll(tag:levels:)``
/// - ``removeAll(levels:)``
/// - ``expire(_:format:)``
/// ### Formats
/// - ``register(_:)``
public final class ValueCache<Value: CacheableValue>: Sendable {
    /// The name of the cache. The directory is named after it.
    public let name: String
    /// How it was configured.
    @usableFromInline package let configuration: CacheConfiguration
    /// Where its entries are.
    public let directory: String

    @usableFromInline package let original: FormatArea<Value>
    @usableFromInline let hits: MemoryHitRecorder?
    let formats: FormatTable<Value>
    let sharedMemory: MemoryCache<MemoryKey, Value>
    let register = InvalidationRegister()
    /// The keys with a background refresh.
    let refreshes = Locked<Set<CacheKey>>([])
    let lookups = SingleFlight<FlightKey, Value?>()
    let loads = SingleFlight<FlightKey, Loaded<Value>>()
    let originals = SingleFlight<FlightKey, SourceResult<Value>>()
    let transforms: WorkQueue
    let metrics: CacheMetrics
    let audits = WorkQueue(limit: 1)
    /// The disk level of all formats.
    let disk: DiskEngine
    let log = Log.logger("cache")

    /// A cache. Opens nothing: that happens at the first use of the disk.
    ///
    /// - Parameters:
    ///   - name: Any text. Caches of one name and root share their entries on disk.
    ///   - configuration: Places, limits and options.
    public init(name: String, configuration: CacheConfiguration = CacheConfiguration()) {
        self.name = name
        self.configuration = configuration
        directory = FilePath.join(configuration.root, FileName.name(for: name))
        sharedMemory = Self.memory(configuration.memoryCapacity, configuration)
        transforms = WorkQueue(limit: configuration.transformLimit ?? configuration.executor.threads)
        metrics = CacheMetrics(cache: name)
        hits = configuration.memoryHits == .leaveDisk ? nil : MemoryHitRecorder()
        // Twice as much as a format may keep is room for the originals and for what is made from them.
        let total = configuration.totalDiskCapacity.map { DiskEngine.Total.exactly($0.bytes) }
        disk = DiskEngine(
            directory: directory, configuration: configuration.disk(),
            total: total ?? .atLeast((configuration.diskCapacity * 2).bytes), hadFormatDirectories: true)
        original = Self.area(.original, id: 0, shared: sharedMemory, engine: disk, configuration: configuration)
        formats = FormatTable(original: original)
    }

    deinit {
        // What is queued is written by the disk levels; uses that were not passed on yet are.
        reportMemoryHits()
        disk.retire()
    }

    // MARK: Memory

    /// The value in memory, in the original format. Setting it changes memory alone, so that it may be gone at any
    /// time; nil removes it from memory.
    @inlinable
    public subscript(key: CacheKey) -> Value? {
        get { memoryValue(original, key, levels: .all) }
        set { setMemory(newValue, forKey: key, in: original) }
    }

    /// The value in memory in a format, or nil. Setting stores the value without applying the transform. Setting in a
    /// format that is not registered has no effect.
    public subscript(key: CacheKey, format: FormatName) -> Value? {
        get { formats[format].flatMap { memoryValue($0, key, levels: .all) } }
        set { if let area = formats[format] { setMemory(newValue, forKey: key, in: area) } }
    }

    /// The limit of all formats in memory together, except those with their own capacity. Initially
    /// ``CacheConfiguration/memoryCapacity``. Lowering it evicts before the setter returns; 0 stores nothing in memory.
    public var memoryCapacity: ByteCount {
        get { sharedMemory.capacity }
        set { sharedMemory.capacity = newValue }
    }

    // Inlinable, as lookups of a generic type that another module cannot specialize cost several times as much.
    @inlinable
    func memoryValue(_ area: FormatArea<Value>, _ key: CacheKey, levels: CacheLevels) -> Value? {
        guard levels.contains(.readMemory), configuration.levels.contains(.readMemory) else { return nil }
        let slot = area.slot(key)
        guard let value = area.memory.value(forKey: slot) else { return nil }
        if let full = hits?.record(slot) { reportHits(full) }
        return value
    }

    @usableFromInline
    func setMemory(_ value: Value?, forKey key: CacheKey, in area: FormatArea<Value>) {
        let slot = area.slot(key)
        guard let value, configuration.levels.contains(.writeMemory) else {
            _ = register.change(slot) { area.memory.remove(slot) }
            return
        }
        let incoming = incoming(value, slot, expires: expiry(nil, in: area), in: area)
        area.memory.finish(register.change(slot) { area.memory.insert(incoming) })
    }

    // MARK: Formats

    /// Registers a format. Its entries from earlier runs are available immediately.
    ///
    /// - Returns: false if a format with this name is registered already. That format stays.
    @discardableResult
    public func register(_ format: CacheFormat<Value>) -> Bool {
        let area = formats.add(format.name) { id in
            Self.area(format, id: id, shared: sharedMemory, engine: disk, configuration: configuration)
        }
        return area != nil
    }

    /// Forgets a format. Its entries on disk stay for who registers it again; ``removeAll(levels:)`` removes them too.
    /// The original cannot be forgotten.
    public func unregister(_ name: FormatName) {
        guard let area = formats.remove(name) else { return }
        _ = register.changeAll(format: area.id) { area.takeMemory() }
    }

    /// Returns the registered format with a name.
    public func format(_ name: FormatName) -> CacheFormat<Value>? { formats[name]?.format }

    /// The names of all registered formats, the original first.
    package var formatNames: [FormatName] { formats.all.map(\.format.name) }

    /// Returns the disk level of a format; nil if the format is not registered.
    package func disk(for format: FormatName = .original) -> DiskCache? { formats[format]?.disk }

    // MARK: Parts

    func area(_ name: FormatName) throws(CacheError) -> FormatArea<Value> {
        guard let area = formats[name] else { throw .formatNotFound(name) }
        return area
    }

    /// A value ready to be put into a format's memory level.
    func incoming(
        _ value: Value, _ slot: MemoryKey, expires: Duration?, tags: EntryTags = .none, in area: FormatArea<Value>
    ) -> IncomingEntry<MemoryKey, Value> {
        area.memory.incoming(value, forKey: slot, cost: value.cacheCost, expires: expires, tags: tags)
    }

    /// Returns the time, since 1970, at which a value stored now expires.
    func expiry(_ timeToLive: Duration?, in area: FormatArea<Value>) -> Duration? {
        let life = timeToLive ?? area.format.timeToLive ?? configuration.timeToLive
        return life.map { configuration.clock.now + $0 }
    }

    private static func memory(
        _ capacity: ByteCount, _ configuration: CacheConfiguration
    ) -> MemoryCache<MemoryKey, Value> {
        MemoryCache(
            .init(
                capacity: capacity, trimsOn: configuration.memoryPressure, budget: configuration.memoryBudget,
                clock: configuration.clock),
            weakReference: Value.weakReference)
    }

    private static func area(
        _ format: CacheFormat<Value>, id: Int, shared: MemoryCache<MemoryKey, Value>, engine: DiskEngine,
        configuration: CacheConfiguration
    ) -> FormatArea<Value> {
        let disk = DiskCache(
            engine, format: format.name.description, capacity: format.diskCapacity ?? configuration.diskCapacity)
        let own = format.memoryCapacity.map { memory($0, configuration) }
        return FormatArea(
            format, id: id, memory: own ?? shared, sharesMemory: own == nil, disk: disk,
            executor: configuration.executor)
    }
}

extension CacheConfiguration {
    /// The disk level's part of the configuration.
    func disk() -> DiskCache.Configuration {
        var disk = DiskCache.Configuration(
            capacity: diskCapacity, eviction: eviction, version: version, compatibleVersions: compatibleVersions,
            clock: clock)
        disk.expiredRetention = expiredRetention
        // There is a source to ask, and the age of such an entry is unknown.
        disk.expiresFutureEntries = true
        disk.mapsDatabase = mapsDatabase
        return disk
    }
}
