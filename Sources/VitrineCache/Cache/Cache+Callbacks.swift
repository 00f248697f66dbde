public import VitrineCore

/// The forms with callbacks: thin adapters over the asynchronous ones.
extension Cache {
    /// Fetches the value of a key from memory or disk (R6).
    ///
    /// A memory hit has ended on return; handlers that are added on the main actor then run before `onSuccess` returns.
    /// With depth `.memory` a miss has ended on return as well, with
    /// ``CacheError/notFound(key:)``: nothing ever comes later (R83).
    ///
    /// - Returns: The handle; a miss ends it with ``CacheError/notFound(key:)``, an unregistered format at once with
    ///   ``CacheError/formatNotFound(_:)`` (R33).
    @discardableResult
    public func fetch(
        forKey key: CacheKey, format: FormatName = .original, depth: CacheLevel = .disk, levels: CacheLevels = .all,
        priority: Priority = .normal
    ) -> FetchTask<Value> {
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
    ) -> FetchTask<Value> {
        let key = fetcher.key
        return begin(key, format, levels, priority) { area, source in
            try await self.load(key, in: area, AnySource(fetcher), levels: levels, following: source).value
        }
    }

    /// Fetches a file, whose path is the key (R8).
    @discardableResult
    public func fetch(
        fromFile path: String, format: FormatName = .original, levels: CacheLevels = .all, priority: Priority = .normal
    ) -> FetchTask<Value> {
        fetch(from: FileFetcher(path: path), format: format, levels: levels, priority: priority)
    }

    /// Fetches a value that is computed, off the caller's thread, only if no level has it (R8, R10).
    @discardableResult
    public func fetch(
        forKey key: CacheKey, format: FormatName = .original, levels: CacheLevels = .all, priority: Priority = .normal,
        value: @autoclosure @escaping @Sendable () throws -> Value
    ) -> FetchTask<Value> {
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
    ///   - later: Called once with the outcome on the main actor; never if the value was returned.
    public func value(
        forKey key: CacheKey, format: FormatName = .original, depth: CacheLevel = .disk, levels: CacheLevels = .all,
        priority: Priority = .normal,
        orLater later: @escaping @MainActor @Sendable (Result<Value, CacheError>) -> Void
    ) -> Value? {
        value(forKey: key, format: format, depth: depth, levels: levels, priority: priority, on: .main) { outcome in
            MainActor.assumeIsolated { later(outcome) }
        }
    }

    /// The value in memory, or nil now and the outcome later, where `delivery` says. See
    /// ``value(forKey:format:depth:levels:priority:orLater:)``.
    public func value(
        forKey key: CacheKey, format: FormatName = .original, depth: CacheLevel = .disk, levels: CacheLevels = .all,
        priority: Priority = .normal, on delivery: CallbackQueue,
        orLater later: @escaping @Sendable (Result<Value, CacheError>) -> Void
    ) -> Value? {
        if let area = formats[format], let value = memoryValue(area, key, levels: levels) { return value }
        guard depth > .memory else { return nil }
        fetch(forKey: key, format: format, depth: depth, levels: levels.subtracting(.readMemory), priority: priority)
            .onEnd(on: delivery, later)
        return nil
    }

    private func begin(
        _ key: CacheKey, _ format: FormatName, _ levels: CacheLevels, _ priority: Priority, isOver: Bool = false,
        _ operation: @escaping @Sendable (FormatArea<Value>, PrioritySource) async throws -> Value
    ) -> FetchTask<Value> {
        guard let area = formats[format] else {
            return FetchTask(key: key, outcome: .failure(.formatNotFound(format)))
        }
        if let value = memoryValue(area, key, levels: levels) {
            return FetchTask(key: key, outcome: .success(value))
        }
        guard !isOver else { return FetchTask(key: key, outcome: .failure(.notFound(key: key))) }
        let fetch = FetchTask<Value>(key: key, priority: priority)
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
    /// `completion` runs on the main actor. In a format without a transform it runs before a call on the main actor
    /// returns.
    public func set(
        _ value: Value, forKey key: CacheKey, format: FormatName = .original, timeToLive: Duration? = nil,
        levels: CacheLevels = .all, completion: @escaping @MainActor @Sendable (Result<Value, CacheError>) -> Void
    ) {
        set(value, forKey: key, format: format, timeToLive: timeToLive, levels: levels, on: .main) { outcome in
            MainActor.assumeIsolated { completion(outcome) }
        }
    }

    /// Stores a value, and calls `completion` where `delivery` says when it is in memory and queued for the disk, with
    /// the value as stored.
    public func set(
        _ value: Value, forKey key: CacheKey, format: FormatName = .original, timeToLive: Duration? = nil,
        levels: CacheLevels = .all, on delivery: CallbackQueue,
        completion: @escaping @Sendable (Result<Value, CacheError>) -> Void
    ) {
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
        let keep = keeping(value, slot, expires: expiry(timeToLive, in: area), in: area, levels)
        let put: Result<Operation, CacheError>? = levels.contains(.writeDisk) ? Result { () throws(CacheError) in
            try area.disk.engine.put(
                encoded(value, area.format), in: area.disk.format,
                timeToLive: timeToLive ?? area.format.timeToLive ?? configuration.timeToLive, tag: [])
        } : nil
        let (change, _) = register.change(slot) { () -> (MemoryChange<MemoryKey, Value>, Operation?) in
            guard case .success(let operation) = put else { return (keep(), nil) }
            return (keep(), area.outbox.send(operation, forKey: key))
        }
        area.memory.finish(change)
        if case .failure(let error) = put { throw error }
    }

    /// Removes a key's entry of a format, and calls `completion` on the main actor when it is gone for every later
    /// read. Memory is changed at once.
    public func remove(
        _ key: CacheKey, format: FormatName = .original, completion: @escaping @MainActor @Sendable () -> Void
    ) {
        remove(key, format: format, on: .main) { MainActor.assumeIsolated { completion() } }
    }

    /// Removes a key's entry of a format, and calls `completion` where `delivery` says when it is gone for every later
    /// read.
    public func remove(
        _ key: CacheKey, format: FormatName = .original, on delivery: CallbackQueue,
        completion: @escaping @Sendable () -> Void
    ) {
        if let area = formats[format] {
            let slot = area.slot(key)
            _ = register.change(slot) { (area.memory.remove(slot), area.outbox.send(.remove, forKey: key)) }
        }
        delivery.perform(completion)
    }

    /// Removes everything, and calls `completion` on the main actor when it is done. Memory is cleared at once.
    public func removeAll(
        levels: CacheLevels = .all, completion: @escaping @MainActor @Sendable (Result<Void, CacheError>) -> Void
    ) {
        removeAll(levels: levels, on: .main) { outcome in MainActor.assumeIsolated { completion(outcome) } }
    }

    /// Removes everything, and calls `completion` where `delivery` says when it is done.
    public func removeAll(
        levels: CacheLevels = .all, on delivery: CallbackQueue,
        completion: @escaping @Sendable (Result<Void, CacheError>) -> Void
    ) {
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
