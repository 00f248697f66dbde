public import VitrineCore

extension ValueCache {
    /// Stores a value in a format, after applying the format's transform.
    ///
    /// Returns when the value is in memory and queued for the disk. The disk's writer encodes it. Suspends during the
    /// transform and while the queue of the disk is full.
    ///
    /// - Parameters:
    ///   - value: The original value.
    ///   - key: The key of the value.
    ///   - format: The format to store the value in. Entries of other formats stay unchanged.
    ///   - timeToLive: How long the value is fresh. Default nil: the time of the format or the cache.
    ///   - tags: Up to 16 tags for ``removeAll(tag:levels:)``, each of up to 256 UTF-8 bytes. They replace those of an
    ///     earlier entry. Entries of other formats that are made from the value have them as well.
    ///   - levels: The levels to write.
    /// - Returns: The stored value. It is removed again at once if one of its tags is removed during the call.
    /// - Throws: ``CacheError/formatNotFound(_:)``, ``CacheError/transform(key:format:underlying:)``,
    ///   ``CacheError/invalidTags(count:longest:)``, or the error of the disk. After an error of the disk, the value is
    ///   in memory.
    @discardableResult
    public func set(
        _ value: Value, forKey key: CacheKey, format: FormatName = .original, timeToLive: Duration? = nil,
        tags: [String] = [], levels: CacheLevels = .all
    ) async throws(CacheError) -> Value {
        let area = try storage.area(format)
        let state = try await storage.tagState(of: tags, levels: levels)
        let lookup = Lookup(key: key, area: area, levels: levels, priority: PrioritySource())
        let stored = try await loader.transformer.transform(value, for: lookup)
        try await storage.put(
            .init(value: stored, key: key, area: area, timeToLive: timeToLive, levels: levels),
            body: storage.encodedBody(of: stored, in: area.format), state: state)
        return stored
    }

    /// Stores an original whose bytes an encoder of its own makes; nil for that of the cache.
    package func set(
        _ value: Value, forKey key: CacheKey, timeToLive: Duration?, levels: CacheLevels,
        encoding: (@Sendable (Value) throws -> [UInt8])?
    ) async throws(CacheError) {
        let state = try await storage.tagState(of: [], levels: levels)
        try await storage.put(
            .init(value: value, key: key, area: original, timeToLive: timeToLive, levels: levels),
            body: storage.encodedBody(of: value, in: original.format, encoding: encoding), state: state)
    }

    /// Stores the bytes of an original unchanged, and the decoded value in memory.
    ///
    /// - Returns: The decoded value.
    /// - Throws: ``CacheError/invalidData(key:underlying:)`` if the bytes cannot be decoded, or
    ///   ``CacheError/invalidTags(count:longest:)``. Nothing changes then.
    @discardableResult
    public func set(
        bytes: [UInt8], forKey key: CacheKey, timeToLive: Duration? = nil, tags: [String] = [],
        levels: CacheLevels = .all
    ) async throws(CacheError) -> Value {
        let state = try await storage.tagState(of: tags, levels: levels)
        let value = try await storage.decodeOriginal(bytes, forKey: key)
        try await storage.put(
            .init(value: value, key: key, area: original, timeToLive: timeToLive, levels: levels),
            body: .ready(bytes), state: state)
        return value
    }

    /// Removes the entry of a key in a format from both levels. Unknown keys and formats are ignored. Entries of other
    /// formats stay.
    public func remove(_ key: CacheKey, format: FormatName = .original) async {
        if let area = formats[format] { await storage.removeEntry(key, in: area) }
    }

    /// Removes a key's entries of all registered formats.
    public func removeAll(forKey key: CacheKey) async {
        await storage.removeEntries(forKey: key)
    }

    /// Lets the time of a key's entry pass now: it counts as missing, but is there for
    /// ``CacheConfiguration/servesStale`` and for fetchers that revalidate.
    public func expire(_ key: CacheKey, format: FormatName = .original) async {
        if let area = formats[format] { await storage.expireEntry(key, in: area) }
    }

    /// Returns when all earlier changes are on disk.
    ///
    /// - Throws: The first error since the last flush.
    public func flush() async throws(CacheError) {
        storage.reportMemoryHits()
        await storage.waitUntilIdle()
        defer { publishMetrics() }
        try await storage.onDisk { (disk) throws(CacheError) in try disk.flush() }
    }
}

extension ValueCache {
    /// Removes all entries, including those of formats that are not registered in this process. The cache can be used
    /// meanwhile. Loads that began earlier do not store their values.
    ///
    /// Values do not come back by being alive elsewhere; see ``clearMemory()`` for giving up memory only.
    ///
    /// - Parameter levels: The levels to clear, by their write bits. `.memory` alone takes effect immediately.
    /// - Throws: The error of the disk. Memory is cleared in any case.
    public func removeAll(levels: CacheLevels = .all) async throws(CacheError) {
        let outcome = AsyncPromise<Result<Void, CacheError>>()
        storage.removeAllEntries(levels: levels) { outcome.fulfill($0) }
        try await outcome.value().get()
    }

    /// Removes all entries of a format. An unknown format is ignored.
    public func removeAll(format: FormatName, levels: CacheLevels = .all) async throws(CacheError) {
        if let area = formats[format] { try await storage.removeEntries(of: area, levels: levels) }
    }

    /// Removes all entries with a tag, in all formats, including those that are not registered in this process.
    ///
    /// ```swift
    /// try await cache.set("Lake Lucerne", forKey: key, tags: ["source:lake.jpg"])
    /// try await cache.removeAll(tag: "source:lake.jpg")
    /// ```
    ///
    /// Takes time in proportion to the number of removed entries. Nothing stored by work that began before appears
    /// afterwards: loads that run now, in this process or in others with the same directory, do not store values with
    /// the tag. On disk, all of the entries are gone or none, even if the process is killed. The memory levels of other
    /// processes keep theirs, as with ``remove(_:format:)``.
    ///
    /// - Parameters:
    ///   - tag: A tag of ``set(_:forKey:format:timeToLive:tags:levels:)`` or of a ``FetchResult``.
    ///   - levels: The levels to clear, by their write bits.
    /// - Returns: The number of entries removed from disk, or from memory if `levels` leaves out the disk.
    /// - Throws: ``CacheError/invalidTags(count:longest:)`` if no entry can have the tag, or the error of the disk.
    ///   Memory is cleared in any case.
    @discardableResult
    public func removeAll(tag: String, levels: CacheLevels = .all) async throws(CacheError) -> Int {
        try await storage.removeEntries(withTag: EntryTags.hash(of: tag), levels: levels)
    }

    /// Evicts all values from memory before the call returns. Entries on disk stay.
    ///
    /// As with any eviction, values that are alive elsewhere still count as memory hits
    /// (`CacheableValue.weakReference`). Use ``removeAll(levels:)`` with `.memory` to forget these, too.
    public func clearMemory() { storage.evictMemory() }

    /// Changes the capacity of all formats on disk together (``CacheConfiguration/totalDiskCapacity``), and evicts at
    /// once until the entries fit.
    ///
    /// - Throws: Why the disk could not be changed.
    public func setTotalDiskCapacity(_ capacity: ByteCount) async throws(CacheError) {
        try await storage.onDisk { (disk) throws(CacheError) in try disk.setTotal(capacity) }
    }

    /// The most bytes that the entries of all formats may count on disk together.
    public var totalDiskCapacity: ByteCount { ByteCount(storage.disk.formats.totalLimit) }
}
