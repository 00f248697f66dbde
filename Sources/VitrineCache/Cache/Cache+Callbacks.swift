public import VitrineCore

/// The forms with callbacks: thin adapters over the asynchronous ones.
extension Cache {
    /// Fetches the value of a key from memory or disk (R6).
    ///
    /// A memory hit has ended on return, and handlers given to the handle then run before `onSuccess` returns, where
    /// the delivery allows. With depth `.memory` a miss has ended on return as well, with
    /// ``CacheError/notFound(key:)``: nothing ever comes later (R83).
    ///
    /// - Returns: The handle; a miss ends it with ``CacheError/notFound(key:)``, an unregistered format at once with
    ///   ``CacheError/formatNotFound(_:)`` (R33).
    @discardableResult
    public func fetch(
        forKey key: CacheKey, format: FormatName = .original, depth: Depth = .disk, levels: CacheLevels = .all,
        priority: Priority = .normal
    ) -> Fetch<Value> {
        begin(key, format, levels, priority, isOver: depth == .memory) { area, source in
            guard let value = try await self.lookUp(key, in: area, levels: levels, following: source) else {
                throw CacheError.notFound(key: key)
            }
            return value
        }
    }

    /// Fetches through a fetcher: memory, disk, source; stored, then delivered as stored (R7).
    @discardableResult
    public func fetch(
        from fetcher: some Fetcher<Value>, format: FormatName = .original, levels: CacheLevels = .all,
        priority: Priority = .normal
    ) -> Fetch<Value> {
        let key = fetcher.key
        return begin(key, format, levels, priority) { area, source in
            try await self.load(key, in: area, AnySource(fetcher), levels: levels, following: source).value
        }
    }

    /// Fetches a file, whose path is the key (R8).
    @discardableResult
    public func fetch(
        fromFile path: String, format: FormatName = .original, levels: CacheLevels = .all, priority: Priority = .normal
    ) -> Fetch<Value> {
        fetch(from: FileFetcher(path: path), format: format, levels: levels, priority: priority)
    }

    /// Fetches a value that is computed, off the caller's thread, only if no level has it (R8, R10).
    @discardableResult
    public func fetch(
        forKey key: CacheKey, format: FormatName = .original, levels: CacheLevels = .all, priority: Priority = .normal,
        value: @autoclosure @escaping @Sendable () throws -> Value
    ) -> Fetch<Value> {
        let executor = configuration.executor
        let fetcher = ValueFetcher(key: key) { try await executor.run { try value() } }
        return fetch(from: fetcher, format: format, levels: levels, priority: priority)
    }

    /// The value in memory, or nil now and the outcome later (R84).
    ///
    /// - Parameters:
    ///   - key: What it is stored under.
    ///   - format: The format to look in.
    ///   - depth: With `.memory` nothing ever comes later (R83).
    ///   - levels: The levels that are read and written (R21).
    ///   - priority: How urgent the later part is.
    ///   - later: Called with the outcome, once, where the cache delivers; never if the value was returned.
    public func value(
        forKey key: CacheKey, format: FormatName = .original, depth: Depth = .disk, levels: CacheLevels = .all,
        priority: Priority = .normal, orLater later: @escaping @Sendable (Result<Value, CacheError>) -> Void
    ) -> Value? {
        if let area = formats[format], let value = memoryValue(area, key, levels: levels) { return value }
        guard depth > .memory else { return nil }
        fetch(forKey: key, format: format, depth: depth, levels: levels.subtracting(.readMemory), priority: priority)
            .onEnd(later)
        return nil
    }

