import Logging
import VitrineCore

extension ValueCache {
    // MARK: Load

    /// Loads a value after a miss in memory. Concurrent calls for the same key, format and levels share one load.
    func load(
        _ key: CacheKey, in area: FormatArea<Value>, _ source: AnySource<Value>, levels: CacheLevels,
        reason: LoadReason = .missing, following priority: PrioritySource
    ) async throws(CacheError) -> Loaded<Value> {
        let levels = levels.intersection(configuration.levels).intersection(source.levels)
        let slot = area.slot(key)
        let shared = flightKey(slot, levels, isRefresh: reason.isRefresh, bounds: source.bounds)
        do {
            return try await loads.value(for: shared, following: priority) { flight in
                let ticket = self.register.begin(slot)
                if !reason.isRefresh,
                    let stored = try await self.stored(
                        key, in: area, levels: levels, ticket: ticket, priority: flight.priority)
                {
                    return Loaded(value: stored, origin: .stored)
                }
                return try await self.produce(
                    key, in: area, source: source, levels: levels, reason: reason, ticket: ticket,
                    priority: flight.priority, cancellation: flight.cancellation)
            }
        } catch {
            let error = CacheError(error, key: key)
            if configuration.servesStale, !reason.isRefresh, !error.isCancellation,
                let stale = await staleValue(key, in: area, levels)
            {
                metrics.count(.stale)
                log.notice("Returned an expired value: \(error)", metadata: ["cache": "\(name)", "key": "\(key)"])
                return Loaded(value: stale, origin: .stale)
            }
            throw error
        }
    }

