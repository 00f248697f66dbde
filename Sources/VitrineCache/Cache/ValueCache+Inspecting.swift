public import VitrineCore

extension ValueCache {
    /// Returns whether there is a value, without loading it. This does not count as an access.
    ///
    /// - Parameters:
    ///   - key: The key of the value.
    ///   - format: The format to look in.
    ///   - depth: How far to look. `.memory` includes values that are still alive elsewhere. `.disk` and `.source` look
    ///     in both levels.
    public func contains(_ key: CacheKey, format: FormatName = .original, at depth: CacheLevel = .disk) async -> Bool {
        let found = await self.depth(of: key, format: format)
        return found < .source && found <= depth
    }

    /// Returns whether both levels have the value.
    public func containsInBoth(_ key: CacheKey, format: FormatName = .original) async -> Bool {
        guard let area = formats[format], area.memory.contains(area.slot(key)) else { return false }
        return await storage.isOnDisk(key, in: area)
    }

    /// Returns the level at which a lookup would find the value; `.source` if neither level has it.
    public func depth(of key: CacheKey, format: FormatName = .original) async -> CacheLevel {
        guard let area = formats[format] else { return .source }
        if area.memory.contains(area.slot(key)) { return .memory }
        return await storage.isOnDisk(key, in: area) ? .disk : .source
    }

    /// Returns whether there is a value on disk, for a thread that may block.
    package func isOnDiskBlocking(_ key: CacheKey) -> Bool {
        if original.excludes(key) { return false }
        original.pendingWrites.waitUntilIdleBlocking()
        return (try? original.disk.blocking.contains(key)) ?? false
    }

    /// Returns the properties of an entry on disk, expired or not; nil if there is none.
    package func info(
        forKey key: CacheKey, format: FormatName = .original
    ) async throws(CacheError) -> DiskCache.EntryInfo? {
        let area = try storage.area(format)
        storage.reportMemoryHits()
        await area.pendingWrites.waitUntilIdle()
        return try await area.disk.info(forKey: key)
    }

    /// The bytes of a key's entry on disk, as they were stored; nil if there is none or it has expired.
    public func bytes(forKey key: CacheKey, format: FormatName = .original) async throws(CacheError) -> [UInt8]? {
        let area = try storage.area(format)
        return try await storage.readBytes(key, in: area)?.bytes
    }

    /// The size of all formats on disk after pending writes, including formats that are not registered here.
    public var size: ByteCount {
        get async throws(CacheError) {
            await storage.waitUntilIdle()
            return ByteCount(try await storage.onDisk { (disk) throws(CacheError) in try disk.totals(of: nil) }.bytes)
        }
    }

    /// Returns the size of a format on disk after pending writes.
    ///
    /// - Throws: ``CacheError/formatNotFound(_:)``, or the error of the disk.
    public func size(of format: FormatName) async throws(CacheError) -> ByteCount {
        let area = try storage.area(format)
        await area.pendingWrites.waitUntilIdle()
        return try await area.disk.size
    }

    /// The size of all formats on disk now and after each change. It is nil until the cache is open. Slow readers
    /// receive only the latest size.
    public var sizeUpdates: AsyncStream<ByteCount?> { storage.disk.sizeUpdates(of: nil) }

    /// The size of the values in memory.
    public var memorySize: ByteCount { storage.memorySize }

    /// The names of all formats that have entries on disk or are registered, the registered ones first. Those of a disk
    /// that cannot be read are left out.
    package var storedFormats: [FormatName] { get async { await storage.storedFormats } }

    // MARK: For tests

    /// How many wait for a load of a key.
    ///
    /// - Parameter levels: That they asked for; nil for the cache's own.
    package func waiters(
        for key: CacheKey, format: FormatName = .original, levels: CacheLevels? = nil, isRefresh: Bool = false
    ) -> Int {
        guard let slot = formats[format]?.slot(key) else { return 0 }
        return loader.subscriberCount(of: slot, levels: levels ?? configuration.levels, isRefresh: isRefresh)
    }

    /// The priority of a key's load; nil when there is none.
    package func loadPriority(of key: CacheKey, format: FormatName = .original) -> RequestPriority? {
        formats[format].flatMap { loader.priority(of: $0.slot(key), levels: configuration.levels) }
    }

    /// How many formats and prefetches wait for a fetch of a key.
    package func sourceWaiters(for key: CacheKey, isRefresh: Bool = false) -> Int {
        loader.originals.subscriberCount(of: key, isRefresh: isRefresh)
    }

    /// How many keys are asked for again behind a value that was given.
    package var runningRefreshes: Int { loader.originals.refreshCount }

    /// How many audits wait for those before them.
    package var waitingAudits: Int { audits.counts.queued }

    /// How many loads and lookups run.
    package var runningLoads: Int { storage.register.count }

    // MARK: Metrics

    /// Brings the counters in swift-metrics up to date. See the article on metrics for their labels.
    public func publishMetrics() { storage.publishMetrics() }

    /// The counters behind the metrics.
    package var metricsSnapshot: CacheMetrics.Snapshot { storage.metricsSnapshot }

    /// Reads and checks every entry of a format on disk.
    ///
    /// - Parameters:
    ///   - format: The format to verify.
    ///   - removingDamage: Whether to remove damaged entries, and body files without an entry.
    /// - Returns: The damage that was found.
    /// - Throws: ``CacheError/formatNotFound(_:)``, or the error of the disk.
    @discardableResult
    package func verify(
        _ format: FormatName = .original, removingDamage: Bool
    ) async throws(CacheError) -> DiskCache.VerifyReport {
        let area = try storage.area(format)
        await area.pendingWrites.waitUntilIdle()
        return try await area.disk.verify(removingDamage: removingDamage)
    }

    /// How many entries a format has on disk, after pending writes.
    ///
    /// - Throws: ``CacheError/formatNotFound(_:)``, or why the disk could not be read.
    public func count(of format: FormatName = .original) async throws(CacheError) -> Int {
        let area = try storage.area(format)
        await area.pendingWrites.waitUntilIdle()
        return try await area.disk.count
    }
}
