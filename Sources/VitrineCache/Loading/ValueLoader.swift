import Logging
import VitrineCore

/// Loads the values of a cache after a miss in memory: from disk, from the entry of another format, or from the source.
///
/// Concurrent loads of a key share their steps. A load takes an ``InvalidationRegister/Ticket`` before its first step
/// and stores only while the ticket is valid.
final class ValueLoader<Value: CacheableValue>: Sendable {
    let originals: OriginalLoader<Value>
    let transformer: FormatTransformer<Value>
    private let storage: EntryStorage<Value>
    private let lookups = SingleFlight<FlightKey, Value?>()
    private let loads = SingleFlight<FlightKey, Loaded<Value>>()

    init(_ storage: EntryStorage<Value>) {
        self.storage = storage
        originals = OriginalLoader(storage)
        transformer = FormatTransformer(storage)
    }

    private var original: FormatArea<Value> { storage.original }

    /// The identity of a shared load.
    private func flightKey(_ lookup: Lookup<Value>, isRefresh: Bool = false, bounds: String = "") -> FlightKey {
        FlightKey(lookup.slot, levels: lookup.levels, isRefresh: isRefresh, bounds: bounds, in: storage.register)
    }

    /// Returns the number of subscribers to a load of a slot.
    func subscriberCount(of slot: MemoryKey, levels: CacheLevels, isRefresh: Bool) -> Int {
        let wanted = FlightKey(slot, levels: levels, isRefresh: isRefresh, bounds: "", in: storage.register)
        return loads.subscriberCount { $0.isSame(as: wanted) }
    }

    /// Returns the priority of a slot's load; nil when there is none.
    func priority(of slot: MemoryKey, levels: CacheLevels) -> RequestPriority? {
        let wanted = FlightKey(slot, levels: levels, isRefresh: false, bounds: "", in: storage.register)
        return loads.priority { $0.isSame(as: wanted) }
    }

    // MARK: Loading

    /// Loads a value. Concurrent calls for the same key, format and levels share one load.
    func loadValue(
        of lookup: Lookup<Value>, from source: AnySource<Value>, reason: LoadReason = .missing
    ) async throws(CacheError) -> Loaded<Value> {
        let lookup = lookup.limited(to: storage.configuration.levels.intersection(source.levels))
        let shared = flightKey(lookup, isRefresh: reason.isRefresh, bounds: source.bounds)
        do {
            return try await loads.value(for: shared, following: lookup.priority) { flight in
                let lookup = lookup.following(flight.priority)
                let ticket = self.storage.register.begin(lookup.slot)
                if !reason.isRefresh, let stored = try await self.storedValue(of: lookup, ticket: ticket) {
                    return Loaded(value: stored, origin: .stored)
                }
                return try await self.produceValue(
                    of: lookup, from: source, reason: reason, ticket: ticket, cancellation: flight.cancellation)
            }
        } catch {
            let error = CacheError(error, key: lookup.key)
            if storage.configuration.servesStale, !reason.isRefresh, !error.isCancellation,
                let stale = await staleValue(of: lookup)
            {
                storage.metrics.count(.stale)
                storage.log.notice(
                    "Returned an expired value: \(error)",
                    metadata: ["cache": "\(storage.name)", "key": "\(lookup.key)"])
                return Loaded(value: stale, origin: .stale)
            }
            throw error
        }
    }

    /// Loads a value again. If the original is new, removes the entries made from the old one.
    func reloadValue(
        of lookup: Lookup<Value>, from source: AnySource<Value>, reason: LoadReason
    ) async throws(CacheError) -> Loaded<Value> {
        let loaded = try await loadValue(of: lookup, from: source, reason: reason)
        guard loaded.origin == .source else { return loaded }
        let keepsOriginal = storage.configuration.storesOriginals && source.storesOriginal
        for other in storage.formats.all where other !== lookup.area && !(other === original && keepsOriginal) {
            await storage.removeEntry(lookup.key, in: other)
        }
        return loaded
    }

    /// Asks the source again in the background, after an expired value was returned: once at a time for a key.
    private func refreshInBackground(_ lookup: Lookup<Value>, from source: AnySource<Value>) {
        let key = lookup.key
        guard !lookup.levels.isDisjoint(with: .writeOnly), originals.beginRefresh(of: key) else { return }
        Task {
            do throws(CacheError) {
                _ = try await reloadValue(
                    of: lookup.following(PrioritySource(.low)), from: source, reason: .background)
            } catch {
                storage.log.notice("Cannot refresh a value: \(error)", metadata: ["cache": "\(storage.name)"])
            }
            originals.endRefresh(of: key)
        }
    }

