import Logging
import VitrineCore

/// The entries of a cache: its formats, their levels in memory and on disk, and all changes of them.
///
/// Every load holds the storage, so that the disk is not given up before the last value is stored. A change of an entry
/// takes the lock of ``register`` first, then those of the memory level and of the queue of the disk.
final class EntryStorage<Value: CacheableValue>: Sendable {
    /// The name of the cache, for the log.
    let name: String
    let directory: String
    let configuration: CacheConfiguration
    let original: FormatArea<Value>
    let formats: FormatTable<Value>
    /// The memory level of all formats without a capacity of their own.
    let sharedMemory: MemoryCache<MemoryKey, Value>
    /// The memory hits that the disk does not know yet; nil if it is not told.
    let hits: MemoryHitRecorder?
    /// The disk level of all formats.
    let disk: DiskEngine
    /// The running loads, which a change of their entry keeps from storing.
    let register = InvalidationRegister()
    let metrics: CacheMetrics
    let log = Log.logger("cache")

    init(name: String, directory: String, configuration: CacheConfiguration) {
        self.name = name
        self.directory = directory
        self.configuration = configuration
        sharedMemory = Self.memory(configuration.memoryCapacity, configuration)
        metrics = CacheMetrics(cache: name)
        hits = configuration.memoryHits == .leaveDisk ? nil : MemoryHitRecorder()
        // Twice as much as a format may keep is room for the originals and for what is made from them.
        let total = configuration.totalDiskCapacity.map { FormatRegistry.Total.exactly($0.bytes) }
        disk = DiskEngine(
            directory: directory, configuration: configuration.disk(),
            total: total ?? .atLeast((configuration.diskCapacity * 2).bytes), hadFormatDirectories: true)
        original = Self.area(.original, id: 0, shared: sharedMemory, engine: disk, configuration: configuration)
        formats = FormatTable(original: original)
    }

    deinit {
        // The disk level writes its queue in any case. It needs the memory hits that it does not know yet.
        reportMemoryHits()
        disk.retire()
    }

    // MARK: Formats

    /// Returns the area of a registered format.
    func area(_ name: FormatName) throws(CacheError) -> FormatArea<Value> {
        guard let area = formats[name] else { throw .formatNotFound(name) }
        return area
    }

    /// Adds a format; returns false if its name is taken.
    func addFormat(_ format: CacheFormat<Value>) -> Bool {
        let area = formats.add(format.name) { id in
            Self.area(format, id: id, shared: sharedMemory, engine: disk, configuration: configuration)
        }
        return area != nil
    }

    /// Forgets a format and empties its memory.
    func removeFormat(_ name: FormatName) {
        guard let area = formats.remove(name) else { return }
        _ = register.changeAll(format: area.id) { area.takeMemory() }
    }

    private static func memory(
        _ capacity: ByteCount, _ configuration: CacheConfiguration
    ) -> MemoryCache<MemoryKey, Value> {
        MemoryCache(
            .init(
                capacity: capacity, trimsOn: configuration.memoryPressure, budget: configuration.memoryBudget,
                clock: configuration.clock),
            weakReference: Value.weakReference)
    }

    private static func area(
        _ format: CacheFormat<Value>, id: Int, shared: MemoryCache<MemoryKey, Value>, engine: DiskEngine,
        configuration: CacheConfiguration
    ) -> FormatArea<Value> {
        let disk = DiskCache(
            engine, format: format.name.description, capacity: format.diskCapacity ?? configuration.diskCapacity)
        let own = format.memoryCapacity.map { memory($0, configuration) }
        return FormatArea(
            format, id: id, memory: own ?? shared, sharesMemory: own == nil, disk: disk,
            executor: configuration.executor)
    }

    // MARK: Times

    /// Returns how long an entry of a format is fresh; nil for ever.
    func lifetime(_ timeToLive: Duration?, in area: FormatArea<Value>) -> Duration? {
        timeToLive ?? area.format.timeToLive ?? configuration.timeToLive
    }

