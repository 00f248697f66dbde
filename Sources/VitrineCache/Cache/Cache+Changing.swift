import Logging
public import VitrineCore

extension Cache {
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
    ///   - levels: The levels to write.
    /// - Returns: The stored value.
    /// - Throws: ``CacheError/formatNotFound(_:)``, ``CacheError/transform(key:format:underlying:)``, or the error of
    ///   the disk. After an error of the disk, the value is in memory.
    @discardableResult
    public func set(
        _ value: Value, forKey key: CacheKey, format: FormatName = .original, timeToLive: Duration? = nil,
        levels: CacheLevels = .all
    ) async throws(CacheError) -> Value {
        let area = try area(format)
        let stored = try await applied(area, to: value, key, PrioritySource())
        try await put(stored, encoded(stored, area.format), key, in: area, timeToLive, levels)
        return stored
    }

    /// Stores the bytes of an original unchanged, and the decoded value in memory.
    ///
    /// - Returns: The decoded value.
    /// - Throws: ``CacheError/invalidData(key:underlying:)`` if the bytes cannot be decoded. Nothing changes then.
    @discardableResult
    public func set(
        bytes: [UInt8], forKey key: CacheKey, timeToLive: Duration? = nil, levels: CacheLevels = .all
    ) async throws(CacheError) -> Value {
        let format = original.format
        let value: Value
        do {
            value = try await configuration.executor.run { try format.value(of: bytes) }
        } catch {
            throw .invalidData(key: key, underlying: error)
        }
        try await put(value, .ready(bytes), key, in: original, timeToLive, levels)
        return value
    }

    private func put(
        _ value: Value, _ body: Body, _ key: CacheKey, in area: FormatArea<Value>, _ timeToLive: Duration?,
        _ levels: CacheLevels
    ) async throws(CacheError) {
        let levels = levels.intersection(configuration.levels)
        let slot = area.slot(key)
        let keep = keeping(value, slot, expires: expiry(timeToLive, in: area), in: area, levels)
        guard levels.contains(.writeDisk) else { return area.memory.finish(register.change(slot, keep)) }
        let operation: Operation
        do throws(CacheError) {
            operation = try area.disk.engine.put(
                body, in: area.disk.format,
                timeToLive: timeToLive ?? area.format.timeToLive ?? configuration.timeToLive, validator: [])
        } catch {
            area.memory.finish(register.change(slot, keep))
            throw error
        }
        await area.pendingWrites.send(operation, forKey: key) { send in
            guard let change = register.change(slot, { send() ? keep() : nil }) else { return false }
            area.memory.finish(change)
            return true
        }
    }

    /// Returns a closure that puts a value into memory, or removes the old value if memory must not be written. The
    /// closure runs no code of the user.
    func keeping(
        _ value: Value, _ slot: MemoryKey, expires: Duration?, in area: FormatArea<Value>, _ levels: CacheLevels
    ) -> @Sendable () -> MemoryChange<MemoryKey, Value> {
        guard levels.contains(.writeMemory) else {
            return {
                var change = MemoryChange<MemoryKey, Value>()
                if let value = area.memory.remove(slot) { change.removed.add(MemoryEntry(key: slot, value: value)) }
                return change
            }
        }
        let incoming = incoming(value, slot, expires: expires, in: area)
        return { area.memory.insert(incoming) }
    }

    /// Removes the entry of a key in a format from both levels. Unknown keys and formats are ignored. Entries of other
    /// formats stay.
    public func remove(_ key: CacheKey, format: FormatName = .original) async {
        guard let area = formats[format] else { return }
        await remove(key, in: area)
    }

    /// Removes a key's entries of all registered formats.
    public func removeAll(forKey key: CacheKey) async {
        for area in formats.all { await remove(key, in: area) }
    }

    func remove(_ key: CacheKey, in area: FormatArea<Value>) async {
        let slot = area.slot(key)
        await area.pendingWrites.send(.remove, forKey: key) { send in
            let (_, isSent) = register.change(slot) { (area.memory.remove(slot), send()) }
            return isSent
        }
    }