    // MARK: Stored values

    /// Returns the value stored in either level, or one derived from another stored format.
    func storedValue(of lookup: Lookup<Value>) async throws(CacheError) -> Value? {
        try await storedValue(of: lookup, ticket: storage.register.begin(lookup.slot))
    }

    private func storedValue(
        of lookup: Lookup<Value>, ticket: InvalidationRegister.Ticket
    ) async throws(CacheError) -> Value? {
        // It may have come since the caller looked, from a load that has just ended.
        if lookup.levels.contains(.readMemory), let value = lookup.area.memory.peek(ticket.slot) { return value }
        do throws(CacheError) {
            if let value = try await valueOnDisk(of: lookup) { return value }
        } catch {
            if error.isCancellation { throw error }
            storage.log.warning("Cannot read the disk: \(error)", metadata: ["cache": "\(storage.name)"])
        }
        return try await deriveValue(of: lookup, ticket: ticket)
    }

    /// Returns the value on disk. Concurrent calls share one read.
    func valueOnDisk(of lookup: Lookup<Value>) async throws(CacheError) -> Value? {
        let lookup = lookup.limited(to: storage.configuration.levels)
        let (key, area) = (lookup.key, lookup.area)
        guard lookup.levels.contains(.readDisk) else { return nil }
        if area.excludes(key) {
            area.disk.format.counters.miss()
            return nil
        }
        do {
            return try await lookups.value(for: flightKey(lookup), following: lookup.priority) { _ in
                let storage = self.storage
                let ticket = storage.register.begin(lookup.slot)
                guard let found = try await storage.readEntry(key, in: area, ticket: ticket) else { return nil }
                if lookup.levels.contains(.writeMemory) {
                    storage.keepInMemory(
                        found.value, expires: found.expires, tags: found.tags, in: area, ticket: ticket)
                }
                return found.value
            }
        } catch {
            throw CacheError(error, key: key)
        }
    }

    /// Returns the expired value of a key, if it is still there.
    func staleValue(of lookup: Lookup<Value>) async -> Value? {
        let area = lookup.area
        if lookup.levels.contains(.readMemory), let stale = area.memory.staleValue(forKey: lookup.slot) {
            return stale.value
        }
        guard lookup.levels.contains(.readDisk) else { return nil }
        let ticket = storage.register.begin(lookup.slot)
        return try? await storage.readEntry(lookup.key, in: area, includingExpired: true, ticket: ticket)?.value
    }

    /// Returns a format's value made from an original whose time has passed. It is not stored.
    func staleDerivation(of lookup: Lookup<Value>) async -> Value? {
        guard lookup.levels.contains(.readDisk),
            let entry = try? await storage.readBytes(lookup.key, in: original, includingExpired: true)
        else { return nil }
        let result = SourceResult<Value>(
            value: nil, bytes: entry.bytes,
            properties: .init(
                timeToLive: .zero, validator: entry.validator, tags: entry.tags, levels: .none, storesOriginal: false),
            origin: .stale(refreshing: false), ticket: storage.register.begin(original.slot(lookup.key)))
        return try? await transformer.value(of: lookup, from: result)
    }

    // MARK: Other formats

    /// Derives a value from another stored format and stores it: from the smallest larger format of the family in
    /// memory or on disk, or from the original.
    ///
    /// - Returns: nil if there is no such entry. The caller then asks the source.
    private func deriveValue(
        of lookup: Lookup<Value>, ticket: InvalidationRegister.Ticket
    ) async throws(CacheError) -> Value? {
        let (key, area) = (lookup.key, lookup.area)
        guard area !== original else { return nil }
        let larger = area.format.transform == nil ? [] : largerAreas(than: area)
        if lookup.levels.contains(.readMemory) {
            for candidate in larger {
                guard let (value, tags) = candidate.memory.peekTagged(candidate.slot(key)) else { continue }
                let entry = EntryStorage.DecodedEntry(value: value, expires: nil, tags: tags)
                return try await deriveValue(of: lookup, from: entry, ticket: ticket)
            }
        }
        if lookup.levels.contains(.readDisk) {
            for candidate in larger {
                let other = storage.register.begin(candidate.slot(key))
                guard let entry = try? await storage.readEntry(key, in: candidate, ticket: other) else { continue }
                return try await deriveValue(of: lookup, from: entry, ticket: ticket)
            }
        }
        return try await deriveFromOriginal(lookup, ticket: ticket)
    }

