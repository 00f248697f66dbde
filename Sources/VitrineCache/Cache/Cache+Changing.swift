import Logging
public import VitrineCore

extension Cache {
    /// Stores a value in a format, transformed by it, in place of what was there (R5).
    ///
    /// Returns when the value is in memory and queued for the disk, where it is encoded (R10); suspends for the
    /// transform, and while the disk's queue is full.
    ///
    /// - Parameters:
    ///   - value: The original value.
    ///   - key: What to find it by.
    ///   - format: Which form to keep. The other formats' entries stay as they are.
    ///   - timeToLive: How long it is fresh; nil for the format's or cache's default.
    ///   - levels: Where to keep it.
    /// - Returns: The value as stored.
    /// - Throws: ``CacheError/formatNotFound(_:)``, ``CacheError/transform(key:format:underlying:)``; why nothing can
    ///   be written to the disk, in which case the value is in memory all the same.
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

    /// Stores an original's bytes as they are (R77), and the value they stand for in memory.
    ///
    /// - Returns: The value.
    /// - Throws: ``CacheError/invalidData(key:underlying:)`` if they are none; nothing changes then.
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
                timeToLive: timeToLive ?? area.format.timeToLive ?? configuration.timeToLive, tag: [])
        } catch {
            area.memory.finish(register.change(slot, keep))
            throw error
        }
        await area.outbox.send(operation, forKey: key) { send in
            guard let change = register.change(slot, { send() ? keep() : nil }) else { return false }
            area.memory.finish(change)
            return true
        }
    }

    /// What puts a value into memory, or removes it where it may not be written: it is not left as it was. Runs
    /// nothing of the user's.
    func keeping(
        _ value: Value, _ slot: MemoryKey, expires: Duration?, in area: FormatArea<Value>, _ levels: CacheLevels
    ) -> @Sendable () -> MemoryChange<MemoryKey, Value> {
        guard levels.contains(.writeMemory) else {
            return {
                var change = MemoryChange<MemoryKey, Value>()
                if let value = area.memory.remove(slot) { change.departed.add(MemoryEntry(key: slot, value: value)) }
                return change
            }
        }
        let incoming = incoming(value, slot, expires: expires, in: area)
        return { area.memory.insert(incoming) }
    }

    /// Removes a key's entry of a format from both levels (R11). Unknown keys and formats are harmless; the other
    /// formats' entries stay (R34).
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
        await area.outbox.send(.remove, forKey: key) { send in
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
        await area.outbox.send(expiring, forKey: key) { send in
            register.change(slot) {
                area.memory.expire(slot)
                return send()
            }
        }
    }

    /// Returns when everything that was changed before is on disk.
    ///
    /// - Throws: The first failure since the last flush: what was dropped and why.
    public func flush() async throws(CacheError) {
        passOnMemoryHits()
        for area in formats.all { await area.outbox.settle() }
        defer { publishMetrics() }
        try await onDisk { (disk) throws(CacheError) in try disk.flush() }
    }
}
