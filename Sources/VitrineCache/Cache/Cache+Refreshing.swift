public import VitrineCore

extension Cache {
    /// Loads a key's value anew, whatever is stored, and puts it in the place of the old one, which stays if that fails
    /// (R81).
    ///
    /// The other formats' entries of the key, made from the old original, are removed.
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
        let value = try await load(
            key, in: area, source, levels: .all, isRefresh: true, following: PrioritySource(priority))
        let keepsOriginal = configuration.storesOriginals && source.storesOriginal
        for other in formats.all where other !== area && !(other === original && keepsOriginal) {
            await remove(key, in: other)
        }
        return value
    }
}
