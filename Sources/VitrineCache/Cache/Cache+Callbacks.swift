public import VitrineCore

/// The forms with callbacks: thin adapters over the asynchronous ones.
extension Cache {
    /// Fetches the value of a key from memory or disk.
    ///
    /// A memory hit has ended on return. Handlers that are then added on the main actor run before `onSuccess` returns.
    /// With depth `.memory`, a miss has also ended on return, with ``CacheError/notFound(key:)``.
    ///
    /// - Returns: The task. A miss ends it with ``CacheError/notFound(key:)``, an unregistered format immediately with
    ///   ``CacheError/formatNotFound(_:)``.
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

    /// Fetches a value from memory, from disk or with a fetcher, stores it, and delivers the stored value.
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

    /// Fetches the value of a file. The key is the path.
    @discardableResult
    public func fetch(
        fromFile path: String, format: FormatName = .original, levels: CacheLevels = .all, priority: Priority = .normal
    ) -> FetchTask<Value> {
        fetch(from: FileFetcher(path: path), format: format, levels: levels, priority: priority)
    }

    /// Fetches a value that is computed off the caller's thread if neither level has it.
    @discardableResult
    public func fetch(
        forKey key: CacheKey, format: FormatName = .original, levels: CacheLevels = .all, priority: Priority = .normal,
        value: @autoclosure @escaping @Sendable () throws -> Value
    ) -> FetchTask<Value> {
        let executor = configuration.executor
        let fetcher = ValueFetcher(key: key) { try await executor.run { try value() } }
        return fetch(from: fetcher, format: format, levels: levels, priority: priority)
    }

    /// Returns the value in memory, or nil if a callback will deliver the outcome.
    ///
    /// - Parameters:
    ///   - key: The key of the value.
    ///   - format: The format to look in.
    ///   - depth: How far to look. With `.memory`, the callback is never called.
    ///   - levels: The levels to read and write.
    ///   - priority: The priority of the asynchronous part.
    ///   - later: Called once with the outcome on the main actor, unless the value was returned.
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
    package func value(
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

    // MARK: Changing, with completions

    /// Stores a value, and calls `completion` with the stored value when it is in memory and queued for the disk.
    ///
    /// `completion` runs on the main actor. For a format without a transform it runs before a call on the main actor
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
    package func set(
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

    /// Stores a value without suspending. A write that does not fit into the queue of the disk waits in
    /// `pendingWrites`.
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
            return (keep(), area.pendingWrites.send(operation, forKey: key))
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
    package func remove(
        _ key: CacheKey, format: FormatName = .original, on delivery: CallbackQueue,
        completion: @escaping @Sendable () -> Void
    ) {
        if let area = formats[format] {
            let slot = area.slot(key)
            _ = register.change(slot) { (area.memory.remove(slot), area.pendingWrites.send(.remove, forKey: key)) }
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
    package func removeAll(
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