    /// The formats whose entries this one's can be made from, the smallest first.
    private func largerAreas(than area: FormatArea<Value>) -> [FormatArea<Value>] {
        guard let derivation = area.format.derivation else { return [] }
        let larger = storage.formats.all.filter { $0.format.derivation.map(derivation.canDerive) ?? false }
        return larger.sorted { ($0.format.derivation?.magnitude ?? 0) < ($1.format.derivation?.magnitude ?? 0) }
    }

    private func deriveFromOriginal(
        _ lookup: Lookup<Value>, ticket: InvalidationRegister.Ticket
    ) async throws(CacheError) -> Value? {
        let (key, area) = (lookup.key, lookup.area)
        let needsBytes = area.format.transform == nil && area.format.derive != nil
        if lookup.levels.contains(.readMemory), !needsBytes,
            let (value, tags) = original.memory.peekTagged(original.slot(key))
        {
            let entry = EntryStorage.DecodedEntry(value: value, expires: nil, tags: tags)
            return try await deriveValue(of: lookup, from: entry, ticket: ticket)
        }
        guard lookup.levels.contains(.readDisk) else { return nil }
        let originalTicket = storage.register.begin(original.slot(key))
        let entry: DiskCache.Entry?
        do throws(CacheError) {
            entry = try await storage.readBytes(key, in: original)
        } catch {
            storage.log.warning("Cannot read the disk: \(error)", metadata: ["cache": "\(storage.name)"])
            return nil
        }
        guard let entry else { return nil }
        let result = SourceResult<Value>(
            value: nil, bytes: entry.bytes,
            properties: .init(
                timeToLive: storage.remainingLifetime(until: entry.expires), validator: [], tags: entry.tags,
                levels: .all, storesOriginal: true),
            origin: .stored, ticket: originalTicket)
        let value: Value
        do throws(CacheError) {
            value = try await transformer.value(of: lookup, from: result)
        } catch {
            guard case .invalidData(_, let reason) = error else { throw error }
            // The stored original is no value: the source is asked.
            await storage.discardEntry(key, in: original, ticket: originalTicket, because: reason)
            return nil
        }
        storage.metrics.countDerivation()
        await storeValue(value, of: lookup, from: result, ticket: ticket)
        return value
    }

    /// Derives a value from an entry of another format and stores it.
    private func deriveValue(
        of lookup: Lookup<Value>, from entry: EntryStorage<Value>.DecodedEntry, ticket: InvalidationRegister.Ticket
    ) async throws(CacheError) -> Value {
        let made = try await transformer.transform(entry.value, for: lookup)
        storage.metrics.countDerivation()
        let result = SourceResult(
            value: entry.value, bytes: nil,
            properties: .init(
                timeToLive: storage.remainingLifetime(until: entry.expires), validator: [], tags: entry.tags,
                levels: .all, storesOriginal: false),
            origin: .stored, ticket: ticket)
        await storeValue(made, of: lookup, from: result, ticket: ticket)
        return made
    }

    // MARK: Source

    /// Fetches the original from the source, transforms it, stores the result and returns it.
    private func produceValue(
        of lookup: Lookup<Value>, from source: AnySource<Value>, reason: LoadReason,
        ticket: InvalidationRegister.Ticket, cancellation: CancellationToken
    ) async throws -> Loaded<Value> {
        var result = try await originals.fetchOriginal(for: lookup, from: source, reason: reason)
        // The last subscriber may leave before this task can be cancelled: nothing is decoded then.
        if cancellation.isCancelled { throw CancellationError() }
        let value: Value
        do throws(CacheError) {
            value = try await transformer.value(of: lookup, from: result)
        } catch {
            // The stored original is no value: the source is asked for all of it.
            guard case .invalidData(_, let underlying) = error, !result.isNew else { throw error }
            await storage.discardEntry(lookup.key, in: original, ticket: result.ticket, because: underlying)
            result = try await originals.fetchOriginal(for: lookup, from: source, reason: .refresh)
            value = try await transformer.value(of: lookup, from: result)
        }
        if case .stale(let refreshing) = result.origin {
            storage.metrics.count(.stale)
            if refreshing { refreshInBackground(lookup, from: source) }
            return Loaded(value: value, origin: .stale)
        }
        await storeValue(value, of: lookup, from: result, ticket: ticket)
        return Loaded(value: value, origin: result.isNew ? .source : .stored)
    }

