import Logging
public import VitrineCore

extension Cache {
    /// The value of a key in memory or on disk (R6).
    ///
    /// - Parameters:
    ///   - key: What is wanted.
    ///   - format: In which form.
    ///   - depth: How far to go; with `.memory` this returns without suspending. There is no source here, so
    ///     `.source` is the same as `.disk`.
    ///   - levels: Which levels to use (R21). Without `.writeMemory` a value from disk does not enter memory.
    ///   - priority: How urgent it is.
    /// - Returns: nil if there is none, it has expired, or it was damaged.
    /// - Throws: ``CacheError/formatNotFound(_:)``; why the disk could not be read.
    public func value(
        forKey key: CacheKey, format: FormatName = .original, depth: CacheLevel = .disk, levels: CacheLevels = .all,
        priority: Priority = .normal
    ) async throws(CacheError) -> Value? {
        let area = try area(format)
        if let value = memoryValue(area, key, levels: levels) { return value }
        guard depth > .memory else { return nil }
        return try await lookUp(key, in: area, levels: levels, following: PrioritySource(priority))
    }

    /// The value on disk, shared with all who ask for it now.
    func lookUp(
        _ key: CacheKey, in area: FormatArea<Value>, levels: CacheLevels, following priority: PrioritySource
    ) async throws(CacheError) -> Value? {
        let levels = levels.intersection(configuration.levels)
        guard levels.contains(.readDisk) else { return nil }
        if area.excludes(key) {
            area.disk.format.counters.miss()
            return nil
        }
        let slot = area.slot(key)
        let shared = flightKey(slot, levels)
        do {
            return try await lookups.value(for: shared, following: priority) { _ in
                let ticket = self.register.begin(slot)
                guard let found = try await self.readDisk(key, in: area, ticket) else { return nil }
                if levels.contains(.writeMemory) {
                    self.keepInMemory(found.value, expires: found.expires, in: area, ticket)
                }
                return found.value
            }
        } catch {
            throw CacheError(error, key: key)
        }
    }

    /// What an entry on disk holds.
    struct Found: Sendable {
        let value: Value
        let expires: Duration?
    }

    /// Reads and decodes an entry. One that is no value is removed and logged, and counts as missing (R50).
    func readDisk(
        _ key: CacheKey, in area: FormatArea<Value>, includingExpired: Bool = false, _ ticket: InvalidationRegister.Ticket
    ) async throws(CacheError) -> Found? {
        await area.outbox.settle()
        let result = try await metrics.measure(.disk) { () throws(CacheError) in
            try await configuration.executor.run { () throws(CacheError) -> Result<Found, any Error>? in
                let entry = try area.disk.blocking.entry(forKey: key, includingExpired: includingExpired)
                guard let entry else { return nil }
                return Result { Found(value: try area.format.value(of: entry.bytes), expires: entry.expires) }
            }
        }
        if metrics.isDue { publishMetrics() }
        switch result {
        case nil: return nil
        case .success(let found): return found
        case .failure(let error):
            await discard(key, in: area, ticket, because: error)
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
        await area.outbox.settle()
        return try await metrics.measure(.disk) { () throws(CacheError) in
            try await configuration.executor.run { () throws(CacheError) in
                try area.disk.blocking.entry(forKey: key, includingExpired: includingExpired)
            }
        }
    }

    /// Removes an entry whose bytes are no value, unless it was replaced meanwhile.
    func discard(
        _ key: CacheKey, in area: FormatArea<Value>, _ ticket: InvalidationRegister.Ticket, because error: any Error
    ) async {
        log.warning(
            "Removed an entry that is no value of its type",
            metadata: [
                "cache": "\(name)", "format": "\(area.format.name)", "key": "\(key)", "error": "\(error)",
            ])
        await area.outbox.send(.remove, forKey: key) { send in ticket.ifValid(send) ?? true }
    }

    /// Puts a loaded value into memory, unless its key was changed meanwhile.
    func keepInMemory(
        _ value: Value, expires: Duration?, in area: FormatArea<Value>, _ ticket: InvalidationRegister.Ticket
    ) {
        let incoming = incoming(value, ticket.slot, expires: expires, in: area)
        if let change = ticket.ifValid({ area.memory.insert(incoming) }) { area.memory.finish(change) }
    }
}
