public import VitrineCore

/// Changes with callbacks: thin adapters over the asynchronous forms.
extension ValueCache {
    /// Stores a value, and calls `completion` with the stored value when it is in memory and queued for the disk.
    ///
    /// `completion` runs on the main actor. For a format without a transform it runs before a call on the main actor
    /// returns. Without `completion`, an error is logged.
    public func set(
        _ value: Value, forKey key: CacheKey, format: FormatName = .original, timeToLive: Duration? = nil,
        levels: CacheLevels = .all,
        completion: (@MainActor @Sendable (Result<Value, CacheError>) -> Void)?
    ) {
        let log = storage.log, name = name
        beginSetting(value, forKey: key, format: format, timeToLive: timeToLive, levels: levels) { outcome in
            guard let completion else {
                guard case .failure(let error) = outcome else { return }
                return log.error("Cannot store a value: \(error)", metadata: ["cache": "\(name)"])
            }
            CallbackQueue.main.perform { MainActor.assumeIsolated { completion(outcome) } }
        }
    }

    /// Stores a value, and calls `completion` where `delivery` says when it is in memory and queued for the disk, with
    /// the value as stored.
    package func set(
        _ value: Value, forKey key: CacheKey, format: FormatName = .original, on delivery: CallbackQueue,
        completion: @escaping @Sendable (Result<Value, CacheError>) -> Void
    ) {
        beginSetting(value, forKey: key, format: format, timeToLive: nil, levels: .all) { outcome in
            delivery.perform { completion(outcome) }
        }
    }

    private func beginSetting(
        _ value: Value, forKey key: CacheKey, format: FormatName, timeToLive: Duration?, levels: CacheLevels,
        completion: @escaping @Sendable (Result<Value, CacheError>) -> Void
    ) {
        guard let area = formats[format] else { return completion(.failure(.formatNotFound(format))) }
        guard area.format.isIdentity else {
            Task {
                do throws(CacheError) {
                    completion(
                        .success(
                            try await set(value, forKey: key, format: format, timeToLive: timeToLive, levels: levels)))
                } catch {
                    completion(.failure(error))
                }
            }
            return
        }
        do throws(CacheError) {
            try storage.putWithoutSuspending(
                .init(value: value, key: key, area: area, timeToLive: timeToLive, levels: levels))
        } catch {
            return completion(.failure(error))
        }
        completion(.success(value))
    }

    /// Stores an original for a thread that may block, which waits while the queue of the disk is full.
    package func setBlocking(
        _ value: Value, forKey key: CacheKey, timeToLive: Duration? = nil, levels: CacheLevels = .all,
        encoding: (@Sendable (Value) throws -> [UInt8])? = nil
    ) throws(CacheError) {
        try storage.putWithoutSuspending(
            .init(value: value, key: key, area: original, timeToLive: timeToLive, levels: levels), encoding: encoding)
        original.pendingWrites.waitUntilIdleBlocking()
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
        if let area = formats[format] { storage.removeEntryWithoutSuspending(key, in: area) }
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
        let log = storage.log, name = name
        storage.removeAllEntries(levels: levels) { outcome in
            guard let completion else {
                guard case .failure(let error) = outcome else { return }
                return log.error("Cannot remove all entries: \(error)", metadata: ["cache": "\(name)"])
            }
            CallbackQueue.main.perform(isWithinCall: false) { MainActor.assumeIsolated { completion(outcome) } }
        }
    }
}