    /// Lets the time of a key's entry pass now: it counts as missing, but is there for
    /// ``CacheConfiguration/servesStale`` and for fetchers that revalidate.
    public func expire(_ key: CacheKey, format: FormatName = .original) async {
        guard let area = formats[format] else { return }
        let slot = area.slot(key)
        let expiring = area.disk.engine.expiring()
        await area.pendingWrites.send(expiring, forKey: key) { send in
            register.change(slot) {
                area.memory.expire(slot)
                return send()
            }
        }
    }

    /// Returns when all earlier changes are on disk.
    ///
    /// - Throws: The first error since the last flush.
    public func flush() async throws(CacheError) {
        reportMemoryHits()
        for area in formats.all { await area.pendingWrites.waitUntilIdle() }
        defer { publishMetrics() }
        try await onDisk { (disk) throws(CacheError) in try disk.flush() }
    }
}

extension Cache {
    /// Removes all entries, including those of formats that are not registered in this process. The cache can be used
    /// meanwhile. Loads that began earlier do not store their values.
    ///
    /// - Parameter levels: The levels to clear, by their write bits. `.memory` alone takes effect immediately.
    /// - Throws: The error of the disk. Memory is cleared in any case.
    public func removeAll(levels: CacheLevels = .all) async throws(CacheError) {
        if levels.contains(.writeMemory) { clearMemory() }
        guard levels.contains(.writeDisk) else { return }
        let areas = formats.all
        for area in areas {
            area.pendingWrites.drop()
            await area.pendingWrites.waitUntilIdle()
        }
        // Loads that run now do not store, neither those that read the disk before it is emptied.
        register.changeAll {}
        defer {
            _ = register.changeAll { levels.contains(.writeMemory) ? takeMemory(of: areas) : [] }
        }
        try await onDisk { (disk) throws(CacheError) in try disk.removeAll() }
    }

    /// Removes all entries of a format. An unknown format is ignored.
    public func removeAll(format: FormatName, levels: CacheLevels = .all) async throws(CacheError) {
        guard let area = formats[format] else { return }
        if levels.contains(.writeMemory) { _ = register.changeAll(format: area.id) { area.takeMemory() } }
        guard levels.contains(.writeDisk) else { return }
        try await clearDisk(area, clearsMemory: levels.contains(.writeMemory))
    }

    /// Removes all values from memory before the call returns. Entries on disk stay.
    public func clearMemory() {
        reportMemoryHits()
        let areas = formats.all
        _ = register.changeAll { takeMemory(of: areas) }
    }

    /// Empties the memory of formats, and returns its entries so that they are released outside all locks.
    private func takeMemory(of areas: [FormatArea<Value>]) -> [RemovedEntries<MemoryKey, Value>] {
        [sharedMemory.takeAll()] + areas.filter { !$0.sharesMemory }.map { $0.memory.takeAll() }
    }

    private func clearDisk(_ area: FormatArea<Value>, clearsMemory: Bool) async throws(CacheError) {
        area.pendingWrites.drop()
        await area.pendingWrites.waitUntilIdle()
        // Loads that run now do not store, neither those that read the disk before it is emptied.
        register.changeAll(format: area.id) {}
        defer {
            _ = register.changeAll(format: area.id) { clearsMemory ? area.takeMemory() : nil }
        }
        try await area.disk.removeAll()
    }

    /// Changes the capacity of all formats on disk together (``CacheConfiguration/totalDiskCapacity``), and evicts at
    /// once until the entries fit.
    ///
    /// - Throws: Why the disk could not be changed.
    public func setTotalDiskCapacity(_ capacity: ByteCount) async throws(CacheError) {
        try await onDisk { (disk) throws(CacheError) in try disk.setTotal(capacity) }
    }

    /// The most bytes that the entries of all formats may count on disk together.
    public var totalDiskCapacity: ByteCount { ByteCount(disk.totalLimit) }

    /// Uses the disk level on a thread that may block.
    func onDisk<Result: Sendable>(
        _ body: @escaping @Sendable (DiskEngine) throws(CacheError) -> Result
    ) async throws(CacheError) -> Result {
        let disk = disk
        return try await BlockingExecutor.shared.run { () throws(CacheError) in try body(disk) }
    }
}
