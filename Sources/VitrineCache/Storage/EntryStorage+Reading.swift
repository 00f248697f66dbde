import VitrineCore

/// Reads of the disk level, and the memory level after them.
extension EntryStorage {
    /// A decoded entry on disk.
    struct DecodedEntry: Sendable {
        let value: Value
        let expires: Duration?
        let tags: EntryTags
    }

    /// Reads and decodes an entry. An entry that cannot be decoded is removed and logged, and counts as a miss.
    ///
    /// - Parameter ticket: The right to remove the entry.
    func readEntry(
        _ key: CacheKey, in area: FormatArea<Value>, includingExpired: Bool = false,
        ticket: InvalidationRegister.Ticket
    ) async throws(CacheError) -> DecodedEntry? {
        await area.pendingWrites.waitUntilIdle()
        let result = try await metrics.measure(.disk) { () throws(CacheError) in
            try await configuration.executor.run { () throws(CacheError) -> Result<DecodedEntry, any Error>? in
                let entry = try area.disk.blocking.entry(forKey: key, includingExpired: includingExpired)
                guard let entry else { return nil }
                return Result {
                    DecodedEntry(
                        value: try area.format.value(of: entry.bytes), expires: entry.expires, tags: entry.tags)
                }
            }
        }
        if metrics.isDue { publishMetrics() }
        switch result {
        case nil: return nil
        case .success(let found): return found
        case .failure(let error):
            await discardEntry(key, in: area, ticket: ticket, because: error)
            return nil
        }
    }

    /// Reads an entry's bytes.
    func readBytes(
        _ key: CacheKey, in area: FormatArea<Value>, includingExpired: Bool = false
    ) async throws(CacheError) -> DiskCache.Entry? {
        if area.excludes(key) {
            area.disk.format.counters.miss()
            return nil
        }
        await area.pendingWrites.waitUntilIdle()
        return try await metrics.measure(.disk) { () throws(CacheError) in
            try await configuration.executor.run { () throws(CacheError) in
                try area.disk.blocking.entry(forKey: key, includingExpired: includingExpired)
            }
        }
    }

    /// Decodes the bytes of an original.
    func decodeOriginal(_ bytes: [UInt8], forKey key: CacheKey) async throws(CacheError) -> Value {
        let format = original.format
        do {
            return try await configuration.executor.run { try format.value(of: bytes) }
        } catch {
            throw .invalidData(key: key, underlying: error)
        }
    }

    /// Returns an original on disk for a thread that may block: ``ValueCache/valueOnDiskBlocking(forKey:levels:)``.
    func originalOnDisk(forKey key: CacheKey, levels: CacheLevels) -> Value? {
        let area = original, levels = levels.intersection(configuration.levels)
        guard levels.contains(.readDisk) else { return nil }
        area.pendingWrites.waitUntilIdleBlocking()
        let ticket = register.begin(area.slot(key)), start = ContinuousClock.now
        guard let entry = (try? area.disk.blocking.entry(forKey: key)) ?? nil,
            let value = try? area.format.value(of: entry.bytes)
        else { return nil }
        metrics.record(.disk, since: start)
        if metrics.isDue { publishMetrics() }
        if levels.contains(.writeMemory) {
            keepInMemory(value, expires: entry.expires, tags: entry.tags, in: area, ticket: ticket)
        }
        return value
    }

    /// Returns the result of a body for the bytes of an original on disk, if the system has all of them in memory:
    /// ``ValueCache/withResidentBytes(forKey:_:)``.
    func withResidentBytes<Result>(
        forKey key: CacheKey, _ body: (_ bytes: [UInt8]) -> (result: Result, value: Value?)?
    ) -> Result? {
        let area = original
        guard configuration.levels.contains(.readDisk), area.pendingWrites.isEmpty else { return nil }
        let keeps = configuration.levels.contains(.writeMemory) && area.memory.capacity > .zero
        let ticket = keeps ? register.begin(area.slot(key)) : nil
        let start = ContinuousClock.now
        let entry = area.disk.engine.residentEntry(forKey: area.disk.entryKey(key))
        guard let entry, let made = body(entry.bytes) else { return nil }
        metrics.record(.disk, since: start)
        if metrics.isDue { publishMetrics() }
        if let ticket, let value = made.value {
            keepInMemory(value, expires: entry.expires, tags: entry.tags, in: area, ticket: ticket)
        }
        return made.result
    }

