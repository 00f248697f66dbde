public import VitrineCore

extension ValueCache {
    // MARK: Loading

    /// Returns the value of a key in memory or on disk.
    ///
    /// - Parameters:
    ///   - key: The key of the value.
    ///   - format: The format of the value.
    ///   - depth: How far to look. `.memory` returns without suspending. `.source` is the same as `.disk`, as there is
    ///     no source.
    ///   - levels: The levels to read and write. Without `.writeMemory`, a value from disk does not enter memory.
    ///   - priority: The priority of the lookup.
    /// - Returns: nil if there is no value, or if it has expired or is damaged.
    /// - Throws: ``CacheError/formatNotFound(_:)``, or the error of the disk.
    public func value(
        forKey key: CacheKey, format: FormatName = .original, depth: CacheLevel = .disk, levels: CacheLevels = .all,
        priority: RequestPriority = .normal
    ) async throws(CacheError) -> Value? {
        if let value = try valueInMemory(forKey: key, format: format, levels: levels) { return value }
        guard depth > .memory else { return nil }
        return try await valueOnDisk(forKey: key, format: format, levels: levels, following: PrioritySource(priority))
    }

    /// Returns the value of a key from memory or disk. If neither level has it, `load` makes the original value, which
    /// is transformed and stored.
    ///
    /// Concurrent calls for the same key and format share one load, which runs the closure of the first call. The load
    /// is a task of its own and is cancelled with the last caller.
    ///
    /// ```swift
    /// let report = try await cache.value(forKey: "bremen", timeToLive: .seconds(600)) {
    ///     try await weather.report("Bremen")
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - key: The key of the value.
    ///   - format: The format of the value.
    ///   - levels: The levels to read and write.
    ///   - priority: The priority of the load.
    ///   - timeToLive: How long a loaded value is fresh. Default nil: the time of the format or the cache.
    ///   - tags: The tags of a loaded value: see ``set(_:forKey:format:timeToLive:tags:levels:)``.
    ///   - load: Makes the original value. It must not block; run blocking work on `BlockingExecutor`.
    /// - Throws: ``CacheError/source(key:underlying:)`` with the error of `load`,
    ///   ``CacheError/transform(key:format:underlying:)``, ``CacheError/formatNotFound(_:)``,
    ///   ``CacheError/invalidTags(count:longest:)`` or ``CacheError/cancelled(key:)``. An error of the disk is logged
    ///   and does not fail the load.
    public func value(
        forKey key: CacheKey, format: FormatName = .original, levels: CacheLevels = .all, priority: RequestPriority = .normal,
        timeToLive: Duration? = nil, tags: [String] = [], orLoad load: @escaping @Sendable () async throws -> Value
    ) async throws(CacheError) -> Value {
        let area = try storage.area(format)
        if let value = memoryValue(area, key, levels: levels) { return value }
        let source = AnySource(timeToLive: timeToLive, tags: tags, load)
        let lookup = Lookup(key: key, area: area, levels: levels, priority: PrioritySource(priority))
        return try await loader.loadValue(of: lookup, from: source).value
    }

    /// Returns the value of a fetcher's key from memory or disk, or fetches and stores it.
    ///
    /// Parameters and errors are those of ``value(forKey:format:levels:priority:timeToLive:tags:orLoad:)``. Original
    /// bytes are stored unchanged. For another format than the original, they are also stored if
    /// ``CacheConfiguration/storesOriginals`` and ``Fetcher/storesOriginal`` are true. Other formats can then be made
    /// without fetching again.
    public func value(
        from fetcher: some Fetcher<Value>, format: FormatName = .original, levels: CacheLevels = .all,
        priority: RequestPriority = .normal
    ) async throws(CacheError) -> Value {
        if let value = try valueInMemory(forKey: fetcher.key, format: format, levels: levels) { return value }
        return try await loadedValue(
            from: fetcher, format: format, levels: levels, following: PrioritySource(priority))
    }

    /// Returns the value of a file. The key is the path. See ``FileFetcher``.
    public func value(
        fromFile path: String, format: FormatName = .original, levels: CacheLevels = .all,
        priority: RequestPriority = .normal
    ) async throws(CacheError) -> Value {
        try await value(from: FileFetcher(path: path), format: format, levels: levels, priority: priority)
    }

    // MARK: Steps of a request

    /// Returns the value in memory, as a request with these levels finds it.
    package func valueInMemory(
        forKey key: CacheKey, format: FormatName, levels: CacheLevels
    ) throws(CacheError) -> Value? {
        memoryValue(try storage.area(format), key, levels: levels)
    }

    /// Returns the value on disk, for a request that has looked in memory. The priority may change meanwhile.
    package func valueOnDisk(
        forKey key: CacheKey, format: FormatName, levels: CacheLevels, following priority: PrioritySource
    ) async throws(CacheError) -> Value? {
        try await loader.valueOnDisk(
            of: Lookup(key: key, area: try storage.area(format), levels: levels, priority: priority))
    }

    /// Returns the stored value, or one derived from another stored format. Never asks a source.
    package func storedValue(
        forKey key: CacheKey, format: FormatName, following priority: PrioritySource
    ) async throws(CacheError) -> Value? {
        try await loader.storedValue(
            of: Lookup(key: key, area: try storage.area(format), levels: configuration.levels, priority: priority))
    }

    /// Returns the value of a fetcher's key, for a request that has looked in memory. The priority may change
    /// meanwhile.
    package func loadedValue(
        from fetcher: some Fetcher<Value>, format: FormatName, levels: CacheLevels, following priority: PrioritySource
    ) async throws(CacheError) -> Value {
        let lookup = Lookup(key: fetcher.key, area: try storage.area(format), levels: levels, priority: priority)
        return try await loader.loadValue(of: lookup, from: AnySource(fetcher)).value
    }

