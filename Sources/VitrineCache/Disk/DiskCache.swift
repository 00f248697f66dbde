public import VitrineCore

/// A cache on disk: bytes under keys, never more than its capacity, shared by processes, safe against crashes.
///
/// ```swift
/// let cache = DiskCache(directory: path, configuration: .init(capacity: .gigabytes(1)))
/// try await cache.set(bytes, forKey: "lake", timeToLive: .seconds(3600))
/// let bytes = try await cache.bytes(forKey: "lake")
/// ```
///
/// - **Writing costs the caller next to nothing**: a put is queued and written by a thread of the cache's own, up to 64
///   in a transaction. What is queued is seen by every read of this process at once. A killed program loses what was
///   queued, nothing else; ``flush()`` waits until all is written and says whether it was.
/// - **The capacity always holds**: room is made before each entry is written. What is evicted is decided by
///   ``Eviction``. An entry counts its body, key and tag, and ``entryOverhead``.
/// - **Damage is a miss**: each entry carries a checksum over body, length and key. One that does not fit is removed
///   and logged, its neighbours stay. A damaged database is replaced by an empty one; a deleted directory is made anew.
/// - **Several processes** may use one directory on a local file system at the same time.
///
/// The asynchronous calls run on `BlockingExecutor.shared`; ``blocking`` offers the same calls to who may block.
///
/// A `Cache` has one of these for each of its formats, which all share one database, one writing thread and one queue.
///
/// Bodies up to ``Configuration/inlineLimit`` lie in an SQLite database, larger ones in files of their own.
///
/// ## Topics
/// ### Reading
/// - ``entry(forKey:includingExpired:)``
/// - ``bytes(forKey:)``
/// - ``contains(_:)``
/// - ``info(forKey:)``
/// ### Writing
/// - ``set(_:forKey:timeToLive:tag:)``
/// - ``remove(_:)-(CacheKey)``
/// - ``removeAll()``
/// - ``expire(_:)``
/// - ``flush()``
/// ### Auditing
/// - ``entries(after:limit:)``
/// - ``remove(_:)-([CacheKey])``
/// - ``verify(removingDamage:)``
/// - ``size``
/// - ``sizeUpdates``
public final class DiskCache: Sendable {
    /// What an entry counts towards the capacity besides its body, key and tag, in bytes: its place in tables and
    /// indexes.
    public static let entryOverhead = 200

    /// The most bytes that the directory takes on disk beyond the capacity: 48 MiB.
    ///
    /// This is room for the log of the database, for partly used pages, and for a body that is being written. The log
    /// takes up to half of the capacity, but at least 8 and at most 32 MiB. Log and pages beyond this room count towards
    /// the capacity, so that entries are evicted for them. The next program that opens the cache deletes what a killed
    /// one has left. After ``setCapacity(_:)`` with a lower capacity, the database keeps the length of its file until
    /// everything is removed.
    public static let diskOverhead: ByteCount = .mebibytes(48)

    /// Where the cache lies.
    public let directory: String
    /// How it was configured. The capacity may have been changed since: ``capacity``.
    public let configuration: Configuration
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

    /// The entry of a key, with what is known about it. Counts as a use.
    ///
    /// - Parameters:
    ///   - key: What it is stored under.
    ///   - includingExpired: Whether an entry whose time has passed is given as well, as long as it has not been
    ///     purged: to be shown while, or in case, no newer one can be had.
    /// - Returns: nil if there is none, or if it is damaged; that one is removed and logged (R50).
    /// - Throws: ``CacheError/file(_:)`` or ``CacheError/database(_:)`` if the cache cannot be read at all.
    public func entry(forKey key: CacheKey, includingExpired: Bool = false) async throws(CacheError) -> Entry? {
        try await run { (blocking) throws(CacheError) in
            try blocking.entry(forKey: key, includingExpired: includingExpired)
        }
    }

    /// The bytes of a key, unless they have expired. Counts as a use.
    public func bytes(forKey key: CacheKey) async throws(CacheError) -> [UInt8]? {
        try await run { (blocking) throws(CacheError) in try blocking.bytes(forKey: key) }
    }

    /// Whether there is an entry that has not expired. No use, and the body is not read.
    public func contains(_ key: CacheKey) async throws(CacheError) -> Bool {
        try await run { (blocking) throws(CacheError) in try blocking.contains(key) }
    }

    /// What is known about a key's entry, expired or not. No use, and the body is not read.
    public func info(forKey key: CacheKey) async throws(CacheError) -> EntryInfo? {
        try await run { (blocking) throws(CacheError) in try blocking.info(forKey: key) }
    }

    // MARK: Writing

    /// Stores bytes under a key, in place of those that were there.
    ///
    /// Returns when they are queued, and suspends only while the queue is full. What then fails is counted, logged
    /// and thrown by the next ``flush()``. Bytes larger than the capacity are refused, which is counted and logged but
    /// no failure; an older entry of the key is removed all the same.
    ///
    /// - Parameters:
    ///   - bytes: The body; may be empty.
    ///   - key: Any key.
    ///   - timeToLive: How long it is fresh; nil for as long as the configuration says.
    ///   - tag: A few bytes of the caller's own, given back with the entry.
    /// - Throws: Why nothing can be written to the directory, if that is known already.
    public func set(
        _ bytes: [UInt8], forKey key: CacheKey, timeToLive: Duration? = nil, tag: [UInt8] = []
    ) async throws(CacheError) {
        try await set(.ready(bytes), key, timeToLive, tag)
    }