    /// Returns whether a key has an entry on disk.
    func isOnDisk(_ key: CacheKey, in area: FormatArea<Value>) async -> Bool {
        if area.excludes(key) { return false }
        await area.pendingWrites.waitUntilIdle()
        return (try? await area.disk.contains(key)) ?? false
    }

    /// Returns a page of a format's entries as audits see them.
    func page(
        of area: FormatArea<Value>, after key: CacheKey?, limit: Int
    ) async throws(CacheError) -> [AuditEntry] {
        try await area.disk.entries(after: key, limit: limit).map { info in
            AuditEntry(info, format: area.format.name, isInMemory: area.memory.contains(area.slot(info.key)))
        }
    }

    /// Removes an entry whose bytes are no value, unless it was replaced meanwhile.
    func discardEntry(
        _ key: CacheKey, in area: FormatArea<Value>, ticket: InvalidationRegister.Ticket, because error: any Error
    ) async {
        log.warning(
            "Removed an entry that cannot be decoded",
            metadata: [
                "cache": "\(name)", "format": "\(area.format.name)", "key": "\(key)", "error": "\(error)",
            ])
        await area.pendingWrites.send(.remove, forKey: key) { send in ticket.ifValid(.none, send) ?? true }
    }

    /// Puts a loaded value into memory, unless its key was changed meanwhile.
    func keepInMemory(
        _ value: Value, expires: Duration?, tags: EntryTags, in area: FormatArea<Value>,
        ticket: InvalidationRegister.Ticket
    ) {
        let incoming = incomingEntry(value, ticket.slot, expires: expires, tags: tags, in: area)
        if let change = ticket.ifValid(tags, { area.memory.insert(incoming) }) { area.memory.finish(change) }
    }

    /// Returns a value ready to be put into a format's memory level.
    func incomingEntry(
        _ value: Value, _ slot: MemoryKey, expires: Duration?, tags: EntryTags = .none, in area: FormatArea<Value>
    ) -> IncomingEntry<MemoryKey, Value> {
        area.memory.incoming(value, forKey: slot, cost: value.cacheCost, expires: expires, tags: tags)
    }

    /// Returns a body that the disk's writer encodes, by the format's encoder or by one of its own.
    func encodedBody(
        of value: Value, in format: CacheFormat<Value>, encoding: (@Sendable (Value) throws -> [UInt8])? = nil
    ) -> Body {
        .lazy(LazyBytes { try encoding?(value) ?? format.bytes(of: value) })
    }

    // MARK: Purges

    /// The last purge in the directory, for work that begins now; nil if nothing is written to the disk, or nothing is
    /// there yet.
    func lastPurge() async throws(CacheError) -> PurgeMark? {
        guard configuration.levels.contains(.writeDisk) else { return nil }
        if let known = disk.promptPurgeMark() { return known }
        return try await configuration.executor.run { [disk] () throws(CacheError) in try disk.purgeMark() }
    }

    /// Whether another process has purged one of the tags since the work on an entry began.
    func isPurgedElsewhere(_ tags: EntryTags) async -> Bool {
        guard let began = tags.began, disk.promptPurgeMark() != began else { return false }
        return await configuration.executor.run { [disk] in (try? disk.isPurged(tags)) ?? false }
    }

    // MARK: The whole disk

    /// Returns when the writes of all formats are in the queue of the disk.
    func waitUntilIdle() async {
        for area in formats.all { await area.pendingWrites.waitUntilIdle() }
    }

    /// The names of all formats that have entries on disk or are registered, the registered ones first.
    var storedFormats: [FormatName] {
        get async {
            let names = formats.all.map(\.format.name), known = Set(names)
            let stored = (try? await onDisk { (disk) throws(CacheError) in try disk.storedFormats() }) ?? []
            return names + stored.map { FormatName($0.name) }.filter { !known.contains($0) }
                .sorted { $0.description < $1.description }
        }
    }

    /// Uses the disk level on a thread that may block.
    func onDisk<Result: Sendable>(
        _ body: @escaping @Sendable (DiskEngine) throws(CacheError) -> Result
    ) async throws(CacheError) -> Result {
        let disk = disk
        return try await BlockingExecutor.shared.run { () throws(CacheError) in try body(disk) }
    }
}
