public import VitrineCore

/// A cache of bytes on disk with a strict capacity. It can be shared by processes and is safe against crashes.
///
/// ```swift
/// let cache = DiskCache(directory: path, configuration: .init(capacity: .gigabytes(1)))
/// try await cache.set(bytes, forKey: "lake", timeToLive: .seconds(3600))
/// let bytes = try await cache.bytes(forKey: "lake")
/// ```
///
/// - **Writes are queued** and written by a thread of the cache, up to 64 in a transaction. Reads of this process see
///   queued writes at once. A killed program loses the queued writes only; ``flush()`` waits until they are on disk.
/// - **The capacity always holds.** Entries are evicted before each write, in the order of ``Eviction``. The size of an
///   entry is that of its body, key and validator, plus 200 bytes, and 40 bytes for each tag and for all of them.
/// - **Damage is a miss.** Each entry has a checksum over body, length and key. A damaged entry is removed and logged,
///   others stay. A damaged database is replaced by an empty one; a deleted directory is created again.
/// - **Several processes** may use one directory on a local file system at the same time.
///
/// Asynchronous calls run on `BlockingExecutor.shared`. ``blocking`` has the blocking forms of the most important
/// calls.
///
/// A `ValueCache` has a disk cache for each format. They share one database, one writing thread and one queue.
///
/// Bodies below 2 KiB are in an SQLite database, those up to 64 KiB in blocks of one file beside it, and larger ones in
/// separate files.
///
/// ## Topics
/// ### Reading
/// - ``bytes(forKey:)``
/// - ``contains(_:)``
/// ### Writing
/// - ``set(_:forKey:timeToLive:validator:tags:)``
/// - ``remove(_:)``
/// - ``removeAll(tag:)``
/// - ``removeAll()``
/// - ``flush()``
/// ### Size
/// - ``size``
/// - ``setCapacity(_:)``
public final class DiskCache: Sendable {
    /// The overhead of an entry in bytes, for its rows in tables and indexes.
    package static let entryOverhead = 200

    /// The space that the directory takes on disk beyond the capacity: 48 MiB.
    ///
    /// It holds the log of the database, partly used pages and blocks, and the bodies being written. The log takes up
    /// to half of the capacity, but at least 8 and at most 32 MiB. Log, pages and blocks beyond this space count towards
    /// the capacity and cause evictions. The next program that opens the cache deletes the files of a killed one. After
    /// ``setCapacity(_:)`` with a lower capacity, the database and the file of bodies may keep their lengths until
    /// everything is removed.
    package static let diskOverhead: ByteCount = .mebibytes(48)

    /// Where the cache lies.
    public let directory: String
    /// How it was configured. The capacity may have been changed since: ``capacity``.
    package let configuration: Configuration
    let engine: DiskEngine
    let format: DiskFormat
    /// Whether the engine has other formats.
    let isShared: Bool

    /// A cache in a directory. Opens nothing: that happens at the first use, where it may also fail.
    ///
    /// - Parameters:
    ///   - directory: Its own directory, made when it is missing. On a local file system.
    ///   - configuration: Its limits and options.
    public init(directory: String, configuration: Configuration = Configuration()) {
        self.directory = directory
        self.configuration = configuration
        engine = DiskEngine(directory: directory, configuration: configuration, total: .atLeast(0))
        format = DiskFormat("entries", capacity: configuration.capacity, timeToLive: configuration.timeToLive)
        isShared = false
        engine.register(format)
    }

    /// One format's part of an engine.
    init(_ engine: DiskEngine, format name: String, capacity: ByteCount) {
        directory = engine.layout.directory
        var configuration = engine.configuration
        configuration.capacity = capacity
        self.configuration = configuration
        self.engine = engine
        format = DiskFormat(name, capacity: capacity, timeToLive: configuration.timeToLive)
        isShared = true
        engine.register(format)
    }

