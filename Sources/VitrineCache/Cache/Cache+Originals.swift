package import VitrineCore

extension Cache {
    /// The bytes of an original, and how long they may be used.
    package struct OriginalBytes: Sendable {
        /// The bytes as the source gave them.
        package let bytes: [UInt8]
        /// When they stop being fresh, since 1970; nil for never.
        package let expires: Duration?
        /// The levels on which results made from them may be kept.
        package let levels: CacheLevels
        /// Whether they are used although they are no longer fresh. Results made from them are not to be kept.
        package let isStale: Bool
    }

    /// Returns the original bytes of a fetcher's key, from disk if they are fresh, else from the fetcher. Does not decode
    /// them, and leaves memory alone.
    ///
    /// Concurrent calls share one fetch, also with loads of the key's values. New bytes are stored on disk as far as the
    /// fetcher and the configuration allow.
    ///
    /// - Throws: ``CacheError/source(key:underlying:)`` with the fetcher's error, ``CacheError/cancelled(key:)``.
    package func originalBytes(
        from fetcher: some Fetcher<Value>, following priority: PrioritySource
    ) async throws(CacheError) -> OriginalBytes {
        let key = fetcher.key, source = AnySource(fetcher)
        let levels = configuration.levels.intersection(source.levels)
        do {
            if levels.contains(.readDisk), let entry = try? await readBytes(key, in: original) {
                return OriginalBytes(bytes: entry.bytes, expires: entry.expires, levels: .all, isStale: false)
            }
            let result = try await askOnce(source, key, .missing, levels, priority)
            if case .stale(refreshing: true) = result.origin { refreshBehind(key, in: original, source, levels) }
            if levels.intersection(result.levels).contains(.writeDisk) {
                await storeOriginal(key, from: result, isInMemory: false)
            }
            let format = original.format
            let bytes = try result.bytes ?? result.knownValue.map { try format.bytes(of: $0) }
            guard let bytes else { throw CacheError.notFound(key: key) }
            return OriginalBytes(
                bytes: bytes, expires: expiry(result.timeToLive, in: original), levels: result.levels,
                isStale: result.isStale)
        } catch {
            throw CacheError(error, key: key)
        }
    }
}