    // MARK: Refreshing

    /// Fetches the value of a fetcher's key again and replaces the stored one. If fetching fails, the stored value
    /// stays.
    ///
    /// Entries of other formats, which were made from the old original, are removed, unless the fetcher reports that
    /// the original is unchanged. A fetcher that revalidates receives ``FetchContext/storedValidator``.
    ///
    /// - Returns: The new value, as stored.
    /// - Throws: The errors of ``value(from:format:levels:priority:)``.
    @discardableResult
    public func refresh(
        from fetcher: some Fetcher<Value>, format: FormatName = .original, priority: RequestPriority = .normal
    ) async throws(CacheError) -> Value {
        let area = try storage.area(format)
        let lookup = Lookup(key: fetcher.key, area: area, levels: .all, priority: PrioritySource(priority))
        return try await loader.reloadValue(of: lookup, from: AnySource(fetcher), reason: .refresh).value
    }

    /// Fetches a value for later use.
    ///
    /// ```swift
    /// try await cache.prefetch(from: fetcher, format: "small", to: .disk)
    /// ```
    ///
    /// Concurrent prefetches and loads of the key share one fetch. A value that is already stored is not fetched, and
    /// this does not count as an access.
    ///
    /// - Parameters:
    ///   - fetcher: The source of the value.
    ///   - format: The format that will be requested.
    ///   - depth: The level to fill. `.disk` stores the bytes of the original without decoding them, or the entry of
    ///     the format if originals are not stored. `.memory` makes the value and stores it in both levels. `.source`
    ///     does nothing.
    ///   - priority: The priority of the fetch.
    /// - Throws: The errors of ``value(from:format:levels:priority:)``. Bytes that cannot be decoded are found by the
    ///   next load, which removes them and fetches again.
    public func prefetch(
        from fetcher: some Fetcher<Value>, format: FormatName = .original, to depth: CacheLevel = .disk,
        priority: RequestPriority = .low
    ) async throws(CacheError) {
        let area = try storage.area(format)
        let lookup = Lookup(key: fetcher.key, area: area, levels: .all, priority: PrioritySource(priority))
        switch depth {
        case .source: return
        case .disk: try await loader.prefetchToDisk(lookup, from: AnySource(fetcher))
        case .memory:
            guard !area.memory.contains(lookup.slot) else { return }
            _ = try await loader.loadValue(of: lookup, from: AnySource(fetcher))
        }
    }

    /// Returns the original bytes of a fetcher's key, from disk if they are fresh, else from the fetcher. Does not
    /// decode them, and leaves memory alone.
    ///
    /// Concurrent calls share one fetch, also with loads of the key's values. New bytes are stored on disk as far as
    /// the fetcher and the configuration allow. Use it where results are made from the bytes that have a cache of their
    /// own, and are to expire with the bytes.
    ///
    /// - Parameters:
    ///   - fetcher: The source of the bytes.
    ///   - priority: The priority.
    /// - Throws: ``CacheError/source(key:underlying:)`` with the fetcher's error, ``CacheError/cancelled(key:)``.
    public func originalBytes(
        from fetcher: some Fetcher<Value>, priority: RequestPriority = .normal
    ) async throws(CacheError) -> OriginalBytes {
        try await originalBytes(from: fetcher, following: PrioritySource(priority))
    }

    /// Returns the size of the original bytes of a key on disk, expired or not; nil if there are none.
    public func storedSize(forKey key: CacheKey) async -> ByteCount? {
        ((try? await original.disk.info(forKey: key)) ?? nil)?.size
    }

    /// ``originalBytes(from:priority:)`` with a priority that changes.
    ///
    /// - Parameters:
    ///   - fetcher: The source of the bytes.
    ///   - priority: The priority.
    ///   - isRefresh: Whether the fetcher is asked even if the stored bytes are fresh.
    package func originalBytes(
        from fetcher: some Fetcher<Value>, following priority: PrioritySource, isRefresh: Bool = false
    ) async throws(CacheError) -> OriginalBytes {
        try await loader.originalBytes(
            of: fetcher.key, from: AnySource(fetcher), following: priority, isRefresh: isRefresh)
    }

    /// Returns the original on disk for a thread that may block, and keeps it in memory as far as the levels allow; nil
    /// if there is none that can be decoded.
    package func valueOnDiskBlocking(forKey key: CacheKey, levels: CacheLevels = .all) -> Value? {
        storage.originalOnDisk(forKey: key, levels: levels)
    }

    /// Returns the result of a body for the bytes of an entry on disk, if the system has all of them in memory. It
    /// neither waits for the disk nor suspends, so that event loops can call it.
    ///
    /// - Parameters:
    ///   - key: The key of the value, in the original format.
    ///   - body: Given the bytes of the entry. Returns the result and the value for the memory level; nil for bytes
    ///     that are of no use.
    /// - Returns: nil does not mean that there is no entry. The asynchronous calls find that out.
    public func withResidentBytes<Result>(
        forKey key: CacheKey, _ body: (_ bytes: [UInt8]) -> (result: Result, value: Value?)?
    ) -> Result? {
        storage.withResidentBytes(forKey: key, body)
    }
}

/// The bytes of an original, and how long they may be used.
public struct OriginalBytes: Sendable {
    /// The bytes as the source gave them.
    public let bytes: [UInt8]
    /// When they stop being fresh, since 1970; nil for never.
    public let expires: Duration?
    /// The levels on which results made from them may be kept.
    public let levels: CacheLevels
    /// Whether they are used although they are no longer fresh. Results made from them are not to be kept.
    public let isStale: Bool
    /// The fetcher's validator of the bytes; empty if there is none.
    public let validator: [UInt8]
}
