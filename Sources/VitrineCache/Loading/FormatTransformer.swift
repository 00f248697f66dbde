import VitrineCore

/// Makes the values of formats from originals, as many at once as the configuration allows.
struct FormatTransformer<Value: CacheableValue>: Sendable {
    private let original: CacheFormat<Value>
    private let executor: BlockingExecutor
    private let metrics: CacheMetrics
    private let queue: WorkQueue

    init(_ storage: EntryStorage<Value>) {
        original = storage.original.format
        executor = storage.configuration.executor
        metrics = storage.metrics
        queue = WorkQueue(limit: storage.configuration.transformLimit ?? executor.threads)
    }

    /// Returns the value of a lookup's format for the result of the source.
    func value(of lookup: Lookup<Value>, from result: SourceResult<Value>) async throws(CacheError) -> Value {
        if let derive = lookup.area.format.derive, let bytes = result.bytes {
            return try await run(lookup, failing: CacheError.invalidData) { try await derive(bytes) }
        }
        let value: Value
        if let known = result.knownValue {
            value = known
        } else {
            let format = original
            do {
                value =
                    format.decodesAtOnce
                    ? try result.value(decoding: format)
                    : try await executor.run { try result.value(decoding: format) }
            } catch {
                throw .invalidData(key: lookup.key, underlying: error)
            }
        }
        return try await transform(value, for: lookup)
    }

    /// Applies the transform of a lookup's format to an original value.
    func transform(_ value: Value, for lookup: Lookup<Value>) async throws(CacheError) -> Value {
        let target = lookup.area.format, name = target.name
        let operation: @Sendable () async throws -> Value
        if let transform = target.transform {
            operation = { try await transform(value) }
        } else if let derive = target.derive {
            let format = original
            operation = { try await derive(try format.bytes(of: value)) }
        } else {
            return value
        }
        return try await run(
            lookup, failing: { .transform(key: $0, format: name, underlying: $1) }, operation: operation)
    }

    /// Runs a transform on the executor when the queue lets it.
    private func run(
        _ lookup: Lookup<Value>, failing: @Sendable (CacheKey, any Error) -> CacheError,
        operation: @escaping @Sendable () async throws -> Value
    ) async throws(CacheError) -> Value {
        do {
            return try await queue.run(following: lookup.priority) {
                try await metrics.measure(.transform) {
                    try await withTaskExecutorPreference(executor) { try await operation() }
                }
            }
        } catch let error as CacheError {
            throw error
        } catch {
            if error is CancellationError, Task.isCancelled { throw .cancelled(key: lookup.key) }
            throw failing(lookup.key, error)
        }
    }
}
