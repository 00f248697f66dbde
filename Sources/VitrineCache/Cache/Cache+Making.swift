import VitrineCore

extension Cache {
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
                value =
                    format.decodesAtOnce
                    ? try result.value(decoding: format)
                    : try await configuration.executor.run { try result.value(decoding: format) }
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
        _ levels: CacheLevels, _ ticket: InvalidationRegister.Ticket
    ) async {
        let levels = levels.intersection(result.levels)
        let isOriginal = area === original
        if levels.contains(.writeMemory) {
            keepInMemory(value, expires: expiry(result.timeToLive, in: area), in: area, ticket)
        }
        guard levels.contains(.writeDisk) else { return }
        if !isOriginal {
            await keepOnDisk(encoded(value, area.format), key, in: area, result.timeToLive, result.tag, ticket)
            guard configuration.storesOriginals, result.storesOriginal else { return }
        }
        await storeOriginal(key, from: result, isInMemory: isOriginal)
    }

    /// Keeps the original on disk, for the first who asks.
    func storeOriginal(_ key: CacheKey, from result: SourceResult<Value>, isInMemory: Bool) async {
        guard result.isNew, result.claimStoring() else { return }
        if !isInMemory {
            // An older original in memory is not what other formats are to be made from.
            _ = result.ticket.ifValid { original.memory.remove(original.slot(key)) }
        }
        let body = result.bytes.map(Body.ready) ?? result.knownValue.map { encoded($0, original.format) }
        guard let body else { return }
        await keepOnDisk(body, key, in: original, result.timeToLive, result.tag, result.ticket)
    }

    /// A value that is encoded when the disk level writes it (R10).
    func encoded(_ value: Value, _ format: Format<Value>) -> Body {
        .lazy(LazyBytes { try format.bytes(of: value) })
    }

    /// Puts an entry on disk, unless its key was changed meanwhile.
    func keepOnDisk(
        _ body: Body, _ key: CacheKey, in area: FormatArea<Value>, _ timeToLive: Duration?, _ tag: [UInt8],
        _ ticket: InvalidationRegister.Ticket
    ) async {
        do throws(CacheError) {
            let put = try area.disk.engine.put(
                body, in: area.disk.format,
                timeToLive: timeToLive ?? area.format.timeToLive ?? configuration.timeToLive, tag: tag)
            await area.outbox.send(put, forKey: key) { send in ticket.ifValid(send) ?? true }
        } catch {
            log.warning("A value was not stored: \(error)", metadata: ["cache": "\(name)"])
        }
    }
}