    /// Returns the time, since 1970, at which a value stored now expires.
    func expiry(_ timeToLive: Duration?, in area: FormatArea<Value>) -> Duration? {
        lifetime(timeToLive, in: area).map { configuration.clock.now + $0 }
    }

    /// Returns how long an entry that expires at a time, since 1970, is fresh from now on.
    func remainingLifetime(until expires: Duration?) -> Duration? {
        expires.map { max(.zero, $0 - configuration.clock.now) }
    }

    // MARK: Memory hits

    /// Reports the collected memory hits to the disk levels.
    func reportMemoryHits() {
        if let hits { reportHits(hits.take()) }
    }

    /// Reports memory hits to the disk levels.
    func reportHits(_ slots: [MemoryKey]) {
        guard !slots.isEmpty else { return }
        let restores = configuration.memoryHits == .restoreMissing
        let areas = Dictionary(formats.all.map { ($0.id, $0) }) { first, _ in first }
        for slot in Set(slots) {
            guard let area = areas[slot.format] else { continue }
            area.disk.touch(slot.key)
            if restores { restoreEntry(slot, in: area) }
        }
        publishMetrics()
    }

    /// Writes an entry that memory has and the disk has not.
    private func restoreEntry(_ slot: MemoryKey, in area: FormatArea<Value>) {
        guard configuration.levels.contains(.writeDisk) else { return }
        configuration.executor.submit { [weak self] in
            guard let self, (try? area.disk.blocking.contains(slot.key)) == false else { return }
            let ticket = register.begin(slot)
            guard let (value, tags) = area.memory.peekTagged(slot) else { return }
            let put = try? area.disk.engine.put(
                encodedBody(of: value, in: area.format), in: area.disk.format, timeToLive: lifetime(nil, in: area),
                validator: [], tags: tags)
            if let put { _ = ticket.ifValid(tags) { area.pendingWrites.send(put, forKey: slot.key) } }
        }
    }

    // MARK: Metrics

    /// Brings the counters in swift-metrics up to date.
    func publishMetrics() { metrics.publish(metricsSnapshot) }

    /// The counters behind the metrics.
    var metricsSnapshot: CacheMetrics.Snapshot {
        var snapshot = CacheMetrics.Snapshot()
        snapshot.memory = sharedMemory.statistics
        for area in formats.all {
            if !area.sharesMemory { snapshot.memory.add(area.memory.statistics) }
            snapshot.disk.add(area.disk.format.counters.statistics)
        }
        // Evictions from formats that are not registered here, and replaced databases.
        snapshot.disk.add(disk.formats.counters.statistics)
        snapshot.memoryBytes = memorySize.bytes
        return snapshot
    }

    /// The size of the values in memory.
    var memorySize: ByteCount {
        var total = ByteCount(sharedMemory.totalCost)
        for area in formats.all where !area.sharesMemory { total += ByteCount(area.memory.totalCost) }
        return total
    }
}

/// Collects memory hits and reports them to the disk level in batches. Without this, the entries used most would look
/// unused to eviction and audits on disk, because memory serves them.
@usableFromInline
package final class MemoryHitRecorder: Sendable {
    /// How many hits are collected at most.
    package static let limit = 256

    private let state = Locked<[MemoryKey]>([])

    package init() {}

    /// Records a hit.
    ///
    /// - Returns: A full batch, now and then, which the caller passes on.
    @usableFromInline
    package func record(_ slot: MemoryKey) -> [MemoryKey]? {
        state.withLock { hits -> [MemoryKey]? in
            // The same entry twice in a row is one use.
            if let last = hits.last, last == slot { return nil }
            if hits.capacity < Self.limit { hits.reserveCapacity(Self.limit) }
            hits.append(slot)
            guard hits.count >= Self.limit else { return nil }
            defer { hits = [] }
            return hits
        }
    }

    /// Returns the hits collected so far.
    package func take() -> [MemoryKey] {
        state.withLock { hits in
            defer { hits = [] }
            return hits
        }
    }
}
