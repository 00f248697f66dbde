import Logging
public import VitrineCore

extension ValueCache {
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
    ///   - tags: Up to 16 tags for ``removeAll(tag:levels:)``, each of up to 256 UTF-8 bytes. They replace those of an
    ///     earlier entry. Entries of other formats that are made from the value have them as well.
    ///   - levels: The levels to write.
    /// - Returns: The stored value. It is removed again at once if one of its tags is removed during the call.
    /// - Throws: ``CacheError/formatNotFound(_:)``, ``CacheError/transform(key:format:underlying:)``,
    ///   ``CacheError/invalidTags(count:longest:)``, or the error of the disk. After an error of the disk, the value is
    ///   in memory.
    @discardableResult
    public func set(
        _ value: Value, forKey key: CacheKey, format: FormatName = .original, timeToLive: Duration? = nil,
        tags: [String] = [], levels: CacheLevels = .all
    ) async throws(CacheError) -> Value {
        let area = try area(format)
        let began = try await begin(tags, levels)
        let stored = try await applied(area, to: value, key: key, priority: PrioritySource())
        try await put(
            stored, body: encoded(stored, area.format), key: key, in: area, timeToLive: timeToLive, began: began,
            levels: levels)
        return stored
    }

    /// Stores the bytes of an original unchanged, and the decoded value in memory.
    ///
    /// - Returns: The decoded value.
    /// - Throws: ``CacheError/invalidData(key:underlying:)`` if the bytes cannot be decoded, or
    ///   ``CacheError/invalidTags(count:longest:)``. Nothing changes then.
    @discardableResult
    public func set(
        bytes: [UInt8], forKey key: CacheKey, timeToLive: Duration? = nil, tags: [String] = [],
        levels: CacheLevels = .all
    ) async throws(CacheError) -> Value {
        let format = original.format
        let began = try await begin(tags, levels)
        let value: Value
        do {
            value = try await configuration.executor.run { try format.value(of: bytes) }
        } catch {
            throw .invalidData(key: key, underlying: error)
        }
        try await put(
            value, body: .ready(bytes), key: key, in: original, timeToLive: timeToLive, began: began, levels: levels)
        return value
    }

    /// The tags of a value that is set, the number of purges in this process before that, and the failure of the disk.
    /// Without the last purge of the directory, an entry with tags would count as purged.
    private typealias Beginning = (tags: EntryTags, purges: Int, failure: CacheError?)

    private func begin(_ tags: [String], _ levels: CacheLevels) async throws(CacheError) -> Beginning {
        guard !tags.isEmpty else { return (.none, 0, nil) }
        let purges = register.purgeCount
        do throws(CacheError) {
            let mark = levels.contains(.writeDisk) ? try await lastPurge() : nil
            return (try EntryTags(tags, began: mark), purges, nil)
        } catch {
            return (try EntryTags(tags, began: nil), purges, error)
        }
    }

    private func put(
        _ value: Value, body: Body, key: CacheKey, in area: FormatArea<Value>, timeToLive: Duration?,
        began: Beginning, levels: CacheLevels
    ) async throws(CacheError) {
        let levels = levels.intersection(configuration.levels), tags = began.tags
        if await isPurgedElsewhere(tags) { return await remove(key, in: area) }
        let slot = area.slot(key)
        let keep = keeping(
            value, slot: slot, expires: expiry(timeToLive, in: area), tags: tags, in: area, levels: levels)
        guard levels.contains(.writeDisk) else {
            let change: MemoryChange? = register.change(slot, tags: tags, since: began.purges) { $0 ? nil : keep() }
            guard let change else { return await remove(key, in: area) }
            return area.memory.finish(change)
        }
        let operation: Operation
        do throws(CacheError) {
            if let failure = began.failure { throw failure }
            operation = try area.disk.engine.put(
                body, in: area.disk.format,
                timeToLive: timeToLive ?? area.format.timeToLive ?? configuration.timeToLive, validator: [],
                tags: tags)
        } catch {
            let change: MemoryChange? = register.change(slot, tags: tags, since: began.purges) { $0 ? nil : keep() }
            if let change { area.memory.finish(change) }
            throw error
        }
        var isPurged = false
        await area.pendingWrites.send(operation, forKey: key) { send in
            let change = register.change(slot, tags: tags, since: began.purges) { purged -> MemoryChange? in
                isPurged = purged
                return !purged && send() ? keep() : nil
            }
            if let change { area.memory.finish(change) }
            return isPurged || change != nil
        }
        if isPurged { await remove(key, in: area) }
    }

