import VitrineCore

extension Cache {
    /// What the source says, asked once for all who want to know it now (R80).
    func askOnce(
        _ source: AnySource<Value>, _ key: CacheKey, _ reason: LoadReason, _ levels: CacheLevels,
        _ priority: PrioritySource
    ) async throws -> SourceResult<Value> {
        let readsStored = levels.contains(.readDisk)
        var result = try await flight(source, key, joined(key, reason), readsStored: readsStored, priority)
        if result.isStale, !readsStored {
            // Another's request was answered from the disk, which this one does not want.
            result = try await flight(source, key, .refresh, readsStored: false, priority)
        }
        return result
    }

    private func flight(
        _ source: AnySource<Value>, _ key: CacheKey, _ reason: LoadReason, readsStored: Bool,
        _ priority: PrioritySource
    ) async throws -> SourceResult<Value> {
        try await originals.value(for: sourceFlightKey(key, isRefresh: reason.isRefresh), following: priority) { flight in
            try await self.ask(source, key, reason, readsStored: readsStored, flight.priority)
        }
    }

    /// Who only misses something waits for a refresh that is demanded and under way. Behind one that nobody waits for,
    /// the source says itself what may be given meanwhile.
    private func joined(_ key: CacheKey, _ reason: LoadReason) -> LoadReason {
        guard reason == .missing, originals.subscriberCount(for: sourceFlightKey(key, isRefresh: true)) > 0,
            !refreshes.withLock({ $0.contains(key) })
        else { return reason }
        return .refresh
    }

    /// Asks the source for the original.
    private func ask(
        _ source: AnySource<Value>, _ key: CacheKey, _ reason: LoadReason, readsStored: Bool,
        _ priority: PrioritySource
    ) async throws -> SourceResult<Value> {
        let ticket = register.begin(original.slot(key))
        let reads = source.revalidates && (readsStored || reason.isRefresh)
        let stored = reads ? await storedOriginal(key) : nil
        var fetched = try await fetch(source, key, context(reason, stored, priority))
        if fetched.isStored {
            if stored != nil, let result = try await storedResult(key, fetched, reason, ticket) { return result }
            // The entry went while the source was asked.
            fetched = try await fetch(source, key, context(reason, nil, priority))
        }
        let (value, bytes): (Value?, [UInt8]?)
        switch fetched.content {
        case .value(let found): (value, bytes) = (found, nil)
        case .bytes(let found): (value, bytes) = (nil, found)
        case .both(let found, let foundBytes): (value, bytes) = (found, foundBytes)
        case .unchanged, .stale: throw CacheError.notFound(key: key)
        }
        var origin = SourceResult<Value>.Origin.source
        if stored != nil, !fetched.levels.contains(.writeDisk) {
            await forget(key, ticket)
        } else if stored != nil, reason.isRefresh, let bytes, try await isStored(bytes, key) {
            await renew(key, fetched)
            origin = .stored
        }
        return SourceResult(
            value: value, bytes: bytes, timeToLive: fetched.timeToLive, tag: fetched.tag, levels: fetched.levels,
            storesOriginal: source.storesOriginal, origin: origin, ticket: ticket)
    }

    private func context(
        _ reason: LoadReason, _ stored: FetchContext.Stored?, _ priority: PrioritySource
    ) -> FetchContext {
        FetchContext(
            priority: priority, stored: stored, isRefresh: reason.isRefresh, isBackground: reason == .background)
    }

    private func fetch(
        _ source: AnySource<Value>, _ key: CacheKey, _ context: FetchContext
    ) async throws(CacheError) -> FetchResult<Value> {
        do {
            let fetched = try await metrics.measure(.source) { try await source.fetch(context) }
            metrics.count(.value)
            return fetched
        } catch {
            // A source's own CancellationError, while someone still waits, is its failure.
            let isCancelled = error is CancellationError && Task.isCancelled
            metrics.count(isCancelled ? .cancelled : .failure)
            if error is CancellationError, !isCancelled { throw .source(key: key, underlying: error) }
            throw CacheError(error, key: key)
        }
    }

    private func storedOriginal(_ key: CacheKey) async -> FetchContext.Stored? {
        if original.excludes(key) { return nil }
        await original.outbox.settle()
        guard let info = try? await original.disk.info(forKey: key) else { return nil }
        return FetchContext.Stored(created: info.created, expires: info.expires, tag: info.tag)
    }

    /// The stored original, fresh again or although it is not.
    private func storedResult(
        _ key: CacheKey, _ fetched: FetchResult<Value>, _ reason: LoadReason, _ ticket: InvalidationRegister.Ticket
    ) async throws -> SourceResult<Value>? {
        guard let entry = try await readBytes(key, in: original, includingExpired: true) else { return nil }
        var origin = SourceResult<Value>.Origin.stored
        if case .stale(let refreshing) = fetched.content {
            guard !reason.isRefresh else { throw CacheError.notFound(key: key) }
            origin = .stale(refreshing: refreshing)
        } else {
            await renew(key, fetched)
        }
        return SourceResult(
            value: nil, bytes: entry.bytes, timeToLive: fetched.timeToLive,
            tag: fetched.keepsTag ? entry.tag : fetched.tag, levels: fetched.levels, storesOriginal: true,
            origin: origin, ticket: ticket)
    }

    /// Lets the stored original's time begin anew.
    private func renew(_ key: CacheKey, _ fetched: FetchResult<Value>) async {
        await original.disk.renew(
            key, timeToLive: fetched.timeToLive ?? original.format.timeToLive ?? configuration.timeToLive)
        if !fetched.keepsTag { await original.disk.setTag(fetched.tag, forKey: key) }
    }

    /// Whether a source without validators has sent what is there already.
    private func isStored(_ bytes: [UInt8], _ key: CacheKey) async throws(CacheError) -> Bool {
        try await readBytes(key, in: original, includingExpired: true)?.bytes == bytes
    }

    /// Removes the original that has a successor which may not be stored.
    private func forget(_ key: CacheKey, _ ticket: InvalidationRegister.Ticket) async {
        await original.outbox.send(.remove, forKey: key) { send in ticket.ifValid(send) ?? true }
    }
}
