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
        let area = try area(format)
        if let value = memoryValue(area, key, levels: levels) { return value }
        guard depth > .memory else { return nil }
        return try await lookUp(key, in: area, levels: levels, following: PrioritySource(priority))
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
        let area = try area(format)
        if let value = memoryValue(area, key, levels: levels) { return value }
        let source = AnySource(timeToLive: timeToLive, tags: tags, load)
        return try await self.load(key, in: area, source, levels: levels, following: PrioritySource(priority)).value
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
        let area = try area(format)
        let key = fetcher.key
        if let value = memoryValue(area, key, levels: levels) { return value }
        return try await load(
            key, in: area, AnySource(fetcher), levels: levels, following: PrioritySource(priority)
        ).value
    }

    /// Returns the value of a file. The key is the path. See ``FileFetcher``.
    public func value(
        fromFile path: String, format: FormatName = .original, levels: CacheLevels = .all,
        priority: RequestPriority = .normal
    ) async throws(CacheError) -> Value {
        try await value(from: FileFetcher(path: path), format: format, levels: levels, priority: priority)
    }

    /// Fetches the stored value of a key from memory or disk, or derives it from another stored format. Never asks a
    /// source.
    ///
    /// - Returns: The task. A miss ends it with ``CacheError/notFound(key:)``.
    package func fetchStored(
        forKey key: CacheKey, format: FormatName = .original, priority: RequestPriority = .normal
    ) -> FetchTask<Value> {
        guard let area = formats[format] else {
            return FetchTask(key: key, outcome: .failure(.formatNotFound(format)))
        }
        let fetch = FetchTask<Value>(key: key, priority: priority)
        fetch.follow(
            Task {
                let ticket = register.begin(area.slot(key))
                do throws(CacheError) {
                    let value = try await stored(
                        key, in: area, levels: configuration.levels, ticket: ticket, priority: fetch.prioritySource)
                    fetch.finish(value.map { .success($0) } ?? .failure(.notFound(key: key)))
                } catch {
                    fetch.finish(.failure(error))
                }
            })
        return fetch
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
        let area = try area(format)
        let source = AnySource(fetcher)
        return try await reload(
            fetcher.key, in: area, source: source, levels: .all, reason: .refresh, priority: PrioritySource(priority)
        ).value
    }

    /// Loads a value again. If the original is new, removes the entries made from the old one.
    func reload(
        _ key: CacheKey, in area: FormatArea<Value>, source: AnySource<Value>, levels: CacheLevels,
        reason: LoadReason, priority: PrioritySource
    ) async throws(CacheError) -> Loaded<Value> {
        let loaded = try await load(key, in: area, source, levels: levels, reason: reason, following: priority)
        guard loaded.origin == .source else { return loaded }
        let keepsOriginal = configuration.storesOriginals && source.storesOriginal
        for other in formats.all where other !== area && !(other === original && keepsOriginal) {
            await remove(key, in: other)
        }
        return loaded
    }

    /// Asks the source again behind a value that was given although its time has passed: once at a time for a key.
    func refreshBehind(
        _ key: CacheKey, in area: FormatArea<Value>, source: AnySource<Value>, levels: CacheLevels
    ) {
        guard !levels.isDisjoint(with: .writeOnly), refreshes.withLock({ $0.insert(key).inserted }) else { return }
        Task {
            do throws(CacheError) {
                _ = try await reload(
                    key, in: area, source: source, levels: levels, reason: .background, priority: PrioritySource(.low))
            } catch {
                log.notice("Cannot refresh a value: \(error)", metadata: ["cache": "\(name)"])
            }
            refreshes.withLock { _ = $0.remove(key) }
        }
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
        let area = try area(format)
        let (key, source) = (fetcher.key, AnySource(fetcher))
        switch depth {
        case .source: return
        case .disk: try await prefetchToDisk(key, in: area, source: source, priority: PrioritySource(priority))
        case .memory:
            guard !area.memory.contains(area.slot(key)) else { return }
            _ = try await load(key, in: area, source, levels: .all, following: PrioritySource(priority))
        }
    }

    private func prefetchToDisk(
        _ key: CacheKey, in area: FormatArea<Value>, source: AnySource<Value>, priority: PrioritySource
    ) async throws(CacheError) {
        guard configuration.levels.intersection(source.levels).contains(.writeDisk) else { return }
        if await isOnDisk(key, in: area) { return }
        if area !== original {
            guard configuration.storesOriginals, source.storesOriginal else {
                _ = try await load(key, in: area, source, levels: .disk, following: priority)
                return
            }
            if await isOnDisk(key, in: original) { return }
        }
        do {
            var result = try await askOnce(source, key: key, reason: .missing, levels: .disk, priority: priority)
            if case .stale(refreshing: true) = result.origin {
                // Nobody waits here for what is stale.
                result = try await askOnce(source, key: key, reason: .background, levels: .disk, priority: priority)
            }
            guard result.levels.contains(.writeDisk) else { return }
            await storeOriginal(key, from: result, isInMemory: true)
        } catch {
            throw CacheError(error, key: key)
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
    @_spi(HTTPCacheEngine)
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
        let key = fetcher.key, source = AnySource(fetcher)
        let levels = configuration.levels.intersection(source.levels)
        do {
            if !isRefresh, levels.contains(.readDisk), let entry = try? await readBytes(key, in: original) {
                return OriginalBytes(
                    bytes: entry.bytes, expires: entry.expires, levels: .all, isStale: false,
                    validator: entry.validator)
            }
            let result = try await askOnce(
                source, key: key, reason: isRefresh ? .refresh : .missing, levels: levels, priority: priority)
            if case .stale(refreshing: true) = result.origin {
                refreshBehind(key, in: original, source: source, levels: levels)
            }
            if levels.intersection(result.levels).contains(.writeDisk) {
                await storeOriginal(key, from: result, isInMemory: false)
            }
            let format = original.format
            let bytes = try result.bytes ?? result.knownValue.map { try format.bytes(of: $0) }
            guard let bytes else { throw CacheError.notFound(key: key) }
            return OriginalBytes(
                bytes: bytes, expires: expiry(result.timeToLive, in: original), levels: result.levels,
                isStale: result.isStale, validator: result.validator)
        } catch {
            throw CacheError(error, key: key)
        }
    }
}