    deinit {
        if isShared { engine.unregister(format) } else { engine.retire() }
    }

    func entryKey(_ key: CacheKey) -> EntryKey { EntryKey(key, format) }

    /// The same calls for threads that may block; never for the cooperative pool.
    public var blocking: Blocking { Blocking(engine: engine, format: format, isShared: isShared) }

    private func run<Result: Sendable>(
        _ body: @escaping @Sendable (Blocking) throws(CacheError) -> Result
    ) async throws(CacheError) -> Result {
        let blocking = blocking
        return try await BlockingExecutor.shared.run { () throws(CacheError) in try body(blocking) }
    }

    // MARK: Reading

    /// The bytes of a key, unless they have expired. Counts as a use.
    public func bytes(forKey key: CacheKey) async throws(CacheError) -> [UInt8]? {
        try await run { (blocking) throws(CacheError) in try blocking.bytes(forKey: key) }
    }

    /// Whether there is an entry that has not expired. No use, and the body is not read.
    public func contains(_ key: CacheKey) async throws(CacheError) -> Bool {
        try await run { (blocking) throws(CacheError) in try blocking.contains(key) }
    }

    /// Returns the properties of an entry, expired or not. No use, and the body is not read.
    package func info(forKey key: CacheKey) async throws(CacheError) -> EntryInfo? {
        try await run { (blocking) throws(CacheError) in try blocking.info(forKey: key) }
    }

    /// Whether a key certainly has no entry. Does not wait.
    package func excludes(_ key: CacheKey) -> Bool { engine.excludes(entryKey(key)) }

    // MARK: Writing

    /// Stores bytes for a key, replacing earlier ones.
    ///
    /// Returns when the bytes are queued, and suspends only while the queue is full. Later errors are counted, logged
    /// and thrown by the next ``flush()``. Bytes larger than the capacity are not stored, which is counted and logged
    /// but not an error. An older entry of the key is removed in any case.
    ///
    /// - Parameters:
    ///   - bytes: The body; may be empty.
    ///   - key: The key of the entry.
    ///   - timeToLive: How long the entry is fresh. Default nil: the time of the configuration.
    ///   - validator: Some bytes of the caller, stored with the entry: for example an entity tag.
    ///   - tags: Up to 16 tags for ``removeAll(tag:)``, each of up to 256 UTF-8 bytes. They replace those of an earlier
    ///     entry.
    /// - Throws: ``CacheError/invalidTags(count:longest:)``, or the error of the directory, if it is already known that
    ///   it cannot be written.
    public func set(
        _ bytes: [UInt8], forKey key: CacheKey, timeToLive: Duration? = nil, validator: [UInt8] = [],
        tags: [String] = []
    ) async throws(CacheError) {
        try await set(.ready(bytes), key: key, life: timeToLive, validator: validator, tags: tags)
    }

    /// Stores bytes that are made on the thread of the cache.
    ///
    /// - Parameters:
    ///   - key: The key of the entry.
    ///   - timeToLive: How long the entry is fresh. Default nil: the time of the configuration.
    ///   - validator: Some bytes of the caller, stored with the entry: for example an entity tag.
    ///   - tags: See ``set(_:forKey:timeToLive:validator:tags:)``.
    ///   - bytes: Makes the bytes; called at most once. It must not wait for this cache. ``flush()`` reports its error
    ///     as ``CacheError/notEncodable(key:underlying:)``.
    public func set(
        forKey key: CacheKey, timeToLive: Duration? = nil, validator: [UInt8] = [], tags: [String] = [],
        bytes: @escaping @Sendable () throws -> [UInt8]
    ) async throws(CacheError) {
        try await set(.lazy(LazyBytes(bytes)), key: key, life: timeToLive, validator: validator, tags: tags)
    }

