public import VitrineCore

extension DiskCache {
    /// A disk cache's calls for threads that may block.
    public struct Blocking: Sendable {
        let engine: DiskEngine
        let format: DiskFormat
        let isShared: Bool

        private func entryKey(_ key: CacheKey) -> EntryKey { EntryKey(key, format) }

        /// Returns the entry of a key. This counts as an access.
        ///
        /// - Parameters:
        ///   - key: The key of the entry.
        ///   - includingExpired: Whether to return an expired entry that has not been purged.
        /// - Returns: nil if there is no entry, or if it is damaged. A damaged entry is removed and logged.
        /// - Throws: ``CacheError/file(_:)`` or ``CacheError/database(_:)`` if the cache cannot be read.
        package func entry(forKey key: CacheKey, includingExpired: Bool = false) throws(CacheError) -> Entry? {
            try engine.entry(forKey: entryKey(key), includingExpired: includingExpired)
        }

        /// The blocking form of ``DiskCache/bytes(forKey:)``.
        public func bytes(forKey key: CacheKey) throws(CacheError) -> [UInt8]? {
            try engine.bytes(forKey: entryKey(key))
        }

        /// The blocking form of ``DiskCache/contains(_:)``.
        package func contains(_ key: CacheKey) throws(CacheError) -> Bool {
            guard let info = try engine.info(forKey: entryKey(key)) else { return false }
            return !info.isExpired
        }

        /// The blocking form of ``DiskCache/info(forKey:)``.
        package func info(forKey key: CacheKey) throws(CacheError) -> EntryInfo? {
            try engine.info(forKey: entryKey(key))
        }

        /// The blocking form of ``DiskCache/set(_:forKey:timeToLive:validator:tags:)``. Waits only while the queue is
        /// full.
        public func set(
            _ bytes: [UInt8], forKey key: CacheKey, timeToLive: Duration? = nil, validator: [UInt8] = [],
            tags: [String] = []
        ) throws(CacheError) {
            try set(.ready(bytes), key: key, life: timeToLive, validator: validator, tags: tags)
        }

        /// The blocking form of ``DiskCache/set(forKey:timeToLive:validator:tags:bytes:)``.
        package func set(
            forKey key: CacheKey, timeToLive: Duration? = nil, validator: [UInt8] = [], tags: [String] = [],
            bytes: @escaping @Sendable () throws -> [UInt8]
        ) throws(CacheError) {
            try set(.lazy(LazyBytes(bytes)), key: key, life: timeToLive, validator: validator, tags: tags)
        }

        private func set(
            _ body: Body, key: CacheKey, life: Duration?, validator: [UInt8], tags: [String]
        ) throws(CacheError) {
            let tags = try EntryTags(tags, began: tags.isEmpty ? nil : try engine.purgeMark())
            let operation = try engine.put(body, in: format, timeToLive: life, validator: validator, tags: tags)
            engine.enqueueBlocking(operation, forKey: entryKey(key))
        }

        /// The blocking form of ``DiskCache/remove(_:)-(CacheKey)``.
        public func remove(_ key: CacheKey) { engine.enqueueBlocking(.remove, forKey: entryKey(key)) }

        /// The blocking form of ``DiskCache/removeAll()``.
        package func removeAll() throws(CacheError) {
            if isShared { try engine.removeAll(of: format) } else { try engine.removeAll() }
        }

        /// The blocking form of ``DiskCache/removeAll(tag:)``. Formats that share a directory share its tags.
        @discardableResult
        package func removeAll(tag: String) throws(CacheError) -> Int {
            try engine.removeAll(tag: try EntryTags.hash(of: tag))
        }

        /// Lets an entry's time pass now. It stays readable to callers that ask for expired ones, and is among the
        /// first to be evicted.
        package func expire(_ key: CacheKey) { engine.enqueueBlocking(engine.expiring(), forKey: entryKey(key)) }

        /// The blocking form of ``DiskCache/renew(_:timeToLive:)``.
        package func renew(_ key: CacheKey, timeToLive: Duration?) {
            engine.enqueueBlocking(engine.renewing(timeToLive, in: format), forKey: entryKey(key))
        }

        /// The blocking form of ``DiskCache/setValidator(_:forKey:)``.
        package func setValidator(_ validator: [UInt8], forKey key: CacheKey) {
            engine.enqueueBlocking(.patch(Patch(validator: validator)), forKey: entryKey(key))
        }

        /// The blocking form of ``DiskCache/flush()``.
        public func flush() throws(CacheError) { try engine.flush(format) }

        /// The blocking form of ``DiskCache/setCapacity(_:)``.
        package func setCapacity(_ capacity: ByteCount) throws(CacheError) {
            try engine.setCapacity(capacity, of: format)
        }

        /// The blocking form of ``DiskCache/size``.
        public var size: ByteCount {
            get throws(CacheError) { ByteCount(try engine.totals(of: format).bytes) }
        }

        /// The blocking form of ``DiskCache/count``.
        public var count: Int {
            get throws(CacheError) { try engine.totals(of: format).count }
        }

        /// The blocking form of ``DiskCache/entries(after:limit:)``.
        package func entries(after key: CacheKey? = nil, limit: Int = 1000) throws(CacheError) -> [EntryInfo] {
            try engine.entries(of: format, after: key, limit: limit)
        }

        /// The blocking form of ``DiskCache/verify(removingDamage:)``.
        package func verify(removingDamage: Bool) throws(CacheError) -> VerifyReport {
            try engine.verify(format, removingDamage: removingDamage)
        }
    }
}
