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
        let loader = cache.loader
        let area = try cache.storage.area(format)
        if let value = cache.memoryValue(area, key, levels: levels) { return (value, !revalidatesFresh) }
        let wanted = lookup(in: area)
        if let value = try await loader.storedValue(of: wanted) { return (value, !revalidatesFresh) }
        if let value = await loader.staleValue(of: wanted) { return (value, false) }
        if area !== cache.original, let value = await loader.staleDerivation(of: wanted) { return (value, false) }
        return (try await loader.loadValue(of: wanted, from: source).value, true)
    }

    /// Returns the value of the source; nil if it is unchanged.
    private func second() async throws(CacheError) -> Value? {
        let area = try cache.storage.area(format)
        let loaded = try await cache.loader.reloadValue(of: lookup(in: area), from: source, reason: .background)
        return loaded.origin == .source ? loaded.value : nil
    }

    private func lookup(in area: FormatArea<Value>) -> Lookup<Value> {
        let levels = levels.intersection(cache.configuration.levels).intersection(source.levels)
        return Lookup(key: key, area: area, levels: levels, priority: PrioritySource(priority))
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
}
