public import VitrineCore

extension Cache {
    /// Loads a key's value anew, whatever is stored, and puts it in the place of the old one, which stays if that fails
    /// (R81).
    ///
    /// The other formats' entries of the key, made from the old original, are removed, unless the source says that it
    /// is still right.
    ///
    /// - Returns: The new value, as stored.
    /// - Throws: As ``value(forKey:format:levels:priority:timeToLive:orLoad:)``; the old value is then still there.
    @discardableResult
    public func refresh(
        _ key: CacheKey, format: FormatName = .original, priority: Priority = .normal, timeToLive: Duration? = nil,
        orLoad load: @escaping @Sendable () async throws -> Value
    ) async throws(CacheError) -> Value {
        try await refresh(key, format: format, priority: priority, AnySource(timeToLive: timeToLive, load))
    }

    /// The same with a fetcher, which is told what is stored if it revalidates.
    @discardableResult
    public func refresh(
        from fetcher: some Fetcher<Value>, format: FormatName = .original, priority: Priority = .normal
    ) async throws(CacheError) -> Value {
        try await refresh(fetcher.key, format: format, priority: priority, AnySource(fetcher))
    }

    private func refresh(
        _ key: CacheKey, format: FormatName, priority: Priority, _ source: AnySource<Value>
    ) async throws(CacheError) -> Value {
        let area = try area(format)
        return try await reload(key, in: area, source, .all, .refresh, PrioritySource(priority)).value
    }

    /// Loads anew, and removes what was made from the old original if there is a new one.
    func reload(
        _ key: CacheKey, in area: FormatArea<Value>, _ source: AnySource<Value>, _ levels: CacheLevels,
        _ reason: LoadReason, _ priority: PrioritySource
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
        _ key: CacheKey, in area: FormatArea<Value>, _ source: AnySource<Value>, _ levels: CacheLevels
    ) {
        guard !levels.isDisjoint(with: .writeOnly), refreshes.withLock({ $0.insert(key).inserted }) else { return }
        Task {
            do throws(CacheError) {
                _ = try await reload(key, in: area, source, levels, .background, PrioritySource(.low))
            } catch {
                log.notice("A value was not refreshed: \(error)", metadata: ["cache": "\(name)"])
            }
            refreshes.withLock { _ = $0.remove(key) }
        }
    }
}
