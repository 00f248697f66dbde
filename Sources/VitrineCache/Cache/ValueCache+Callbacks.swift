public import VitrineCore

/// The forms with callbacks: thin adapters over the asynchronous ones.
extension ValueCache {
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
        priority: RequestPriority = .normal
    ) -> FetchTask<Value> {
        begin(key, format: format, levels: levels, priority: priority, isOver: depth == .memory) { area, source in
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
        priority: RequestPriority = .normal
    ) -> FetchTask<Value> {
        let key = fetcher.key
        return begin(key, format: format, levels: levels, priority: priority) { area, source in
            try await self.load(key, in: area, AnySource(fetcher), levels: levels, following: source).value
        }
    }

    private func begin(
        _ key: CacheKey, format: FormatName, levels: CacheLevels, priority: RequestPriority, isOver: Bool = false,
        operation: @escaping @Sendable (FormatArea<Value>, PrioritySource) async throws -> Value
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

    // MARK: Changing

    /// Stores a value, and calls `completion` with the stored value when it is in memory and queued for the disk.
    ///
    /// `completion` runs on the main actor. For a format without a transform it runs before a call on the main actor
    /// returns. Without `completion`, an error is logged.
    public func set(
        _ value: Value, forKey key: CacheKey, format: FormatName = .original, timeToLive: Duration? = nil,
        levels: CacheLevels = .all,
        completion: (@MainActor @Sendable (Result<Value, CacheError>) -> Void)?
    ) {
        guard let completion else {
            let log = log, name = name
            return set(value, forKey: key, format: format, timeToLive: timeToLive, levels: levels, on: .immediate) {
                guard case .failure(let error) = $0 else { return }
                log.error("Cannot store a value: \(error)", metadata: ["cache": "\(name)"])
            }
        }
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
            try putNow(value, key: key, in: area, timeToLive: timeToLive, levels: levels)
            delivery.perform { completion(.success(value)) }
        } catch {
            delivery.perform { completion(.failure(error)) }
        }
    }

    /// Stores a value without suspending. A write that does not fit into the queue of the disk waits in
    /// `pendingWrites`.
    private func putNow(
        _ value: Value, key: CacheKey, in area: FormatArea<Value>, timeToLive: Duration?, levels: CacheLevels
    ) throws(CacheError) {
        let levels = levels.intersection(configuration.levels)
        let slot = area.slot(key)
        let keep = keeping(value, slot: slot, expires: expiry(timeToLive, in: area), in: area, levels: levels)
        let put: Result<Operation, CacheError>? = levels.contains(.writeDisk) ? Result { () throws(CacheError) in
            try area.disk.engine.put(
                encoded(value, area.format), in: area.disk.format,
                timeToLive: timeToLive ?? area.format.timeToLive ?? configuration.timeToLive, validator: [],
                tags: .none)
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
        _ key: CacheKey, format: FormatName = .original, completion: (@MainActor @Sendable () -> Void)?
    ) {
        guard let completion else { return remove(key, format: format, on: .immediate) {} }
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

    /// Removes all entries, in order with earlier and later changes, and calls `completion` on the main actor when they
    /// are gone from disk.
    ///
    /// Later reads do not see the removed entries, and values that are set later stay. `completion` never runs within
    /// the call. Without it, an error is logged. See ``removeAll(levels:)``.
    public func removeAll(
        levels: CacheLevels = .all,
        completion: (@MainActor @Sendable (Result<Void, CacheError>) -> Void)?
    ) {
        let log = log, name = name
        beginRemovingAll(levels) { outcome in
            guard let completion else {
                guard case .failure(let error) = outcome else { return }
                return log.error("Cannot remove all entries: \(error)", metadata: ["cache": "\(name)"])
            }
            CallbackQueue.main.perform(isWithinCall: false) { MainActor.assumeIsolated { completion(outcome) } }
        }
    }
}
