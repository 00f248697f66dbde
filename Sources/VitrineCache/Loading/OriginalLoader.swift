import Logging
import VitrineCore

/// Fetches the originals of a cache from their sources, and stores them on disk. Concurrent fetches of a key are shared
/// by all formats.
final class OriginalLoader<Value: CacheableValue>: Sendable {
    private let storage: EntryStorage<Value>
    private let fetches = SingleFlight<FlightKey, SourceResult<Value>>()
    /// The keys with a background refresh.
    private let refreshes = Locked<Set<CacheKey>>([])

    init(_ storage: EntryStorage<Value>) { self.storage = storage }

    private var original: FormatArea<Value> { storage.original }

    // MARK: Sharing

    /// Fetches the original from the source. Concurrent calls share one fetch.
    func fetchOriginal(
        for lookup: Lookup<Value>, from source: AnySource<Value>, reason: LoadReason
    ) async throws -> SourceResult<Value> {
        let shared = sharedReason(reason, key: lookup.key, bounds: source.bounds)
        var result = try await joinFetch(lookup, from: source, reason: shared)
        if result.isStale, !lookup.levels.contains(.readDisk) {
            // Another's request was answered from the disk, which this one does not want.
            result = try await joinFetch(lookup, from: source, reason: .refresh)
        }
        return result
    }

    private func joinFetch(
        _ lookup: Lookup<Value>, from source: AnySource<Value>, reason: LoadReason
    ) async throws -> SourceResult<Value> {
        let shared = flightKey(lookup.key, isRefresh: reason.isRefresh, bounds: source.bounds)
        return try await fetches.value(for: shared, following: lookup.priority) { flight in
            try await self.askSource(source, for: lookup.following(flight.priority), reason: reason)
        }
    }

    /// A load of a missing value joins a running refresh that callers are waiting for. It does not join a background
    /// refresh: the source decides whether stale values may be returned.
    private func sharedReason(_ reason: LoadReason, key: CacheKey, bounds: String) -> LoadReason {
        let refresh = flightKey(key, isRefresh: true, bounds: bounds)
        guard reason == .missing, fetches.subscriberCount(for: refresh) > 0,
            !refreshes.withLock({ $0.contains(key) })
        else { return reason }
        return .refresh
    }

    /// The identity of a shared fetch: all levels, as requests with different levels share it.
    private func flightKey(_ key: CacheKey, isRefresh: Bool, bounds: String = "") -> FlightKey {
        FlightKey(original.slot(key), levels: .all, isRefresh: isRefresh, bounds: bounds, in: storage.register)
    }

    /// Marks a key as being refreshed in the background; returns false if it is already.
    func beginRefresh(of key: CacheKey) -> Bool { refreshes.withLock { $0.insert(key).inserted } }

    /// Ends the background refresh of a key.
    func endRefresh(of key: CacheKey) { refreshes.withLock { _ = $0.remove(key) } }

    /// The number of keys with a background refresh.
    var refreshCount: Int { refreshes.withLock { $0.count } }

    /// Returns the number of formats and prefetches that wait for a fetch of a key.
    func subscriberCount(of key: CacheKey, isRefresh: Bool) -> Int {
        let wanted = flightKey(key, isRefresh: isRefresh)
        return fetches.subscriberCount { $0.isSame(as: wanted) }
    }

    // MARK: Asking

    /// Asks the source for the original.
    private func askSource(
        _ source: AnySource<Value>, for lookup: Lookup<Value>, reason: LoadReason
    ) async throws -> SourceResult<Value> {
        let key = lookup.key, levels = lookup.levels
        let ticket = storage.register.begin(original.slot(key))
        let began = source.mayHaveTags && levels.contains(.writeDisk) ? try? await storage.lastPurge() : nil
        let reads = source.revalidates && (levels.contains(.readDisk) || reason.isRefresh)
        let stored = reads ? await storedProperties(of: key) : nil
        var fetched = try await fetch(key, from: source, context: context(lookup, stored: stored, reason: reason))
        if fetched.isStored {
            if stored != nil,
                let result = try await storedResult(of: key, confirmedBy: fetched, reason: reason, ticket: ticket)
            {
                return result
            }
            // The entry went while the source was asked.
            fetched = try await fetch(key, from: source, context: context(lookup, stored: nil, reason: reason))
        }
        let (value, bytes): (Value?, [UInt8]?)
        switch fetched.content {
        case .value(let found): (value, bytes) = (found, nil)
        case .bytes(let found): (value, bytes) = (nil, found)
        case .both(let found, let foundBytes): (value, bytes) = (found, foundBytes)
        case .unchanged, .stale: throw CacheError.notFound(key: key)
        case .gone(let reason):
            await removeEntries(forKey: key, ticket: ticket)
            throw CacheError(reason, key: key)
        }
        for other in fetched.outdated { await storage.removeEntries(forKey: other) }
        let tags = try EntryTags(fetched.tags, began: began)
        var origin = SourceResult<Value>.Origin.source
        if stored != nil, !fetched.levels.contains(.writeDisk) {
            await removeEntries(forKey: key, ticket: ticket)
        } else if stored != nil, reason.isRefresh, let bytes, try await isStored(bytes, tags: tags, key: key) {
            await renewEntry(of: key, confirmedBy: fetched)
            origin = .stored
        }
        return SourceResult(
            value: value, bytes: bytes,
            properties: .init(
                timeToLive: fetched.timeToLive, validator: fetched.validator, tags: tags, levels: fetched.levels,
                storesOriginal: source.storesOriginal),
            origin: origin, ticket: ticket)
    }

