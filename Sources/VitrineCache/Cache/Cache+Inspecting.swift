public import VitrineCore

extension Cache {
    /// Whether there is a value, without loading it and without counting as a use (R22).
    ///
    /// - Parameters:
    ///   - key: What it is stored under.
    ///   - format: The format to look in.
    ///   - depth: How far to look: `.memory` for memory alone, also what is alive elsewhere; `.disk` and `.source` for
    ///     either level.
    public func contains(_ key: CacheKey, format: FormatName = .original, at depth: CacheLevel = .disk) async -> Bool {
        let found = await self.depth(of: key, format: format)
        return found < .source && found <= depth
    }

    /// Whether there is a value in both levels (R48).
    public func containsInBoth(_ key: CacheKey, format: FormatName = .original) async -> Bool {
        guard let area = formats[format], area.memory.contains(area.slot(key)) else { return false }
        return await isOnDisk(key, in: area)
    }

    /// How far a lookup would have to go: `.source` if no level has the value (R22).
    public func depth(of key: CacheKey, format: FormatName = .original) async -> CacheLevel {
        guard let area = formats[format] else { return .source }
        if area.memory.contains(area.slot(key)) { return .memory }
        return await isOnDisk(key, in: area) ? .disk : .source
    }

    func isOnDisk(_ key: CacheKey, in area: FormatArea<Value>) async -> Bool {
        if area.excludes(key) { return false }
        await area.outbox.settle()
        return (try? await area.disk.contains(key)) ?? false
    }

    /// What is known about a key's entry on disk, expired or not; nil if there is none.
    public func info(
        forKey key: CacheKey, format: FormatName = .original
    ) async throws(CacheError) -> DiskCache.EntryInfo? {
        let area = try area(format)
        passOnMemoryHits()
        await area.outbox.settle()
        return try await area.disk.info(forKey: key)
    }

    /// The bytes of a key's entry on disk, as they were stored; nil if there is none or it has expired.
    public func bytes(forKey key: CacheKey, format: FormatName = .original) async throws(CacheError) -> [UInt8]? {
        let area = try area(format)
        return try await readBytes(key, in: area)?.bytes
    }

    /// What all formats count on disk, exactly, after pending writes (R14): also those not registered here.
    public var size: ByteCount {
        get async throws(CacheError) {
            for area in formats.all { await area.outbox.settle() }
            return ByteCount(try await onDisk { (disk) throws(CacheError) in try disk.totals(of: nil) }.bytes)
        }
    }

    /// What a format counts on disk, exactly, after pending writes (R14).
    ///
    /// - Throws: ``CacheError/formatNotFound(_:)``, or why the disk could not be read.
    public func size(of format: FormatName) async throws(CacheError) -> ByteCount {
        try await size(of: try area(format))
    }

    private func size(of area: FormatArea<Value>) async throws(CacheError) -> ByteCount {
        await area.outbox.settle()
        return try await area.disk.size
    }

    /// What all formats count on disk together whenever it changes, beginning with what is known now: nil until the
    /// cache has been opened (R58). Slow readers get the newest only.
    public var sizeUpdates: AsyncStream<ByteCount?> { disk.sizeUpdates(of: nil) }

    /// What the memory level holds, in bytes.
    public var memorySize: ByteCount {
        var total = ByteCount(sharedMemory.totalCost)
        for area in formats.all where !area.sharesMemory { total += ByteCount(area.memory.totalCost) }
        return total
    }

    /// The names of all formats that have entries on disk or are registered, the registered ones first. Those of a disk
    /// that cannot be read are left out.
    public var storedFormats: [FormatName] {
        get async {
            let names = formatNames, known = Set(names)
            let stored = (try? await onDisk { (disk) throws(CacheError) in try disk.storedFormats() }) ?? []
            return names + stored.map { FormatName($0.name) }.filter { !known.contains($0) }
                .sorted { $0.rawValue < $1.rawValue }
        }
    }

    // MARK: For tests

    /// How many wait for a load of a key.
    ///
    /// - Parameter levels: That they asked for; nil for the cache's own.
    package func waiters(
        for key: CacheKey, format: FormatName = .original, levels: CacheLevels? = nil, isRefresh: Bool = false
    ) -> Int {
        guard let slot = formats[format]?.slot(key) else { return 0 }
        return loads.subscriberCount(for: flightKey(slot, levels ?? configuration.levels, isRefresh: isRefresh))
    }

    /// The priority of a key's load; nil when there is none.
    package func loadPriority(of key: CacheKey, format: FormatName = .original) -> Priority? {
        formats[format].flatMap { loads.priority(for: flightKey($0.slot(key), configuration.levels)) }
    }

    /// How many formats and prefetches wait for a fetch of a key.
    package func sourceWaiters(for key: CacheKey, isRefresh: Bool = false) -> Int {
        originals.subscriberCount(for: sourceFlightKey(key, isRefresh: isRefresh))
    }

    /// How urgent the fetch of a key is; nil when there is none.
    package func sourcePriority(of key: CacheKey) -> Priority? { originals.priority(for: sourceFlightKey(key)) }

    /// How many keys are asked for again behind a value that was given.
    package var runningRefreshes: Int { refreshes.withLock { $0.count } }

    /// How many audits wait for those before them.
    package var waitingAudits: Int { audits.counts.queued }

    /// How many loads and lookups run.
    package var runningLoads: Int { register.count }

    // MARK: Uses and counts

    /// Tells the disk levels what memory was used for (R37).
    func passOnMemoryHits() {
        if let hits { passOn(hits.take()) }
    }

    func passOn(_ slots: [MemoryKey]) {
        guard !slots.isEmpty else { return }
        let restores = configuration.memoryHits == .restoreMissing
        let areas = Dictionary(formats.all.map { ($0.id, $0) }) { first, _ in first }
        for slot in Set(slots) {
            guard let area = areas[slot.format] else { continue }
            area.disk.touch(slot.key)
            if restores { restore(slot, in: area) }
        }
        publishMetrics()
    }

    /// Writes an entry that memory has and the disk has not.
    private func restore(_ slot: MemoryKey, in area: FormatArea<Value>) {
        guard configuration.levels.contains(.writeDisk) else { return }
        configuration.executor.submit { [weak self] in
            guard let self, (try? area.disk.blocking.contains(slot.key)) == false else { return }
            let ticket = register.begin(slot)
            guard let value = area.memory.peek(slot) else { return }
            let life = area.format.timeToLive ?? configuration.timeToLive
            let put = try? area.disk.engine.put(
                encoded(value, area.format), in: area.disk.format, timeToLive: life, tag: [])
            if let put { _ = ticket.ifValid { area.outbox.send(put, forKey: slot.key) } }
        }
    }

    /// Brings the counters in swift-metrics up to date. See the article on metrics for their labels.
    public func publishMetrics() { metrics.publish(metricsSnapshot) }

    /// What the metrics are taken from.
    package var metricsSnapshot: CacheMetrics.Snapshot {
        var snapshot = CacheMetrics.Snapshot()
        snapshot.memory = sharedMemory.statistics
        for area in formats.all {
            if !area.sharesMemory { snapshot.memory.add(area.memory.statistics) }
            snapshot.disk.add(area.disk.format.counters.statistics)
        }
        // What was evicted of formats that are not registered here, and databases replaced.
        snapshot.disk.add(disk.counters.statistics)
        snapshot.memoryBytes = memorySize.bytes
        return snapshot
    }
}
