public import VitrineCore

extension Cache {
    /// The value of a key: from memory, from disk, or else loaded, transformed, stored and then given as stored (R7).
    ///
    /// Who asks for the same key and format meanwhile waits for the same load; the closure of the first counts. It runs
    /// in a task of its own, which is cancelled when the last of them is.
    ///
    /// ```swift
    /// let report = try await cache.value(forKey: "bremen", timeToLive: .seconds(600)) {
    ///     try await weather.report("Bremen")
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - key: What is wanted.
    ///   - format: In which form.
    ///   - levels: Which levels to use (R21).
    ///   - priority: How urgent it is.
    ///   - timeToLive: How long a loaded value is fresh; nil for the format's or cache's default.
    ///   - load: Makes the original value. Must not block: blocking work goes to `BlockingExecutor`.
    /// - Throws: ``CacheError/source(key:underlying:)`` with what `load` throws,
    ///   ``CacheError/transform(key:format:underlying:)``, ``CacheError/formatNotFound(_:)`` at once,
    ///   ``CacheError/cancelled(key:)``. A failure of the disk only costs the stored value and is logged.
    public func value(
        forKey key: CacheKey, format: FormatName = .original, levels: CacheLevels = .all, priority: Priority = .normal,
        timeToLive: Duration? = nil, orLoad load: @escaping @Sendable () async throws -> Value
    ) async throws(CacheError) -> Value {
        let area = try area(format)
        if let value = memoryValue(area, key, levels: levels) { return value }
        let source = AnySource(timeToLive: timeToLive, load)
        return try await self.load(key, in: area, source, levels: levels, following: PrioritySource(priority)).value
    }

    /// The value of a fetcher's key: from memory, from disk, or else fetched (R7).
    ///
    /// Parameters and errors are those of ``value(forKey:format:levels:priority:timeToLive:orLoad:)``. Original bytes
    /// that the fetcher gives are stored as they came (R77). In a format other than the original they are stored as
    /// well, if ``CacheConfiguration/storesOriginals`` and ``Fetcher/storesOriginal`` say so, and further formats
    /// are then made from them without asking the fetcher again.
    public func value(
        from fetcher: some Fetcher<Value>, format: FormatName = .original, levels: CacheLevels = .all,
        priority: Priority = .normal
    ) async throws(CacheError) -> Value {
        let area = try area(format)
        let key = fetcher.key
        if let value = memoryValue(area, key, levels: levels) { return value }
        return try await load(
            key, in: area, AnySource(fetcher), levels: levels, following: PrioritySource(priority)
        ).value
    }

    /// The value of a file (R8), whose path is the key. See ``FileFetcher``.
    public func value(
        fromFile path: String, format: FormatName = .original, levels: CacheLevels = .all,
        priority: Priority = .normal
    ) async throws(CacheError) -> Value {
        try await value(from: FileFetcher(path: path), format: format, levels: levels, priority: priority)
    }

    // MARK: The way of a load

    /// Loads, shared with all who want the same. Memory was asked before.
    func load(
        _ key: CacheKey, in area: FormatArea<Value>, _ source: AnySource<Value>, levels: CacheLevels,
        reason: LoadReason = .missing, following priority: PrioritySource
    ) async throws(CacheError) -> Loaded<Value> {
        let levels = levels.intersection(configuration.levels).intersection(source.levels)
        let slot = area.slot(key)
        let shared = flightKey(slot, levels, isRefresh: reason.isRefresh)
        do {
            return try await loads.value(for: shared, following: priority) { flight in
                let ticket = self.register.begin(slot)
                if !reason.isRefresh,
                    let stored = try await self.stored(key, in: area, levels, ticket, flight.priority)
                {
                    return Loaded(value: stored, origin: .stored)
                }
                return try await self.produce(key, in: area, source, levels, reason, ticket, flight.priority)
            }
        } catch {
            let error = CacheError(error, key: key)
            if configuration.servesStale, !reason.isRefresh, !error.isCancellation,
                let stale = await staleValue(key, in: area, levels)
            {
                metrics.count(.stale)
                log.notice("Gave an expired value: \(error)", metadata: ["cache": "\(name)", "key": "\(key)"])
                return Loaded(value: stale, origin: .stale)
            }
            throw error
        }
    }

    /// What the levels have, as it is or in a form from which it can be made.
    func stored(
        _ key: CacheKey, in area: FormatArea<Value>, _ levels: CacheLevels, _ ticket: InvalidationRegister.Ticket,
        _ priority: PrioritySource
    ) async throws(CacheError) -> Value? {
        // It may have come since the caller looked, from a load that has just ended.
        if levels.contains(.readMemory), let value = area.memory.peek(ticket.slot) { return value }
        do throws(CacheError) {
            if let value = try await lookUp(key, in: area, levels: levels, following: priority) { return value }
        } catch {
            if error.isCancellation { throw error }
            log.warning("The disk could not be read: \(error)", metadata: ["cache": "\(name)"])
        }
        return try await derive(key, in: area, levels, ticket, priority)
    }

    /// Asks the source, and stores and gives what it says, transformed.
    private func produce(
        _ key: CacheKey, in area: FormatArea<Value>, _ source: AnySource<Value>, _ levels: CacheLevels,
        _ reason: LoadReason, _ ticket: InvalidationRegister.Ticket, _ priority: PrioritySource
    ) async throws -> Loaded<Value> {
        var result = try await askOnce(source, key, reason, levels, priority)
        let value: Value
        do throws(CacheError) {
            value = try await make(key, in: area, from: result, priority)
        } catch {
            // The stored original is no value: the source is asked for all of it (R50).
            guard case .invalidData(_, let underlying) = error, !result.isNew else { throw error }
            await discard(key, in: original, result.ticket, because: underlying)
            result = try await askOnce(source, key, .refresh, levels, priority)
            value = try await make(key, in: area, from: result, priority)
        }
        if case .stale(let refreshing) = result.origin {
            metrics.count(.stale)
            if refreshing { refreshBehind(key, in: area, source, levels) }
            return Loaded(value: value, origin: .stale)
        }
        await store(value, key, in: area, from: result, levels, ticket)
        return Loaded(value: value, origin: result.isNew ? .source : .stored)
    }

    /// The expired value of a key, if it is still there.
    func staleValue(_ key: CacheKey, in area: FormatArea<Value>, _ levels: CacheLevels) async -> Value? {
        if levels.contains(.readMemory), let stale = area.memory.staleValue(forKey: area.slot(key)) {
            return stale.value
        }
        guard levels.contains(.readDisk) else { return nil }
        let ticket = register.begin(area.slot(key))
        return try? await readDisk(key, in: area, includingExpired: true, ticket)?.value
    }
}