    private func context(
        _ lookup: Lookup<Value>, stored: FetchContext.Stored?, reason: LoadReason
    ) -> FetchContext {
        FetchContext(
            priority: lookup.priority, stored: stored, isRefresh: reason.isRefresh, isBackground: reason == .background)
    }

    private func fetch(
        _ key: CacheKey, from source: AnySource<Value>, context: FetchContext
    ) async throws(CacheError) -> FetchResult<Value> {
        let metrics = storage.metrics
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

    // MARK: Stored originals

    private func storedProperties(of key: CacheKey) async -> FetchContext.Stored? {
        if original.excludes(key) { return nil }
        await original.pendingWrites.waitUntilIdle()
        guard let info = try? await original.disk.info(forKey: key) else { return nil }
        return FetchContext.Stored(created: info.created, expires: info.expires, validator: info.validator)
    }

    /// The stored original, fresh again or although it is not.
    private func storedResult(
        of key: CacheKey, confirmedBy fetched: FetchResult<Value>, reason: LoadReason,
        ticket: InvalidationRegister.Ticket
    ) async throws -> SourceResult<Value>? {
        guard let entry = try await storage.readBytes(key, in: original, includingExpired: true) else { return nil }
        var origin = SourceResult<Value>.Origin.stored
        if case .stale(let refreshing) = fetched.content {
            guard !reason.isRefresh else { throw CacheError.notFound(key: key) }
            origin = .stale(refreshing: refreshing)
        } else if fetched.levels.contains(.writeDisk) {
            await renewEntry(of: key, confirmedBy: fetched)
        } else {
            // Confirmed for the last time: it may not be kept any longer.
            await removeEntries(forKey: key, ticket: ticket)
        }
        return SourceResult(
            value: nil, bytes: entry.bytes,
            properties: .init(
                timeToLive: fetched.timeToLive,
                validator: fetched.keepsValidator ? entry.validator : fetched.validator, tags: entry.tags,
                levels: fetched.levels, storesOriginal: true),
            origin: origin, ticket: ticket)
    }

    /// Lets the stored original's time begin anew.
    private func renewEntry(of key: CacheKey, confirmedBy fetched: FetchResult<Value>) async {
        await original.disk.renew(key, timeToLive: storage.lifetime(fetched.timeToLive, in: original))
        if !fetched.keepsValidator { await original.disk.setValidator(fetched.validator, forKey: key) }
    }

    /// Returns whether the stored original has the same bytes and tags. Used for sources without validators.
    private func isStored(_ bytes: [UInt8], tags: EntryTags, key: CacheKey) async throws(CacheError) -> Bool {
        guard let entry = try await storage.readBytes(key, in: original, includingExpired: true) else { return false }
        return entry.bytes == bytes && entry.tags.hasSameTags(as: tags)
    }

    /// Removes the entries of a key whose value has no successor, or one that may not be stored. Entries that were
    /// changed meanwhile stay.
    private func removeEntries(forKey key: CacheKey, ticket: InvalidationRegister.Ticket) async {
        guard ticket.isValid else { return }
        await storage.removeEntries(forKey: key)
    }

    // MARK: Storing

    /// Stores the original on disk, for the first caller only.
    func storeOriginal(of key: CacheKey, from result: SourceResult<Value>, isInMemory: Bool) async {
        guard result.isNew, result.claimStoring() else { return }
        if !isInMemory {
            // An older original in memory is not what other formats are to be made from.
            _ = result.ticket.ifValid { original.memory.remove(original.slot(key)) }
        }
        let body =
            result.bytes.map(Body.ready)
            ?? result.knownValue.map { storage.encodedBody(of: $0, in: original.format) }
        guard let body else { return }
        await storeBody(body, key: key, in: original, from: result, ticket: result.ticket)
    }

    /// Puts an entry on disk, unless its key was changed meanwhile. Errors are logged.
    func storeBody(
        _ body: Body, key: CacheKey, in area: FormatArea<Value>, from result: SourceResult<Value>,
        ticket: InvalidationRegister.Ticket
    ) async {
        let properties = result.properties
        do throws(CacheError) {
            let put = try area.disk.engine.put(
                body, in: area.disk.format, timeToLive: storage.lifetime(properties.timeToLive, in: area),
                validator: properties.validator, tags: properties.tags)
            await area.pendingWrites.send(put, forKey: key) { send in ticket.ifValid(properties.tags, send) ?? true }
        } catch {
            storage.log.warning("Cannot store a value: \(error)", metadata: ["cache": "\(storage.name)"])
        }
    }
}