    private func set(
        _ body: Body, key: CacheKey, life: Duration?, validator: [UInt8], tags: [String]
    ) async throws(CacheError) {
        var began: PurgeMark?
        if !tags.isEmpty {
            began = engine.promptPurgeMark()
            if began == nil {
                began = try await BlockingExecutor.shared.run { [engine] () throws(CacheError) in
                    try engine.purgeMark()
                }
            }
        }
        let operation = try engine.put(
            body, in: format, timeToLive: life, validator: validator, tags: EntryTags(tags, began: began))
        await engine.enqueue(operation, forKey: entryKey(key))
    }

    /// Removes the entry of a key. An unknown key is ignored.
    public func remove(_ key: CacheKey) async {
        await engine.enqueue(.remove, forKey: entryKey(key))
    }

    /// Removes all entries. The cache continues in an empty directory, and the old one is deleted in the background.
    /// Queued writes are dropped. If other formats have entries in the engine, only those of this format are removed.
    public func removeAll() async throws(CacheError) {
        try await run { (blocking) throws(CacheError) in try blocking.removeAll() }
    }

    /// Removes all entries with a tag, in time proportional to their number.
    ///
    /// Writes that began before do not appear afterwards, in this process or in others with the same directory. All of
    /// the entries are gone or none, even if the process is killed.
    ///
    /// - Returns: The number of removed entries.
    /// - Throws: ``CacheError/invalidTags(count:longest:)`` if no entry can have the tag, or the error of the
    ///   directory.
    @discardableResult
    public func removeAll(tag: String) async throws(CacheError) -> Int {
        try await run { (blocking) throws(CacheError) in try blocking.removeAll(tag: tag) }
    }

    /// Gives the entry of a key a new lifetime, from now on; for a source that says it has not changed.
    package func renew(_ key: CacheKey, timeToLive: Duration?) async {
        await engine.enqueue(engine.renewing(timeToLive, in: format), forKey: entryKey(key))
    }

    /// Replaces the validator of an entry.
    package func setValidator(_ validator: [UInt8], forKey key: CacheKey) async {
        await engine.enqueue(.patch(Patch(validator: validator)), forKey: entryKey(key))
    }

    /// Records an access that did not read the disk, for example a memory hit. Performs no I/O.
    package func touch(_ key: CacheKey) { engine.touch(entryKey(key)) }

    /// Returns when all earlier changes are written.
    ///
    /// - Throws: The first error since the last flush.
    public func flush() async throws(CacheError) {
        try await run { (blocking) throws(CacheError) in try blocking.flush() }
    }

    // MARK: Limits and auditing

    /// The most bytes the entries may count.
    public var capacity: ByteCount { ByteCount(format.limit.load(ordering: .relaxed)) }

    /// Changes the capacity and evicts entries above it before returning.
    public func setCapacity(_ capacity: ByteCount) async throws(CacheError) {
        try await run { (blocking) throws(CacheError) in try blocking.setCapacity(capacity) }
    }

    /// The size of all entries after pending writes.
    public var size: ByteCount {
        get async throws(CacheError) { try await run { (blocking) throws(CacheError) in try blocking.size } }
    }

    /// How many entries there are, expired ones included, after pending writes.
    public var count: Int {
        get async throws(CacheError) { try await run { (blocking) throws(CacheError) in try blocking.count } }
    }

    /// The size of all entries now and after each change. It is nil until the cache is open. Slow readers receive only
    /// the latest size.
    package var sizeUpdates: AsyncStream<ByteCount?> { engine.sizeUpdates(of: format) }

    /// Returns a page of entries in a stable order, including expired ones. Concurrent writes may or may not be
    /// included. All other entries are returned exactly once.
    ///
    /// - Parameters:
    ///   - key: The last key of the previous page; nil for the first page.
    ///   - limit: The maximum number of entries.
    package func entries(after key: CacheKey? = nil, limit: Int = 1000) async throws(CacheError) -> [EntryInfo] {
        try await run { (blocking) throws(CacheError) in try blocking.entries(after: key, limit: limit) }
    }