    /// Stores the result of the source: the value in its format, and the original if configured. Errors are logged.
    private func storeValue(
        _ value: Value, of lookup: Lookup<Value>, from result: SourceResult<Value>,
        ticket: InvalidationRegister.Ticket
    ) async {
        let (key, area, properties) = (lookup.key, lookup.area, result.properties)
        let levels = lookup.levels.intersection(properties.levels)
        let isOriginal = area === original
        if await storage.isPurgedElsewhere(properties.tags) { return }
        if levels.contains(.writeMemory) {
            storage.keepInMemory(
                value, expires: storage.expiry(properties.timeToLive, in: area), tags: properties.tags, in: area,
                ticket: ticket)
        }
        guard levels.contains(.writeDisk) else { return }
        if !isOriginal {
            let body = storage.encodedBody(of: value, in: area.format)
            await originals.storeBody(body, key: key, in: area, from: result, ticket: ticket)
            guard storage.configuration.storesOriginals, properties.storesOriginal else { return }
        }
        await originals.storeOriginal(of: key, from: result, isInMemory: isOriginal)
    }
}

/// Loads that leave the value undecoded.
extension ValueLoader {
    /// Fetches the original of a lookup to disk, or the entry of its format if originals are not stored.
    func prefetchToDisk(_ lookup: Lookup<Value>, from source: AnySource<Value>) async throws(CacheError) {
        let (key, area, configuration) = (lookup.key, lookup.area, storage.configuration)
        guard configuration.levels.intersection(source.levels).contains(.writeDisk) else { return }
        let lookup = lookup.limited(to: .disk)
        if await storage.isOnDisk(key, in: area) { return }
        if area !== original {
            guard configuration.storesOriginals, source.storesOriginal else {
                _ = try await loadValue(of: lookup, from: source)
                return
            }
            if await storage.isOnDisk(key, in: original) { return }
        }
        do {
            var result = try await originals.fetchOriginal(for: lookup, from: source, reason: .missing)
            if case .stale(refreshing: true) = result.origin {
                // Nobody waits here for what is stale.
                result = try await originals.fetchOriginal(for: lookup, from: source, reason: .background)
            }
            guard result.properties.levels.contains(.writeDisk) else { return }
            await originals.storeOriginal(of: key, from: result, isInMemory: true)
        } catch {
            throw CacheError(error, key: key)
        }
    }

    /// Returns the original bytes of a key from disk if they are fresh, else from the source.
    func originalBytes(
        of key: CacheKey, from source: AnySource<Value>, following priority: PrioritySource, isRefresh: Bool
    ) async throws(CacheError) -> OriginalBytes {
        let levels = storage.configuration.levels.intersection(source.levels)
        let lookup = Lookup(key: key, area: original, levels: levels, priority: priority)
        do {
            if !isRefresh, levels.contains(.readDisk), let entry = try? await storage.readBytes(key, in: original) {
                return .init(
                    bytes: entry.bytes, expires: entry.expires, levels: .all, isStale: false,
                    validator: entry.validator)
            }
            let result = try await originals.fetchOriginal(
                for: lookup, from: source, reason: isRefresh ? .refresh : .missing)
            let properties = result.properties
            if case .stale(refreshing: true) = result.origin { refreshInBackground(lookup, from: source) }
            if levels.intersection(properties.levels).contains(.writeDisk) {
                await originals.storeOriginal(of: key, from: result, isInMemory: false)
            }
            let bytes = try result.bytes ?? result.knownValue.map { try original.format.bytes(of: $0) }
            guard let bytes else { throw CacheError.notFound(key: key) }
            return .init(
                bytes: bytes, expires: storage.expiry(properties.timeToLive, in: original),
                levels: properties.levels, isStale: result.isStale, validator: properties.validator)
        } catch {
            throw CacheError(error, key: key)
        }
    }
}
