public import VitrineCore

/// What is stored of a value at once, however old, then the newer one, if there is one. See
/// ``Cache/updates(from:format:levels:priority:revalidatingFresh:)``.
///
/// Works as it is read, and gives two values at most. Every iterator begins anew.
public struct ValueUpdates<Value: CacheableValue>: AsyncSequence, Sendable {
    public typealias Element = Value
    public typealias Failure = CacheError

    let cache: Cache<Value>
    let key: CacheKey
    let format: FormatName
    let source: AnySource<Value>
    let levels: CacheLevels
    let priority: Priority
    let revalidatesFresh: Bool

    public struct AsyncIterator: AsyncIteratorProtocol {
        private enum Phase { case start, revalidating, end }

        private let updates: ValueUpdates
        private var phase = Phase.start

        fileprivate init(_ updates: ValueUpdates) { self.updates = updates }

        /// The stored value, or the newer one; nil at the end.
        ///
        /// - Throws: Why there is no newer value, once; what was given before is then still what there is.
        public mutating func next() async throws(CacheError) -> Value? {
            switch phase {
            case .start:
                // What fails now is not to be tried again.
                phase = .end
                let (value, isFinal) = try await updates.first()
                if !isFinal { phase = .revalidating }
                return value
            case .revalidating:
                phase = .end
                return try await updates.second()
            case .end: return nil
            }
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// What there is, and whether it is final.
    private func first() async throws(CacheError) -> (Value, isFinal: Bool) {
        let area = try cache.area(format)
        if let value = cache.memoryValue(area, key, levels: levels) { return (value, !revalidatesFresh) }
        let priority = PrioritySource(priority)
        let levels = levels.intersection(cache.configuration.levels).intersection(source.levels)
        let ticket = cache.register.begin(area.slot(key))
        if let value = try await cache.stored(key, in: area, levels, ticket, priority) {
            return (value, !revalidatesFresh)
        }
        if let value = await cache.staleValue(key, in: area, levels) { return (value, false) }
        if area !== cache.original, let value = await cache.staleDerivation(key, in: area, levels, priority) {
            return (value, false)
        }
        return (try await cache.load(key, in: area, source, levels: levels, following: priority).value, true)
    }

    /// What the source has; nil if it is the same.
    private func second() async throws(CacheError) -> Value? {
        let area = try cache.area(format)
        let levels = levels.intersection(cache.configuration.levels).intersection(source.levels)
        let loaded = try await cache.reload(key, in: area, source, levels, .background, PrioritySource(priority))
        return loaded.origin == .source ? loaded.value : nil
    }
}

extension Cache {
    /// What is stored of a fetcher's value at once, however old; then the source's, if that is another: for what is
    /// shown, and to be swapped when it has changed.
    ///
    /// ```swift
    /// for try await picture in cache.updates(from: fetcher, format: "small") { view.show(picture) }
    /// ```
    ///
    /// A stored value that is fresh is the only one, unless asked otherwise. An old one is given and the source asked
    /// behind it; if that fails, as it does offline, the sequence ends with the error after the old value was given.
    /// Without a stored value this is ``value(from:format:levels:priority:)``.
    ///
    /// - Parameters:
    ///   - fetcher: What produces the value. One that revalidates says "unchanged" at little cost.
    ///   - format: In which form.
    ///   - levels: Which levels to use (R21).
    ///   - priority: How urgent it is.
    ///   - revalidatesFresh: Whether the source is asked although the stored value is fresh.
    public func updates(
        from fetcher: some Fetcher<Value>, format: FormatName = .original, levels: CacheLevels = .all,
        priority: Priority = .normal, revalidatingFresh revalidatesFresh: Bool = false
    ) -> ValueUpdates<Value> {
        ValueUpdates(
            cache: self, key: fetcher.key, format: format, source: AnySource(fetcher), levels: levels,
            priority: priority, revalidatesFresh: revalidatesFresh)
    }

    /// A format's value made from an original whose time has passed. It is not stored.
    fileprivate func staleDerivation(
        _ key: CacheKey, in area: FormatArea<Value>, _ levels: CacheLevels, _ priority: PrioritySource
    ) async -> Value? {
        guard levels.contains(.readDisk), let entry = try? await readBytes(key, in: original, includingExpired: true)
        else { return nil }
        let result = SourceResult<Value>(
            value: nil, bytes: entry.bytes, timeToLive: .zero, tag: entry.tag, levels: .none, storesOriginal: false,
            origin: .stale(refreshing: false), ticket: register.begin(original.slot(key)))
        return try? await make(key, in: area, from: result, priority)
    }
}
