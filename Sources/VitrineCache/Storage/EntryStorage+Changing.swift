import VitrineCore

/// Changes of entries on both levels.
extension EntryStorage {
    /// A value that is put under a key of a format.
    struct Insertion: Sendable {
        let value: Value
        let key: CacheKey
        let area: FormatArea<Value>
        /// How long it is fresh; nil for the time of the format or the cache.
        let timeToLive: Duration?
        /// The levels to write.
        let levels: CacheLevels
    }

    /// The tags of a value that is set, and the purges before that.
    struct TagState: Sendable {
        let tags: EntryTags
        /// The number of purges in this process.
        let purges: Int
        /// Why the last purge of the directory is unknown. Without it, an entry with tags would count as purged.
        let failure: CacheError?
    }

    /// Sets a value in memory alone, or removes it from memory.
    func setMemory(_ value: Value?, forKey key: CacheKey, in area: FormatArea<Value>) {
        let slot = area.slot(key)
        guard let value, configuration.levels.contains(.writeMemory) else {
            _ = register.change(slot) { area.memory.remove(slot) }
            return
        }
        let incoming = incomingEntry(value, slot, expires: expiry(nil, in: area), in: area)
        area.memory.finish(register.change(slot) { area.memory.insert(incoming) })
    }

    /// Returns the tags of a value that is going to be put.
    func tagState(of tags: [String], levels: CacheLevels) async throws(CacheError) -> TagState {
        guard !tags.isEmpty else { return TagState(tags: .none, purges: 0, failure: nil) }
        let purges = register.purgeCount
        do throws(CacheError) {
            let mark = levels.contains(.writeDisk) ? try await lastPurge() : nil
            return TagState(tags: try EntryTags(tags, began: mark), purges: purges, failure: nil)
        } catch {
            return TagState(tags: try EntryTags(tags, began: nil), purges: purges, failure: error)
        }
    }

    /// Puts a value into both levels. Suspends while the queue of the disk is full.
    func put(_ insertion: Insertion, body: Body, state: TagState) async throws(CacheError) {
        let (key, area, tags) = (insertion.key, insertion.area, state.tags)
        if await isPurgedElsewhere(tags) { return await removeEntry(key, in: area) }
        let slot = area.slot(key)
        let keep = memoryChange(of: insertion, tags: tags)
        guard insertion.levels.intersection(configuration.levels).contains(.writeDisk) else {
            let change: MemoryChange? = register.change(slot, tags: tags, since: state.purges) { $0 ? nil : keep() }
            guard let change else { return await removeEntry(key, in: area) }
            return area.memory.finish(change)
        }
        let operation: Operation
        do throws(CacheError) {
            if let failure = state.failure { throw failure }
            operation = try area.disk.engine.put(
                body, in: area.disk.format, timeToLive: lifetime(insertion.timeToLive, in: area), validator: [],
                tags: tags)
        } catch {
            let change: MemoryChange? = register.change(slot, tags: tags, since: state.purges) { $0 ? nil : keep() }
            if let change { area.memory.finish(change) }
            throw error
        }
        var isPurged = false
        await area.pendingWrites.send(operation, forKey: key) { send in
            let change = register.change(slot, tags: tags, since: state.purges) { purged -> MemoryChange? in
                isPurged = purged
                return !purged && send() ? keep() : nil
            }
            if let change { area.memory.finish(change) }
            return isPurged || change != nil
        }
        if isPurged { await removeEntry(key, in: area) }
    }

    /// Puts a value without suspending. A write that does not fit into the queue of the disk waits in `pendingWrites`.
    func putWithoutSuspending(
        _ insertion: Insertion, encoding: (@Sendable (Value) throws -> [UInt8])? = nil
    ) throws(CacheError) {
        let (value, area) = (insertion.value, insertion.area)
        let keep = memoryChange(of: insertion, tags: .none)
        let writesDisk = insertion.levels.intersection(configuration.levels).contains(.writeDisk)
        let put: Result<Operation, CacheError>? = writesDisk ? Result { () throws(CacheError) in
            try area.disk.engine.put(
                encodedBody(of: value, in: area.format, encoding: encoding), in: area.disk.format,
                timeToLive: lifetime(insertion.timeToLive, in: area), validator: [], tags: .none)
        } : nil
        let (change, _) = register.change(area.slot(insertion.key)) {
            () -> (MemoryChange<MemoryKey, Value>, Operation?) in
            guard case .success(let operation) = put else { return (keep(), nil) }
            return (keep(), area.pendingWrites.send(operation, forKey: insertion.key))
        }
        area.memory.finish(change)
        if case .failure(let error) = put { throw error }
    }

    /// Returns a closure that puts a value into memory, or removes the old value if memory must not be written. The
    /// closure runs no code of the user, so that it can be called under locks.
    private func memoryChange(
        of insertion: Insertion, tags: EntryTags
    ) -> @Sendable () -> MemoryChange<MemoryKey, Value> {
        let area = insertion.area, slot = area.slot(insertion.key)
        guard insertion.levels.intersection(configuration.levels).contains(.writeMemory) else {
            return {
                var change = MemoryChange<MemoryKey, Value>()
                if let value = area.memory.remove(slot) { change.removed.add(MemoryEntry(key: slot, value: value)) }
                return change
            }
        }
        let incoming = incomingEntry(
            insertion.value, slot, expires: expiry(insertion.timeToLive, in: area), tags: tags, in: area)
        return { area.memory.insert(incoming) }
    }

