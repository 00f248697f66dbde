public import VitrineCore

/// The stored value of a fetcher, fresh or not, followed by a newer one if there is one. See
/// ``ValueCache/updates(from:format:levels:priority:revalidatingFresh:)``.
///
/// The sequence works while it is iterated and has at most two elements. Each iterator starts from the beginning.
package struct ValueUpdates<Value: CacheableValue>: AsyncSequence, Sendable {
    /// A value.
    package typealias Element = Value
    /// The error of the sequence.
    package typealias Failure = CacheError

    let cache: ValueCache<Value>
    let key: CacheKey
    let format: FormatName
    let source: AnySource<Value>
    let levels: CacheLevels
    let priority: RequestPriority
    let revalidatesFresh: Bool

    /// The iterator of the sequence.
    package struct AsyncIterator: AsyncIteratorProtocol {
        private enum Phase { case start, revalidating, end }

        private let updates: ValueUpdates
        private var phase = Phase.start

        fileprivate init(_ updates: ValueUpdates) { self.updates = updates }

        /// Returns the stored value, then the newer one, then nil.
        ///
        /// - Throws: Once, the reason why there is no newer value. The value returned before stays stored.
        package mutating func next() async throws(CacheError) -> Value? {
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

    /// Returns an iterator that starts from the beginning.
    package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    /// Returns the first value and whether it is the only one.
    private func first() async throws(CacheError) -> (Value, isFinal: Bool) {
        let area = try cache.area(format)
        if let value = cache.memoryValue(area, key, levels: levels) { return (value, !revalidatesFresh) }
        let priority = PrioritySource(priority)
        let levels = levels.intersection(cache.configuration.levels).intersection(source.levels)
        let ticket = cache.register.begin(area.slot(key))
        if let value = try await cache.stored(key, in: area, levels: levels, ticket: ticket, priority: priority) {
            return (value, !revalidatesFresh)
        }
        if let value = await cache.staleValue(key, in: area, levels) { return (value, false) }
        if area !== cache.original,
            let value = await cache.staleDerivation(key, in: area, levels: levels, priority: priority)
        {
            return (value, false)
        }
        return (try await cache.load(key, in: area, source, levels: levels, following: priority).value, true)
    }

    /// Returns the value of the source; nil if it is unchanged.
    private func second() async throws(CacheError) -> Value? {
        let area = try cache.area(format)
        let levels = levels.intersection(cache.configuration.levels).intersection(source.levels)
        let loaded = try await cache.reload(
            key, in: area, source: source, levels: levels, reason: .background, priority: PrioritySource(priority))
        return loaded.origin == .source ? loaded.value : nil
    }
}

extension ValueCache {
    /// Returns a sequence of the stored value, fresh or not, followed by the value of the source if it has changed.
    ///
    /// ```swift
    /// for try await picture in cache.updates(from: fetcher, format: "small") { view.show(picture) }
    /// ```
    ///
    /// A fresh stored value is the only element, unless `revalidatesFresh` is true. After an expired value, the source
    /// is asked. If that fails, for example offline, the sequence throws after the expired value. Without a stored
    /// value, the sequence has the element of ``value(from:format:levels:priority:)``. A `for` loop throws
    /// ``CacheError``. So does `next(isolation: #isolation)` of an iterator, whose `next()` throws any error.
    ///
    /// - Parameters:
    ///   - fetcher: The source of the value. A fetcher that revalidates is cheaper.
    ///   - format: The format of the value.
    ///   - levels: The levels to read and write.
    ///   - priority: The priority of the load.
    ///   - revalidatesFresh: Whether to ask the source even if the stored value is fresh. Default false.
    public func updates(
        from fetcher: some Fetcher<Value>, format: FormatName = .original, levels: CacheLevels = .all,
        priority: RequestPriority = .normal, revalidatingFresh revalidatesFresh: Bool = false
    ) -> some AsyncSequence<Value, CacheError> & Sendable {
        ValueUpdates(
            cache: self, key: fetcher.key, format: format, source: AnySource(fetcher), levels: levels,
            priority: priority, revalidatesFresh: revalidatesFresh)
    }

    /// A format's value made from an original whose time has passed. It is not stored.
    fileprivate func staleDerivation(
        _ key: CacheKey, in area: FormatArea<Value>, levels: CacheLevels, priority: PrioritySource
    ) async -> Value? {
        guard levels.contains(.readDisk), let entry = try? await readBytes(key, in: original, includingExpired: true)
        else { return nil }
        let result = SourceResult<Value>(
            value: nil, bytes: entry.bytes, timeToLive: .zero, validator: entry.validator, tags: entry.tags,
            levels: .none, storesOriginal: false, origin: .stale(refreshing: false),
            ticket: register.begin(original.slot(key)))
        return try? await make(key, in: area, from: result, priority)
    }
}