    /// Stores bytes that are made when they are needed, on the cache's own thread (R10).
    ///
    /// - Parameters:
    ///   - key: What to store them under.
    ///   - timeToLive: How long they are fresh; nil for as long as the configuration says.
    ///   - tag: A few bytes of the caller's own, given back with the entry.
    ///   - bytes: Makes them; called once at most, not on the caller's thread. It must not wait for this cache. What it
    ///     throws is reported by ``flush()`` as ``CacheError/notEncodable(key:underlying:)``.
    public func set(
        forKey key: CacheKey, timeToLive: Duration? = nil, tag: [UInt8] = [],
        bytes: @escaping @Sendable () throws -> [UInt8]
    ) async throws(CacheError) {
        try await set(.lazy(LazyBytes(bytes)), key, timeToLive, tag)
    }

    private func set(_ body: Body, _ key: CacheKey, _ life: Duration?, _ tag: [UInt8]) async throws(CacheError) {
        let operation = try engine.put(body, in: format, timeToLive: life, tag: tag)
        await engine.enqueue(operation, forKey: entryKey(key))
    }

    /// Removes the entry of a key; harmless if there is none (R11).
    public func remove(_ key: CacheKey) async {
        await engine.enqueue(.remove, forKey: entryKey(key))
    }

    /// Removes the entries of some keys: what an audit has decided.
    public func remove(_ keys: [CacheKey]) async {
        for key in keys { await remove(key) }
    }

    /// Removes everything at once, whatever the size: the cache goes on in an empty directory while the old one is
    /// deleted behind it. Puts that are still queued are dropped, later ones are kept. If other formats have entries in
    /// the same engine, those of this one are removed from among them.
    public func removeAll() async throws(CacheError) {
        try await run { (blocking) throws(CacheError) in try blocking.removeAll() }
    }

    /// Lets an entry's time pass now. It stays readable to who asks for expired ones, and is among the first to be
    /// evicted.
    public func expire(_ key: CacheKey) async {
        await engine.enqueue(engine.expiring(), forKey: entryKey(key))
    }

    /// Gives the entry of a key a new lifetime, from now on; for a source that says it has not changed.
    public func renew(_ key: CacheKey, timeToLive: Duration?) async {
        await engine.enqueue(engine.renewing(timeToLive, in: format), forKey: entryKey(key))
    }

    /// Replaces the tag of an entry.
    public func setTag(_ tag: [UInt8], forKey key: CacheKey) async {
        await engine.enqueue(.patch(Patch(tag: tag)), forKey: entryKey(key))
    }

    /// Records a use of a key without reading it, as for one that was found in memory (R37). Costs no I/O now.
    public func touch(_ key: CacheKey) { engine.touch(entryKey(key)) }

    /// Returns when everything that was set, removed or expired before is written.
    ///
    /// - Throws: The first failure since the last flush: what was dropped and why.
    public func flush() async throws(CacheError) {
        try await run { (blocking) throws(CacheError) in try blocking.flush() }
    }

    // MARK: Limits and auditing

    /// The most bytes the entries may count.
    public var capacity: ByteCount { ByteCount(format.limit.load(ordering: .relaxed)) }

    /// Changes the capacity and evicts at once what is above it (R36).
    public func setCapacity(_ capacity: ByteCount) async throws(CacheError) {
        try await run { (blocking) throws(CacheError) in try blocking.setCapacity(capacity) }
    }

    /// What all entries count, exactly, after pending writes (R14).
    public var size: ByteCount {
        get async throws(CacheError) { try await run { (blocking) throws(CacheError) in try blocking.size } }
    }

    /// How many entries there are, expired ones included, after pending writes.
    public var count: Int {
        get async throws(CacheError) { try await run { (blocking) throws(CacheError) in try blocking.count } }
    }

    /// The size whenever it changes, beginning with what is known now: nil while the cache has not been opened (R58).
    /// Slow readers get the newest only.
    public var sizeUpdates: AsyncStream<ByteCount?> { engine.sizeUpdates(of: format) }

    /// A page of entries in an order of their own that stays the same, expired ones included; for audits (R51, R52).
    /// What is written meanwhile may or may not be seen; nothing else is left out or given twice.
    ///
    /// - Parameters:
    ///   - key: The last key of the page before; nil for the first page.
    ///   - limit: The most entries to give.
    public func entries(after key: CacheKey? = nil, limit: Int = 1000) async throws(CacheError) -> [EntryInfo] {
        try await run { (blocking) throws(CacheError) in try blocking.entries(after: key, limit: limit) }
    }

    /// Reads every entry and compares it with its checksum, and looks for files that belong to no entry.
    ///
    /// - Parameter removingDamage: Whether to remove what is damaged, and files that are not this cache's or have
    ///   belonged to no entry for an hour (R56).
    public func verify(removingDamage: Bool) async throws(CacheError) -> VerifyReport {
        try await run { (blocking) throws(CacheError) in try blocking.verify(removingDamage: removingDamage) }
    }

    /// What this object has done since it was made.
    public var statistics: Statistics {
        var statistics = format.counters.statistics
        statistics.recoveries = engine.counters.statistics.recoveries
        return statistics
    }

    /// Where the body of a key lies if it is larger than ``Configuration/inlineLimit``, whether or not it exists (R41).
    ///
    /// A body that is replaced stays there, whole, until the newer one is stored and takes its place in one step. After
    /// a crash between these two it may be the older one, until the entry is read or written.
    public func path(forKey key: CacheKey) -> String { engine.layout.path(of: entryKey(key).id) }
}
