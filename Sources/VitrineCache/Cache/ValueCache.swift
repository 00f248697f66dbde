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
    /// The entries. The fields above are its, so that a memory hit reads them at once.
    let storage: EntryStorage<Value>
    let loader: ValueLoader<Value>
    let audits = WorkQueue(limit: 1)

    /// A cache. Opens nothing: that happens at the first use of the disk.
    ///
    /// - Parameters:
    ///   - name: Any text. Caches of one name and root share their entries on disk.
    ///   - configuration: Places, limits and options.
    public init(name: String, configuration: CacheConfiguration = CacheConfiguration()) {
        self.name = name
        self.configuration = configuration
        directory = FilePath.join(configuration.root, FileName.name(for: name))
        storage = EntryStorage(name: name, directory: directory, configuration: configuration)
        loader = ValueLoader(storage)
        original = storage.original
        formats = storage.formats
        hits = storage.hits
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
        get { storage.sharedMemory.capacity }
        set { storage.sharedMemory.capacity = newValue }
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
    func reportHits(_ slots: [MemoryKey]) { storage.reportHits(slots) }

    @usableFromInline
    func setMemory(_ value: Value?, forKey key: CacheKey, in area: FormatArea<Value>) {
        storage.setMemory(value, forKey: key, in: area)
    }

    // MARK: Formats

    /// Registers a format. Its entries from earlier runs are available immediately.
    ///
    /// - Returns: false if a format with this name is registered already. That format stays.
    @discardableResult
    public func register(_ format: CacheFormat<Value>) -> Bool { storage.addFormat(format) }

    /// Forgets a format. Its entries on disk stay until ``removeAll(levels:)``, and are used when it is registered
    /// again. The original cannot be forgotten.
    public func unregister(_ name: FormatName) { storage.removeFormat(name) }

    /// Returns the registered format with a name.
    public func format(_ name: FormatName) -> CacheFormat<Value>? { formats[name]?.format }

    /// The names of all registered formats, the original first.
    package var formatNames: [FormatName] { formats.all.map(\.format.name) }

    /// Returns the disk level of a format; nil if the format is not registered.
    package func disk(for format: FormatName = .original) -> DiskCache? { formats[format]?.disk }
}