    /// Returns a closure that puts a value into memory, or removes the old value if memory must not be written. The
    /// closure runs no code of the user.
    func keeping(
        _ value: Value, slot: MemoryKey, expires: Duration?, tags: EntryTags = .none, in area: FormatArea<Value>,
        levels: CacheLevels
    ) -> @Sendable () -> MemoryChange<MemoryKey, Value> {
        guard levels.contains(.writeMemory) else {
            return {
                var change = MemoryChange<MemoryKey, Value>()
                if let value = area.memory.remove(slot) { change.removed.add(MemoryEntry(key: slot, value: value)) }
                return change
            }
        }
        let incoming = incoming(value, slot, expires: expires, tags: tags, in: area)
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

extension ValueCache {
    /// Removes all entries, including those of formats that are not registered in this process. The cache can be used
    /// meanwhile. Loads that began earlier do not store their values.
    ///
    /// Values do not come back by being alive elsewhere; see ``clearMemory()`` for giving up memory only.
    ///
    /// - Parameter levels: The levels to clear, by their write bits. `.memory` alone takes effect immediately.
    /// - Throws: The error of the disk. Memory is cleared in any case.
    public func removeAll(levels: CacheLevels = .all) async throws(CacheError) {
        let outcome = Promise<Result<Void, CacheError>>()
        beginRemovingAll(levels) { outcome.fulfill($0) }
        try await outcome.value().get()
    }

    /// Removes all entries, in order with all other changes. Later reads do not see the entries.
    ///
    /// - Parameter completion: Called when the entries are gone from disk, on any thread.
    func beginRemovingAll(
        _ levels: CacheLevels, completion: @escaping @Sendable (Result<Void, CacheError>) -> Void
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

    /// Removes all entries of a format. An unknown format is ignored.
    public func removeAll(format: FormatName, levels: CacheLevels = .all) async throws(CacheError) {
        guard let area = formats[format] else { return }
        if levels.contains(.writeMemory) { _ = register.changeAll(format: area.id) { area.takeMemory() } }
        guard levels.contains(.writeDisk) else { return }
        try await clearDisk(area, clearsMemory: levels.contains(.writeMemory))
    }

    /// Removes all entries with a tag, in all formats, including those that are not registered in this process.
    ///
    /// ```swift
    /// try await cache.set("Lake Lucerne", forKey: key, tags: ["source:lake.jpg"])
    /// try await cache.removeAll(tag: "source:lake.jpg")
    /// ```
    ///
    /// Takes time in proportion to the number of removed entries. Nothing stored by work that began before appears
    /// afterwards: loads that run now, in this process or in others with the same directory, do not store values with
    /// the tag. On disk, all of the entries are gone or none, even if the process is killed. The memory levels of other
    /// processes keep theirs, as with ``remove(_:format:)``.
    ///
    /// - Parameters:
    ///   - tag: A tag of ``set(_:forKey:format:timeToLive:tags:levels:)`` or of a ``FetchResult``.
    ///   - levels: The levels to clear, by their write bits.
    /// - Returns: The number of entries removed from disk, or from memory if `levels` leaves out the disk.
    /// - Throws: ``CacheError/invalidTags(count:longest:)`` if no entry can have the tag, or the error of the disk.
    ///   Memory is cleared in any case.
    @discardableResult
    public func removeAll(tag: String, levels: CacheLevels = .all) async throws(CacheError) -> Int {
        let hash = try EntryTags.hash(of: tag)
        let areas = formats.all, clearsMemory = levels.contains(.writeMemory)
        let removed = purge(hash, of: clearsMemory ? areas : [])
        guard levels.contains(.writeDisk) else { return removed }
        for area in areas { await area.pendingWrites.waitUntilIdle() }
        // Once more after the disk, as a lookup that ran meanwhile may have read an entry.
        defer { _ = purge(hash, of: clearsMemory ? areas : []) }
        return try await onDisk { (disk) throws(CacheError) in try disk.removeAll(tag: hash) }
    }

    /// Removes a tag's entries from the memory of formats, and returns how many there were.
    private func purge(_ tag: UInt64, of areas: [FormatArea<Value>]) -> Int {
        let memories = areas.isEmpty ? [] : [sharedMemory] + areas.filter { !$0.sharesMemory }.map(\.memory)
        // Released outside the lock.
        let removed = register.purge(tag) { memories.map { $0.take(tag: tag) } }
        return removed.reduce(0) { $0 + $1.count }
    }

    /// Evicts all values from memory before the call returns. Entries on disk stay.
    ///
    /// As with any eviction, values that are alive elsewhere still count as memory hits
    /// (`CacheableValue.weakReference`). Use ``removeAll(levels:)`` with `.memory` to forget these, too.
    public func clearMemory() {
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
