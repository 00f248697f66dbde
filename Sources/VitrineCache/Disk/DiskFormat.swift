import Synchronization
import VitrineCore

/// A format in a disk engine: its number in keys, its limit and its counters.
///
/// The number is derived from the name, so that it is the same in every process.
final class DiskFormat: Sendable {
    let name: String
    /// The hash of the name; never 0.
    let id: Int64
    /// The most bytes its entries may count.
    let limit: Atomic<Int>
    /// How long its entries are fresh unless their puts say otherwise.
    let timeToLive: Duration?
    let counters = Counters()
    let sizes = SizeBroadcast()
    /// The first failure since the last flush.
    let failure = Locked<CacheError?>(nil)

    init(_ name: String, capacity: ByteCount, timeToLive: Duration?) {
        self.name = name
        id = Self.id(of: name)
        limit = Atomic(capacity.bytes)
        self.timeToLive = timeToLive
    }

    static func id(of name: String) -> Int64 {
        let hash = Int64(bitPattern: StableHash.hash(name))
        return hash == 0 ? 1 : hash
    }

    // MARK: Identifiers of entries

    /// The identifiers of a format's entries lie together, so that they are listed and removed by ranges: 15 bits of
    /// the format, then 48 of the key, which differ from format to format.
    static func entryID(format: Int64, hash: UInt64) -> Int64 {
        let format = UInt64(bitPattern: format)
        return Int64(bitPattern: (format >> 49) << 48 | (hash ^ (format &* 0x9E37_79B9_7F4A_7C15)) >> 16)
    }

    /// The range of a format's identifiers. Another format may have the same: rows also tell their format.
    static func entryIDs(of format: Int64) -> ClosedRange<Int64> {
        let first = Int64(bitPattern: (UInt64(bitPattern: format) >> 49) << 48)
        return first...(first | 0xFFFF_FFFF_FFFF)
    }

    var entryIDs: ClosedRange<Int64> { Self.entryIDs(of: id) }
}

/// The identity of an entry: its key and format.
struct EntryKey: Sendable, Hashable {
    let key: CacheKey
    let format: DiskFormat
    /// Names its row and its file.
    let id: Int64

    init(_ key: CacheKey, _ format: DiskFormat) {
        self.key = key
        self.format = format
        id = DiskFormat.entryID(format: format.id, hash: key.hash)
    }

    static func == (one: EntryKey, other: EntryKey) -> Bool {
        one.id == other.id && one.format.id == other.format.id && one.key == other.key
    }

    func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

/// Counts the operations of a disk cache in one format. The lock is taken once per batch.
final class Counters: Sendable {
    private let counts = Locked(DiskCache.Statistics())
    private let hits = Atomic<Int>(0)
    private let misses = Atomic<Int>(0)

    func hit() { hits.wrappingAdd(1, ordering: .relaxed) }
    func miss() { misses.wrappingAdd(1, ordering: .relaxed) }

    func add(_ change: (inout DiskCache.Statistics) -> Void) { counts.withLock { change(&$0) } }

    var statistics: DiskCache.Statistics {
        var statistics = counts.withLock { $0 }
        statistics.hits = hits.load(ordering: .relaxed)
        statistics.misses = misses.load(ordering: .relaxed)
        return statistics
    }
}

/// Broadcasts the size of a cache to subscribers.
final class SizeBroadcast: Sendable {
    private struct State {
        var size: Int?
        var nextID = 0
        var listeners: [Int: AsyncStream<ByteCount?>.Continuation] = [:]
    }

    private let state = Locked(State())

    deinit {
        for listener in state.withLock({ $0.listeners.values.map { $0 } }) { listener.finish() }
    }

    /// Returns a stream that starts with the current size.
    func stream() -> AsyncStream<ByteCount?> {
        let (stream, continuation) = AsyncStream.makeStream(of: ByteCount?.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { state in
            let id = state.nextID
            state.nextID += 1
            state.listeners[id] = continuation
            continuation.yield(state.size.map { ByteCount($0) })
            continuation.onTermination = { [weak self] _ in
                self?.remove(id)
            }
        }
        return stream
    }

    private func remove(_ id: Int) { state.withLock { _ = $0.listeners.removeValue(forKey: id) } }

    /// Whether the size is known.
    var isKnown: Bool { state.withLock { $0.size != nil } }

    /// Tells a size, if it is news.
    func send(_ size: Int) {
        state.withLock { state in
            guard state.size != size else { return }
            state.size = size
            for listener in state.listeners.values { listener.yield(ByteCount(size)) }
        }
    }
}