    // MARK: Single entries

    /// Removes a key's entry of a format from both levels.
    func removeEntry(_ key: CacheKey, in area: FormatArea<Value>) async {
        let slot = area.slot(key)
        await area.pendingWrites.send(.remove, forKey: key) { send in
            let (_, isSent) = register.change(slot) { (area.memory.remove(slot), send()) }
            return isSent
        }
    }

    /// Removes a key's entry of a format without suspending.
    func removeEntryWithoutSuspending(_ key: CacheKey, in area: FormatArea<Value>) {
        let slot = area.slot(key)
        _ = register.change(slot) { (area.memory.remove(slot), area.pendingWrites.send(.remove, forKey: key)) }
    }

    /// Removes a key's entries of all registered formats.
    func removeEntries(forKey key: CacheKey) async {
        for area in formats.all { await removeEntry(key, in: area) }
    }

    /// Lets the time of a key's entry pass now.
    func expireEntry(_ key: CacheKey, in area: FormatArea<Value>) async {
        let slot = area.slot(key)
        let expiring = area.disk.engine.expiring()
        await area.pendingWrites.send(expiring, forKey: key) { send in
            register.change(slot) {
                area.memory.expire(slot)
                return send()
            }
        }
    }

    // MARK: Many entries

    /// Removes all entries, in order with all other changes. Later reads do not see the entries.
    ///
    /// - Parameter completion: Called when the entries are gone from disk, on any thread.
    func removeAllEntries(
        levels: CacheLevels, completion: @escaping @Sendable (Result<Void, CacheError>) -> Void
    ) {
        reportMemoryHits()
        let areas = formats.all, clearsMemory = levels.contains(.writeMemory)
        guard levels.contains(.writeDisk) else {
            if clearsMemory { _ = register.changeAll { takeMemory(of: areas) } }
            return completion(.success(()))
        }
        var failure: CacheError?
        var dropped: [EntryKey: Operation] = [:]
        // In one step, so that a change is either before or after it on both levels. Loads that run now do not store.
        let removed = register.changeAll { () -> [RemovedEntries<MemoryKey, Value>] in
            do throws(CacheError) {
                try disk.removeAll(dropping: &dropped, completion: completion)
            } catch {
                failure = error
            }
            return clearsMemory ? takeMemory(of: areas) : []
        }
        // Released outside the lock.
        withExtendedLifetime((removed, dropped)) {}
        if let failure { completion(.failure(failure)) }
    }

    /// Removes all entries of a format.
    func removeEntries(of area: FormatArea<Value>, levels: CacheLevels) async throws(CacheError) {
        let clearsMemory = levels.contains(.writeMemory)
        if clearsMemory { _ = register.changeAll(format: area.id) { area.takeMemory() } }
        guard levels.contains(.writeDisk) else { return }
        area.pendingWrites.drop()
        await area.pendingWrites.waitUntilIdle()
        // Loads that run now do not store, neither those that read the disk before it is emptied.
        register.changeAll(format: area.id) {}
        defer {
            _ = register.changeAll(format: area.id) { clearsMemory ? area.takeMemory() : nil }
        }
        try await area.disk.removeAll()
    }

    /// Removes all entries with a tag, and returns how many were on disk, or in memory if the disk is left out.
    func removeEntries(withTag hash: UInt64, levels: CacheLevels) async throws(CacheError) -> Int {
        let areas = formats.all, clearsMemory = levels.contains(.writeMemory)
        let removed = purgeMemory(of: clearsMemory ? areas : [], tag: hash)
        guard levels.contains(.writeDisk) else { return removed }
        for area in areas { await area.pendingWrites.waitUntilIdle() }
        // Once more after the disk, as a lookup that ran meanwhile may have read an entry.
        defer { _ = purgeMemory(of: clearsMemory ? areas : [], tag: hash) }
        return try await onDisk { (disk) throws(CacheError) in try disk.removeAll(tag: hash) }
    }

    /// Removes a tag's entries from the memory of formats, and returns how many there were.
    private func purgeMemory(of areas: [FormatArea<Value>], tag: UInt64) -> Int {
        let memories = areas.isEmpty ? [] : [sharedMemory] + areas.filter { !$0.sharesMemory }.map(\.memory)
        // Released outside the lock.
        let removed = register.purge(tag) { memories.map { $0.take(tag: tag) } }
        return removed.reduce(0) { $0 + $1.count }
    }

    /// Evicts all values from memory.
    func evictMemory() {
        reportMemoryHits()
        let areas = formats.all
        _ = register.changeAll {
            [sharedMemory.evictAll()] + areas.filter { !$0.sharesMemory }.map { $0.memory.evictAll() }
        }
    }

    /// Empties the memory of formats, and returns its entries so that they are released outside all locks.
    private func takeMemory(of areas: [FormatArea<Value>]) -> [RemovedEntries<MemoryKey, Value>] {
        [sharedMemory.takeAll()] + areas.filter { !$0.sharesMemory }.map { $0.memory.takeAll() }
    }
}