    /// Returns the value stored in either level, or one derived from another stored format.
    func stored(
        _ key: CacheKey, in area: FormatArea<Value>, levels: CacheLevels, ticket: InvalidationRegister.Ticket,
        priority: PrioritySource
    ) async throws(CacheError) -> Value? {
        // It may have come since the caller looked, from a load that has just ended.
        if levels.contains(.readMemory), let value = area.memory.peek(ticket.slot) { return value }
        do throws(CacheError) {
            if let value = try await lookUp(key, in: area, levels: levels, following: priority) { return value }
        } catch {
            if error.isCancellation { throw error }
            log.warning("Cannot read the disk: \(error)", metadata: ["cache": "\(name)"])
        }
        return try await derive(key, in: area, levels: levels, ticket: ticket, priority: priority)
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

    // MARK: Disk

    /// Returns the value on disk. Concurrent calls share one read.
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
                    self.keepInMemory(found.value, expires: found.expires, tags: found.tags, in: area, ticket)
                }
                return found.value
            }
        } catch {
            throw CacheError(error, key: key)
        }
    }

    /// A decoded entry on disk.
    struct Found: Sendable {
        let value: Value
        let expires: Duration?
        let tags: EntryTags
    }

    /// Reads and decodes an entry. An entry that cannot be decoded is removed and logged, and counts as a miss.
    func readDisk(
        _ key: CacheKey, in area: FormatArea<Value>, includingExpired: Bool = false,
        _ ticket: InvalidationRegister.Ticket
    ) async throws(CacheError) -> Found? {
        await area.pendingWrites.waitUntilIdle()
        let result = try await metrics.measure(.disk) { () throws(CacheError) in
            try await configuration.executor.run { () throws(CacheError) -> Result<Found, any Error>? in
                let entry = try area.disk.blocking.entry(forKey: key, includingExpired: includingExpired)
                guard let entry else { return nil }
                return Result {
                    Found(value: try area.format.value(of: entry.bytes), expires: entry.expires, tags: entry.tags)
                }
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

    /// Returns the result of a body for the bytes of an entry on disk, if the system has all of them in memory. It
    /// neither waits for the disk nor suspends, so that event loops can call it.
    ///
    /// - Parameters:
    ///   - key: The key of the value, in the original format.
    ///   - body: Given the bytes of the entry. Returns the result and the value for the memory level; nil for bytes
    ///     that are of no use.
    /// - Returns: nil does not mean that there is no entry. The asynchronous calls find that out.
    @_spi(EventLoops)
    public func withResidentBytes<Result>(
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
            keepInMemory(value, expires: entry.expires, tags: entry.tags, in: area, ticket)
        }
        return made.result
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

    /// Removes an entry whose bytes are no value, unless it was replaced meanwhile.
    func discard(
        _ key: CacheKey, in area: FormatArea<Value>, _ ticket: InvalidationRegister.Ticket, because error: any Error
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
        _ ticket: InvalidationRegister.Ticket
    ) {
        let incoming = incoming(value, ticket.slot, expires: expires, tags: tags, in: area)
        if let change = ticket.ifValid(tags, { area.memory.insert(incoming) }) { area.memory.finish(change) }
    }

    // MARK: Other formats

    /// Derives a value from another stored format and stores it: from the smallest larger format of the family in
    /// memory or on disk, or from the original.
    ///
    /// - Returns: nil if there is no such entry. The caller then asks the source.
    func derive(
        _ key: CacheKey, in area: FormatArea<Value>, levels: CacheLevels, ticket: InvalidationRegister.Ticket,
        priority: PrioritySource
    ) async throws(CacheError) -> Value? {
        guard area !== original else { return nil }
        let larger = area.format.transform == nil ? [] : largerAreas(than: area)
        if levels.contains(.readMemory) {
            for candidate in larger {
                guard let (value, tags) = candidate.memory.peekTagged(candidate.slot(key)) else { continue }
                return try await derived(
                    from: value, expires: nil, tags: tags, key: key, in: area, levels: levels, ticket: ticket,
                    priority: priority)
            }
        }
        if levels.contains(.readDisk) {
            for candidate in larger {
                let other = register.begin(candidate.slot(key))
                guard let found = try? await readDisk(key, in: candidate, other) else { continue }
                return try await derived(
                    from: found.value, expires: found.expires, tags: found.tags, key: key, in: area, levels: levels,
                    ticket: ticket, priority: priority)
            }
        }
        return try await deriveFromOriginal(key, in: area, levels: levels, ticket: ticket, priority: priority)
    }

    /// The formats whose entries this one's can be made from, the smallest first.
    private func largerAreas(than area: FormatArea<Value>) -> [FormatArea<Value>] {
        guard let derivation = area.format.derivation else { return [] }
        let larger = formats.all.filter { $0.format.derivation.map(derivation.canDerive) ?? false }
        return larger.sorted { ($0.format.derivation?.magnitude ?? 0) < ($1.format.derivation?.magnitude ?? 0) }
    }

    private func deriveFromOriginal(
        _ key: CacheKey, in area: FormatArea<Value>, levels: CacheLevels, ticket: InvalidationRegister.Ticket,
        priority: PrioritySource
    ) async throws(CacheError) -> Value? {
        let needsBytes = area.format.transform == nil && area.format.derive != nil
        if levels.contains(.readMemory), !needsBytes,
            let (value, tags) = original.memory.peekTagged(original.slot(key))
        {
            return try await derived(
                from: value, expires: nil, tags: tags, key: key, in: area, levels: levels, ticket: ticket,
                priority: priority)
        }
        guard levels.contains(.readDisk) else { return nil }
        let originalTicket = register.begin(original.slot(key))
        let entry: DiskCache.Entry?
        do throws(CacheError) {
            entry = try await readBytes(key, in: original)
        } catch {
            log.warning("Cannot read the disk: \(error)", metadata: ["cache": "\(name)"])
            return nil
        }
        guard let entry else { return nil }
        let result = SourceResult<Value>(
            value: nil, bytes: entry.bytes, timeToLive: remaining(entry.expires), validator: [], tags: entry.tags,
            levels: .all, storesOriginal: true, origin: .stored, ticket: originalTicket)
        let value: Value
        do throws(CacheError) {
            value = try await make(key, in: area, from: result, priority)
        } catch {
            guard case .invalidData(_, let reason) = error else { throw error }
            // The stored original is no value: the source is asked.
            await discard(key, in: original, originalTicket, because: reason)
            return nil
        }
        metrics.countDerivation()
        await store(value, key: key, in: area, from: result, levels: levels, ticket: ticket)
        return value
    }

    private func derived(
        from value: Value, expires: Duration?, tags: EntryTags, key: CacheKey, in area: FormatArea<Value>,
        levels: CacheLevels, ticket: InvalidationRegister.Ticket, priority: PrioritySource
    ) async throws(CacheError) -> Value {
        let made = try await applied(area, to: value, key: key, priority: priority)
        metrics.countDerivation()
        let result = SourceResult(
            value: value, bytes: nil, timeToLive: remaining(expires), validator: [], tags: tags, levels: .all,
            storesOriginal: false, origin: .stored, ticket: ticket)
        await store(made, key: key, in: area, from: result, levels: levels, ticket: ticket)
        return made
    }

    /// How long something is fresh from now on that is fresh until then.
    private func remaining(_ expires: Duration?) -> Duration? {
        expires.map { max(.zero, $0 - configuration.clock.now) }
    }

    // MARK: Source

    /// Fetches the original from the source, transforms it, stores the result and returns it.
    private func produce(
        _ key: CacheKey, in area: FormatArea<Value>, source: AnySource<Value>, levels: CacheLevels,
        reason: LoadReason, ticket: InvalidationRegister.Ticket, priority: PrioritySource,
        cancellation: CancellationToken
    ) async throws -> Loaded<Value> {
        var result = try await askOnce(source, key: key, reason: reason, levels: levels, priority: priority)
        // The last subscriber may leave before this task can be cancelled: nothing is decoded then.
        if cancellation.isCancelled { throw CancellationError() }
        let value: Value
        do throws(CacheError) {
            value = try await make(key, in: area, from: result, priority)
        } catch {
            // The stored original is no value: the source is asked for all of it.
            guard case .invalidData(_, let underlying) = error, !result.isNew else { throw error }
            await discard(key, in: original, result.ticket, because: underlying)
            result = try await askOnce(source, key: key, reason: .refresh, levels: levels, priority: priority)
            value = try await make(key, in: area, from: result, priority)
        }
        if case .stale(let refreshing) = result.origin {
            metrics.count(.stale)
            if refreshing { refreshBehind(key, in: area, source: source, levels: levels) }
            return Loaded(value: value, origin: .stale)
        }
        await store(value, key: key, in: area, from: result, levels: levels, ticket: ticket)
        return Loaded(value: value, origin: result.isNew ? .source : .stored)
    }

    /// Fetches the original from the source. Concurrent calls share one fetch.
    func askOnce(
        _ source: AnySource<Value>, key: CacheKey, reason: LoadReason, levels: CacheLevels,
        priority: PrioritySource
    ) async throws -> SourceResult<Value> {
        var result = try await flight(
            source, key: key, reason: joined(key, reason: reason, bounds: source.bounds), levels: levels,
            priority: priority)
        if result.isStale, !levels.contains(.readDisk) {
            // Another's request was answered from the disk, which this one does not want.
            result = try await flight(source, key: key, reason: .refresh, levels: levels, priority: priority)
        }
        return result
    }

    private func flight(
        _ source: AnySource<Value>, key: CacheKey, reason: LoadReason, levels: CacheLevels,
        priority: PrioritySource
    ) async throws -> SourceResult<Value> {
        let shared = sourceFlightKey(key, isRefresh: reason.isRefresh, bounds: source.bounds)
        return try await originals.value(for: shared, following: priority) { flight in
            try await self.ask(source, key: key, reason: reason, levels: levels, priority: flight.priority)
        }
    }

    /// A load of a missing value joins a running refresh that callers are waiting for. It does not join a background
    /// refresh: the source decides whether stale values may be returned.
    private func joined(_ key: CacheKey, reason: LoadReason, bounds: String) -> LoadReason {
        let refresh = sourceFlightKey(key, isRefresh: true, bounds: bounds)
        guard reason == .missing, originals.subscriberCount(for: refresh) > 0,
            !refreshes.withLock({ $0.contains(key) })
        else { return reason }
        return .refresh
    }

    /// Asks the source for the original.
    private func ask(
        _ source: AnySource<Value>, key: CacheKey, reason: LoadReason, levels: CacheLevels,
        priority: PrioritySource
    ) async throws -> SourceResult<Value> {
        let ticket = register.begin(original.slot(key))
        let began = source.mayHaveTags && levels.contains(.writeDisk) ? try? await lastPurge() : nil
        let reads = source.revalidates && (levels.contains(.readDisk) || reason.isRefresh)
        let stored = reads ? await storedOriginal(key) : nil
        var fetched = try await fetch(source, key: key, context: context(reason, stored: stored, priority: priority))
        if fetched.isStored {
            if stored != nil, let result = try await storedResult(key, fetched: fetched, reason: reason, ticket: ticket)
            {
                return result
            }
            // The entry went while the source was asked.
            fetched = try await fetch(source, key: key, context: context(reason, stored: nil, priority: priority))
        }
        let (value, bytes): (Value?, [UInt8]?)
        switch fetched.content {
        case .value(let found): (value, bytes) = (found, nil)
        case .bytes(let found): (value, bytes) = (nil, found)
        case .both(let found, let foundBytes): (value, bytes) = (found, foundBytes)
        case .unchanged, .stale: throw CacheError.notFound(key: key)
        case .gone(let reason):
            await forget(key, ticket)
            throw CacheError(reason, key: key)
        }
        for other in fetched.outdated { await removeAll(forKey: other) }
        let tags = try EntryTags(fetched.tags, began: began)
        var origin = SourceResult<Value>.Origin.source
        if stored != nil, !fetched.levels.contains(.writeDisk) {
            await forget(key, ticket)
        } else if stored != nil, reason.isRefresh, let bytes, try await isStored(bytes, tags: tags, key: key) {
            await renew(key, fetched)
            origin = .stored
        }
        return SourceResult(
            value: value, bytes: bytes, timeToLive: fetched.timeToLive, validator: fetched.validator, tags: tags,
            levels: fetched.levels, storesOriginal: source.storesOriginal, origin: origin, ticket: ticket)
    }

    private func context(
        _ reason: LoadReason, stored: FetchContext.Stored?, priority: PrioritySource
    ) -> FetchContext {
        FetchContext(
            priority: priority, stored: stored, isRefresh: reason.isRefresh, isBackground: reason == .background)
    }

    private func fetch(
        _ source: AnySource<Value>, key: CacheKey, context: FetchContext
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
        await original.pendingWrites.waitUntilIdle()
        guard let info = try? await original.disk.info(forKey: key) else { return nil }
        return FetchContext.Stored(created: info.created, expires: info.expires, validator: info.validator)
    }

    /// The stored original, fresh again or although it is not.
    private func storedResult(
        _ key: CacheKey, fetched: FetchResult<Value>, reason: LoadReason, ticket: InvalidationRegister.Ticket
    ) async throws -> SourceResult<Value>? {
        guard let entry = try await readBytes(key, in: original, includingExpired: true) else { return nil }
        var origin = SourceResult<Value>.Origin.stored
        if case .stale(let refreshing) = fetched.content {
            guard !reason.isRefresh else { throw CacheError.notFound(key: key) }
            origin = .stale(refreshing: refreshing)
        } else if fetched.levels.contains(.writeDisk) {
            await renew(key, fetched)
        } else {
            // Confirmed for the last time: it may not be kept any longer.
            await forget(key, ticket)
        }
        return SourceResult(
            value: nil, bytes: entry.bytes, timeToLive: fetched.timeToLive,
            validator: fetched.keepsValidator ? entry.validator : fetched.validator, tags: entry.tags,
            levels: fetched.levels, storesOriginal: true, origin: origin, ticket: ticket)
    }

    /// Lets the stored original's time begin anew.
    private func renew(_ key: CacheKey, _ fetched: FetchResult<Value>) async {
        await original.disk.renew(
            key, timeToLive: fetched.timeToLive ?? original.format.timeToLive ?? configuration.timeToLive)
        if !fetched.keepsValidator { await original.disk.setValidator(fetched.validator, forKey: key) }
    }

    /// Returns whether the stored original has the same bytes and tags. Used for sources without validators.
    private func isStored(_ bytes: [UInt8], tags: EntryTags, key: CacheKey) async throws(CacheError) -> Bool {
        guard let entry = try await readBytes(key, in: original, includingExpired: true) else { return false }
        return entry.bytes == bytes && entry.tags.hasSameTags(as: tags)
    }

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

    /// Removes the entries of a key whose value has no successor, or one that may not be stored. Entries that were
    /// changed meanwhile stay.
    private func forget(_ key: CacheKey, _ ticket: InvalidationRegister.Ticket) async {
        guard ticket.isValid else { return }
        await removeAll(forKey: key)
    }

    // MARK: Making

    /// Returns the value of a format for the result of the source.
    func make(
        _ key: CacheKey, in area: FormatArea<Value>, from result: SourceResult<Value>, _ priority: PrioritySource
    ) async throws(CacheError) -> Value {
        if let derive = area.format.derive, let bytes = result.bytes {
            return try await transform(key, area: area, priority: priority, failing: CacheError.invalidData) {
                try await derive(bytes)
            }
        }
        let value: Value
        if let known = result.knownValue {
            value = known
        } else {
            let format = original.format
            do {
                value =
                    format.decodesAtOnce
                    ? try result.value(decoding: format)
                    : try await configuration.executor.run { try result.value(decoding: format) }
            } catch {
                throw .invalidData(key: key, underlying: error)
            }
        }
        return try await applied(area, to: value, key: key, priority: priority)
    }

    /// Applies the transform of a format to a value, on the executor.
    func applied(
        _ area: FormatArea<Value>, to value: Value, key: CacheKey, priority: PrioritySource
    ) async throws(CacheError) -> Value {
        let name = area.format.name
        let operation: @Sendable () async throws -> Value
        if let transform = area.format.transform {
            operation = { try await transform(value) }
        } else if let derive = area.format.derive {
            let format = original.format
            operation = { try await derive(try format.bytes(of: value)) }
        } else {
            return value
        }
        return try await transform(
            key, area: area, priority: priority, failing: { .transform(key: $0, format: name, underlying: $1) },
            operation: operation)
    }

    /// Runs a transform in its turn, on the executor.
    private func transform(
        _ key: CacheKey, area: FormatArea<Value>, priority: PrioritySource,
        failing: @Sendable (CacheKey, any Error) -> CacheError,
        operation: @escaping @Sendable () async throws -> Value
    ) async throws(CacheError) -> Value {
        let executor = configuration.executor
        do {
            return try await transforms.run(following: priority) {
                try await metrics.measure(.transform) {
                    try await withTaskExecutorPreference(executor) { try await operation() }
                }
            }
        } catch let error as CacheError {
            throw error
        } catch {
            if error is CancellationError, Task.isCancelled { throw .cancelled(key: key) }
            throw failing(key, error)
        }
    }

    // MARK: Keeping

    /// Stores the result of the source: the value in its format, and the original if configured. Errors are logged.
    func store(
        _ value: Value, key: CacheKey, in area: FormatArea<Value>, from result: SourceResult<Value>,
        levels: CacheLevels, ticket: InvalidationRegister.Ticket
    ) async {
        let levels = levels.intersection(result.levels)
        let isOriginal = area === original
        if await isPurgedElsewhere(result.tags) { return }
        if levels.contains(.writeMemory) {
            keepInMemory(value, expires: expiry(result.timeToLive, in: area), tags: result.tags, in: area, ticket)
        }
        guard levels.contains(.writeDisk) else { return }
        if !isOriginal {
            await keepOnDisk(encoded(value, area.format), key: key, in: area, from: result, ticket: ticket)
            guard configuration.storesOriginals, result.storesOriginal else { return }
        }
        await storeOriginal(key, from: result, isInMemory: isOriginal)
    }

    /// Stores the original on disk, for the first caller only.
    func storeOriginal(_ key: CacheKey, from result: SourceResult<Value>, isInMemory: Bool) async {
        guard result.isNew, result.claimStoring() else { return }
        if !isInMemory {
            // An older original in memory is not what other formats are to be made from.
            _ = result.ticket.ifValid { original.memory.remove(original.slot(key)) }
        }
        let body = result.bytes.map(Body.ready) ?? result.knownValue.map { encoded($0, original.format) }
        guard let body else { return }
        await keepOnDisk(body, key: key, in: original, from: result, ticket: result.ticket)
    }

    /// Returns a body that the disk's writer encodes.
    func encoded(_ value: Value, _ format: CacheFormat<Value>) -> Body {
        .lazy(LazyBytes { try format.bytes(of: value) })
    }

    /// Puts an entry on disk, unless its key was changed meanwhile.
    func keepOnDisk(
        _ body: Body, key: CacheKey, in area: FormatArea<Value>, from result: SourceResult<Value>,
        ticket: InvalidationRegister.Ticket
    ) async {
        do throws(CacheError) {
            let put = try area.disk.engine.put(
                body, in: area.disk.format,
                timeToLive: result.timeToLive ?? area.format.timeToLive ?? configuration.timeToLive,
                validator: result.validator, tags: result.tags)
            await area.pendingWrites.send(put, forKey: key) { send in ticket.ifValid(result.tags, send) ?? true }
        } catch {
            log.warning("Cannot store a value: \(error)", metadata: ["cache": "\(name)"])
        }
    }
}
