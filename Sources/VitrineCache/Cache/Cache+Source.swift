import VitrineCore

extension Cache {
    /// Asks the source for the original.
    func ask(
        _ source: AnySource<Value>, _ key: CacheKey, _ levels: CacheLevels, isRefresh: Bool, _ priority: PrioritySource
    ) async throws -> SourceResult<Value> {
        let ticket = register.begin(original.slot(key))
        let stored = source.revalidates && (levels.contains(.readDisk) || isRefresh) ? await storedOriginal(key) : nil
        var fetched = try await fetch(source, key, FetchContext(priority: priority, stored: stored))
        if case .unchanged = fetched.content {
            if stored != nil, let result = try await renewed(key, fetched, ticket) { return result }
            // The entry went while the source was asked.
            fetched = try await fetch(source, key, FetchContext(priority: priority))
        }
        let (value, bytes): (Value?, [UInt8]?)
        switch fetched.content {
        case .value(let found): (value, bytes) = (found, nil)
        case .bytes(let found): (value, bytes) = (nil, found)
        case .both(let found, let foundBytes): (value, bytes) = (found, foundBytes)
        case .unchanged: throw CacheError.notFound(key: key)
        }
        return SourceResult(
            value: value, bytes: bytes, timeToLive: fetched.timeToLive, tag: fetched.tag, levels: fetched.levels,
            storesOriginal: source.storesOriginal, isStored: false, ticket: ticket)
    }

    private func fetch(
        _ source: AnySource<Value>, _ key: CacheKey, _ context: FetchContext
    ) async throws(CacheError) -> Fetched<Value> {
        do {
            let fetched = try await metrics.measure(.source) { try await source.fetch(context) }
            metrics.count(.value)
            return fetched
        } catch {
            // A source's own CancellationError, while someone still waits, is its failure.
            let isCancelled = error is CancellationError && Task.isCancelled
            metrics.count(isCancelled ? .cancelled : .failure)
            if error is CancellationError, !isCancelled { throw .source(key: key, underlying: error) }
            throw CacheError(error, key: key)
        }
    }

    private func storedOriginal(_ key: CacheKey) async -> FetchContext.Stored? {
        await original.outbox.settle()
        guard let info = try? await original.disk.info(forKey: key) else { return nil }
        return FetchContext.Stored(created: info.created, expires: info.expires, tag: info.tag)
    }

    /// The stored original, fresh again.
    private func renewed(
        _ key: CacheKey, _ fetched: Fetched<Value>, _ ticket: LoadRegister.Ticket
    ) async throws -> SourceResult<Value>? {
        guard let entry = try await readBytes(key, in: original, includingExpired: true) else { return nil }
        let life = fetched.timeToLive ?? original.format.timeToLive ?? configuration.timeToLive
        await original.disk.renew(key, timeToLive: life)
        if !fetched.keepsTag { await original.disk.setTag(fetched.tag, forKey: key) }
        return SourceResult(
            value: nil, bytes: entry.bytes, timeToLive: fetched.timeToLive,
            tag: fetched.keepsTag ? entry.tag : fetched.tag, levels: fetched.levels, storesOriginal: true,
            isStored: true, ticket: ticket)
    }

    // MARK: Making

    /// The value of a format from what the source gave.
    func make(
        _ key: CacheKey, in area: FormatArea<Value>, from result: SourceResult<Value>, _ priority: PrioritySource
    ) async throws(CacheError) -> Value {
        if let derive = area.format.derive, let bytes = result.bytes {
            return try await transform(key, area, priority, failing: CacheError.invalidData) { try await derive(bytes) }
        }
        let value: Value
        if let known = result.knownValue {
            value = known
        } else {
            let format = original.format
            do {
                value = try await configuration.executor.run { try result.value(decoding: format) }
            } catch {
                throw .invalidData(key: key, underlying: error)
            }
        }
        return try await applied(area, to: value, key, priority)
    }

    /// A value in a format: transformed once, off the caller's thread (R32).
    func applied(
        _ area: FormatArea<Value>, to value: Value, _ key: CacheKey, _ priority: PrioritySource
    ) async throws(CacheError) -> Value {
        let name = area.format.name
        let operation: @Sendable () async throws -> Value
        if let transform = area.format.transform {
            operation = { try await transform(value) }
        } else if let derive = area.format.derive {
            let format = original.format
            operation = { try await derive(try format.bytes(of: value)) }
        } else {
            return value
        }
        return try await transform(
            key, area, priority, failing: { .transform(key: $0, format: name, underlying: $1) }, operation)
    }

    /// Runs a transform in its turn, on the executor.
    private func transform(
        _ key: CacheKey, _ area: FormatArea<Value>, _ priority: PrioritySource,
        failing: @Sendable (CacheKey, any Error) -> CacheError,
        _ operation: @escaping @Sendable () async throws -> Value
    ) async throws(CacheError) -> Value {
        let executor = configuration.executor
        do {
            return try await transforms.run(following: priority) {
                try await metrics.measure(.transform) {
                    try await withTaskExecutorPreference(executor) { try await operation() }
                }
            }
        } catch let error as CacheError {
            throw error
        } catch {
            if error is CancellationError, Task.isCancelled { throw .cancelled(key: key) }
            throw failing(key, error)
        }
    }

    // MARK: Keeping

    /// Keeps what a source gave: the value in its format, and the original if that is wanted. What cannot be kept is
    /// logged.
    func store(
        _ value: Value, _ key: CacheKey, in area: FormatArea<Value>, from result: SourceResult<Value>,
        _ levels: CacheLevels, _ ticket: LoadRegister.Ticket
    ) async {
        let levels = levels.intersection(result.levels)
        let isOriginal = area === original
        if levels.contains(.writeMemory) {
            keepInMemory(value, expires: expiry(result.timeToLive, in: area), in: area, ticket)
        }
        guard levels.contains(.writeDisk) else { return }
        if !isOriginal || !result.isStored {
            let body = isOriginal ? result.bytes.map(Body.ready) : nil
            await keepOnDisk(
                body ?? encoded(value, area.format), key, in: area, result.timeToLive, result.tag, ticket)
        }
        guard !isOriginal, !result.isStored, configuration.storesOriginals, result.storesOriginal,
            result.claimStoring()
        else { return }
        // An older original in memory is not what other formats are to be made from.
        result.ticket.ifValid { _ = original.memory.remove(original.slot(key)) }
        if let bytes = result.bytes {
            await keepOnDisk(.ready(bytes), key, in: original, result.timeToLive, result.tag, result.ticket)
        } else if let known = result.knownValue {
            await keepOnDisk(
                encoded(known, original.format), key, in: original, result.timeToLive, result.tag, result.ticket)
        }
    }

    /// A value that is encoded when the disk level writes it (R10).
    func encoded(_ value: Value, _ format: Format<Value>) -> Body {
        .lazy(LazyBytes { try format.bytes(of: value) })
    }

    /// Puts an entry on disk, unless its key was changed meanwhile.
    func keepOnDisk(
        _ body: Body, _ key: CacheKey, in area: FormatArea<Value>, _ timeToLive: Duration?, _ tag: [UInt8],
        _ ticket: LoadRegister.Ticket
    ) async {
        do throws(CacheError) {
            let put = try area.disk.engine.put(
                body, forKey: key, timeToLive: timeToLive ?? area.format.timeToLive ?? configuration.timeToLive,
                tag: tag)
            await area.outbox.send(put, forKey: key) { send in ticket.ifValid(send) ?? true }
        } catch {
            log.warning("A value was not stored: \(error)", metadata: ["cache": "\(name)"])
        }
    }
}
