public import VitrineCore

extension Cache {
    /// Brings a fetcher's value nearer, for later: nothing is given.
    ///
    /// ```swift
    /// try await cache.prefetch(from: fetcher, format: "small", to: .disk)
    /// ```
    ///
    /// Joins what is loading already, and is joined by who asks for the value meanwhile (R80). What is there already
    /// is not asked for, and does not count as used.
    ///
    /// - Parameters:
    ///   - fetcher: What produces the value.
    ///   - format: The format it will be wanted in.
    ///   - depth: How near. `.disk` stores the original's bytes without decoding them, from which the format is made
    ///     when it is wanted; where originals are not kept, the format's own entry. `.memory` makes the value and keeps
    ///     it in both levels. `.source` has nothing to do.
    ///   - priority: How urgent it is.
    /// - Throws: As ``value(from:format:levels:priority:)``. Bytes that are no value show when they are wanted: they
    ///   are then removed, and the source is asked again (R50).
    public func prefetch(
        from fetcher: some Fetcher<Value>, format: FormatName = .original, to depth: CacheLevel = .disk,
        priority: Priority = .low
    ) async throws(CacheError) {
        let area = try area(format)
        let (key, source) = (fetcher.key, AnySource(fetcher))
        switch depth {
        case .source: return
        case .disk: try await prefetchToDisk(key, in: area, source, PrioritySource(priority))
        case .memory:
            guard !area.memory.contains(area.slot(key)) else { return }
            _ = try await load(key, in: area, source, levels: .all, following: PrioritySource(priority))
        }
    }

    private func prefetchToDisk(
        _ key: CacheKey, in area: FormatArea<Value>, _ source: AnySource<Value>, _ priority: PrioritySource
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
            var result = try await askOnce(source, key, .missing, .disk, priority)
            if case .stale(refreshing: true) = result.origin {
                // Nobody waits here for what is stale.
                result = try await askOnce(source, key, .background, .disk, priority)
            }
            guard result.levels.contains(.writeDisk) else { return }
            await storeOriginal(key, from: result, isInMemory: true)
        } catch {
            throw CacheError(error, key: key)
        }
    }
}