    /// Verifies the checksum of every entry, and finds files without an entry.
    ///
    /// - Parameter removingDamage: Whether to remove damaged entries, foreign files, and body files without an entry
    ///   for an hour.
    package func verify(removingDamage: Bool) async throws(CacheError) -> VerifyReport {
        try await run { (blocking) throws(CacheError) in try blocking.verify(removingDamage: removingDamage) }
    }

    /// The counters of this object since its creation.
    package var statistics: Statistics {
        var statistics = format.counters.statistics
        statistics.recoveries = engine.formats.counters.statistics.recoveries
        return statistics
    }

    /// Returns the path of the body of a key, if it is larger than 64 KiB. The file may not exist.
    ///
    /// A body that is being replaced stays there until the new one is stored and replaces it atomically. After a crash
    /// in between, it may be the old one until the entry is read or written.
    public func path(forKey key: CacheKey) -> String { engine.layout.path(of: entryKey(key).id) }
}

extension DiskCache {
    /// An entry as it was read.
    package struct Entry: Sendable {
        package let key: CacheKey
        /// The body, its integrity checked.
        package let bytes: [UInt8]
        /// When it was stored, since 1970.
        package let created: Duration
        /// Until when it is fresh, since 1970; nil for ever.
        package let expires: Duration?
        /// Whether its time had passed when it was read.
        package let isExpired: Bool
        /// The validator stored by the caller.
        package let validator: [UInt8]
        /// The tags of the entry.
        package let tags: EntryTags
    }

    /// The properties of an entry without its body.
    package struct EntryInfo: Sendable, Equatable {
        package let key: CacheKey
        /// The body's length.
        package let size: ByteCount
        /// When it was stored, since 1970.
        package let created: Duration
        /// When it was last used, since 1970; exact to a minute.
        package let lastAccess: Duration
        /// Until when it is fresh, since 1970; nil for ever.
        package let expires: Duration?
        /// Whether its time had passed when it was listed.
        package let isExpired: Bool
        /// Uses, as far as eviction counts them: up to 15, and fewer after it has passed over the entry.
        package let hits: Int
        /// The validator stored by the caller.
        package let validator: [UInt8]
        /// Whether the body is a file of its own.
        package let isFile: Bool
    }

    /// Counts since the object was made, of this process alone.
    package struct Statistics: Sendable, Equatable {
        /// Reads that found an entry.
        package var hits = 0
        /// Reads that found none.
        package var misses = 0
        /// Entries written.
        package var insertions = 0
        /// Bytes of their bodies.
        package var insertedBytes = 0
        /// Entries removed to make room.
        package var evictions = 0
        /// The size of the evicted entries in bytes.
        package var evictedBytes = 0
        /// Entries removed because their time had passed.
        package var expirations = 0
        /// Entries found damaged.
        package var damaged = 0
        /// Puts refused because they were larger than the capacity.
        package var refusals = 0
        /// Puts lost to a full disk or another failure.
        package var dropped = 0
        /// Databases replaced because they were damaged.
        package var recoveries = 0

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

    /// The result of ``DiskCache/verify(removingDamage:)``.
    package struct VerifyReport: Sendable {
        /// A damaged entry.
        package struct Damage: Sendable, Equatable {
            /// The key as far as it can be read.
            package let key: CacheKey
            /// A description of the damage.
            package let reason: String
        }

        /// How many entries are whole.
        package var entries = 0
        /// The bytes of their bodies.
        package var bytes: ByteCount = .zero
        /// The damaged entries.
        package var damaged: [Damage] = []
        /// Files that belong to no entry, below the cache's directory.
        package var orphans: [String] = []
        /// The damage that SQLite reports.
        package var database: [String] = []
        /// Whether nothing is wrong.
        package var isSound: Bool { damaged.isEmpty && orphans.isEmpty && database.isEmpty }
    }
}