    private func begin(
        _ key: CacheKey, _ format: FormatName, _ levels: CacheLevels, _ priority: Priority, isOver: Bool = false,
        _ operation: @escaping @Sendable (FormatArea<Value>, PrioritySource) async throws -> Value
    ) -> Fetch<Value> {
        let delivery = configuration.delivery
        guard let area = formats[format] else {
            return Fetch(key: key, outcome: .failure(.formatNotFound(format)), delivery: delivery)
        }
        if let value = memoryValue(area, key, levels: levels) {
            return Fetch(key: key, outcome: .success(value), delivery: delivery)
        }
        guard !isOver else { return Fetch(key: key, outcome: .failure(.notFound(key: key)), delivery: delivery) }
        let fetch = Fetch<Value>(key: key, priority: priority, delivery: delivery)
        fetch.follow(
            Task {
                do {
                    fetch.finish(.success(try await operation(area, fetch.prioritySource)))
                } catch {
                    fetch.finish(.failure(CacheError(error, key: key)))
                }
            })
        return fetch
    }

    // MARK: Changing, with completions (R26)

    /// Stores a value, and tells when it is in memory and queued for the disk, with the value as stored (R5).
    ///
    /// In a format without a transform `completion` runs before the call returns, where the delivery allows (R31).
    public func set(
        _ value: Value, forKey key: CacheKey, format: FormatName = .original, timeToLive: Duration? = nil,
        levels: CacheLevels = .all, completion: @escaping @Sendable (Result<Value, CacheError>) -> Void
    ) {
        let delivery = configuration.delivery
        guard let area = formats[format] else {
            return delivery.perform { completion(.failure(.formatNotFound(format))) }
        }
        guard area.format.isIdentity else {
            Task {
                let result: Result<Value, CacheError>
                do throws(CacheError) {
                    result = .success(
                        try await set(value, forKey: key, format: format, timeToLive: timeToLive, levels: levels))
                } catch {
                    result = .failure(error)
                }
                delivery.perform { completion(result) }
            }
            return
        }
        do throws(CacheError) {
            try putNow(value, key, in: area, timeToLive, levels)
            delivery.perform { completion(.success(value)) }
        } catch {
            delivery.perform { completion(.failure(error)) }
        }
    }

    /// Stores a value without waiting: what the disk's queue has no room for waits its turn.
    private func putNow(
        _ value: Value, _ key: CacheKey, in area: FormatArea<Value>, _ timeToLive: Duration?, _ levels: CacheLevels
    ) throws(CacheError) {
        let levels = levels.intersection(configuration.levels)
        let slot = area.slot(key)
        let (cost, expires) = (value.cacheCost, expiry(timeToLive, in: area))
        let put: Result<Operation, CacheError>? = levels.contains(.writeDisk) ? Result { () throws(CacheError) in
            try area.disk.engine.put(
                encoded(value, area.format), forKey: key,
                timeToLive: timeToLive ?? area.format.timeToLive ?? configuration.timeToLive, tag: [])
        } : nil
        register.change(slot) {
            if levels.contains(.writeMemory) {
                area.memory.set(value, forKey: slot, cost: cost, expires: expires)
            } else {
                area.memory.remove(slot)
            }
            if case .success(let operation) = put { area.outbox.send(operation, forKey: key) }
        }
        if case .failure(let error) = put { throw error }
    }

    /// Removes a key's entry of a format, and tells when it is gone for every later read. Memory is changed at once.
    public func remove(
        _ key: CacheKey, format: FormatName = .original, completion: @escaping @Sendable () -> Void
    ) {
        let delivery = configuration.delivery
        if let area = formats[format] {
            let slot = area.slot(key)
            register.change(slot) {
                _ = area.memory.remove(slot)
                area.outbox.send(.remove, forKey: key)
            }
        }
        delivery.perform(completion)
    }

    /// Removes everything, and tells when it is done (R12). Memory is cleared at once.
    public func removeAll(
        levels: CacheLevels = .all, completion: @escaping @Sendable (Result<Void, CacheError>) -> Void
    ) {
        let delivery = configuration.delivery
        if levels.contains(.writeMemory) { clearMemory() }
        Task {
            let result: Result<Void, CacheError>
            do throws(CacheError) {
                result = .success(try await removeAll(levels: levels))
            } catch {
                result = .failure(error)
            }
            delivery.perform { completion(result) }
        }
    }
}
