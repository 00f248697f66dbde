import Synchronization
import VitrineCore

/// A wanted value, as the steps of its load share it.
struct Lookup<Value: CacheableValue>: Sendable {
    let key: CacheKey
    let area: FormatArea<Value>
    /// The levels to read and write.
    private(set) var levels: CacheLevels
    /// The priority of the callers, which can change during the load.
    private(set) var priority: PrioritySource

    init(key: CacheKey, area: FormatArea<Value>, levels: CacheLevels, priority: PrioritySource) {
        self.key = key
        self.area = area
        self.levels = levels
        self.priority = priority
    }

    /// Where the entry is in memory.
    var slot: MemoryKey { area.slot(key) }

    /// Returns the lookup within levels.
    func limited(to levels: CacheLevels) -> Lookup {
        var limited = self
        limited.levels.formIntersection(levels)
        return limited
    }

    /// Returns the lookup with the priority of a shared step.
    func following(_ priority: PrioritySource) -> Lookup {
        var following = self
        following.priority = priority
        return following
    }
}

/// The result of a source for a key, shared by all formats that wait for it.
final class SourceResult<Value: CacheableValue>: Sendable {
    /// Where the original comes from.
    enum Origin: Sendable {
        /// From the source: it is not stored yet.
        case source
        /// From the disk, and up to date.
        case stored
        /// From the disk, although its time has passed. Nothing made from it is stored.
        case stale(refreshing: Bool)
    }

    /// The terms on which the original, and all values that are made from it, may be kept.
    struct Properties: Sendable {
        /// How long the original is fresh, if the source said so.
        let timeToLive: Duration?
        let validator: [UInt8]
        /// The tags of the original and of the values that are made from it.
        let tags: EntryTags
        /// Where the source lets it be kept.
        let levels: CacheLevels
        /// Whether the original may be stored for another format's sake.
        let storesOriginal: Bool
    }

    /// The original's bytes as they came, if they did.
    let bytes: [UInt8]?
    let properties: Properties
    let origin: Origin
    /// The right to store the original.
    let ticket: InvalidationRegister.Ticket
    private let decoded: Locked<Value?>
    /// Held during the decoding, so that it happens once.
    private let decoding = Locked(())
    private let isClaimed = Atomic<Bool>(false)

    init(
        value: Value?, bytes: [UInt8]?, properties: Properties, origin: Origin, ticket: InvalidationRegister.Ticket
    ) {
        self.bytes = bytes
        self.properties = properties
        self.origin = origin
        self.ticket = ticket
        decoded = Locked(value)
    }

    /// Whether the original has to be stored.
    var isNew: Bool { if case .source = origin { true } else { false } }

    /// Whether its time has passed.
    var isStale: Bool { if case .stale = origin { true } else { false } }

    /// The value, if the source gave it or someone has decoded it.
    var knownValue: Value? { decoded.withLock { $0 } }

    /// Returns the value, decoding it once for all callers. May block.
    func value(decoding format: CacheFormat<Value>) throws -> Value {
        try decoding.withLock { _ in
            if let known = knownValue { return known }
            let value = try format.value(of: bytes ?? [])
            decoded.withLock { $0 = value }
            return value
        }
    }

    /// Returns true to the first caller only, which then stores the original.
    func claimStoring() -> Bool { !isClaimed.exchange(true, ordering: .relaxed) }
}

/// A fetcher or closure without its type.
struct AnySource<Value: CacheableValue>: Sendable {
    let storesOriginal: Bool
    let revalidates: Bool
    let levels: CacheLevels
    let bounds: String
    /// Whether its values may have tags.
    let mayHaveTags: Bool
    let fetch: @Sendable (FetchContext) async throws -> FetchResult<Value>

    init(_ fetcher: some Fetcher<Value>) {
        storesOriginal = fetcher.storesOriginal
        revalidates = fetcher.revalidates
        levels = fetcher.levels
        bounds = fetcher.bounds
        mayHaveTags = true
        fetch = { try await fetcher.fetch($0) }
    }

    init(timeToLive: Duration?, tags: [String], _ load: @escaping @Sendable () async throws -> Value) {
        storesOriginal = true
        revalidates = false
        levels = .all
        bounds = ""
        mayHaveTags = !tags.isEmpty
        fetch = { _ in FetchResult(value: try await load(), timeToLive: timeToLive, tags: tags) }
    }
}

/// The identity of a shared load: the same entry under the same conditions.
struct FlightKey: Hashable, Sendable {
    let slot: MemoryKey
    /// All levels for a fetch, which is shared by requests with different levels.
    let levels: CacheLevels
    /// Requests made after the entry was changed do not join work that began before.
    let epoch: InvalidationRegister.Epoch
    /// Whether stored values count as missing.
    let isRefresh: Bool
    /// The bounds of the source; empty for lookups.
    let bounds: String

    /// The identity of a load that begins now.
    init(
        _ slot: MemoryKey, levels: CacheLevels, isRefresh: Bool, bounds: String, in register: InvalidationRegister
    ) {
        self.slot = slot
        self.levels = levels
        epoch = register.epoch(of: slot)
        self.isRefresh = isRefresh
        self.bounds = bounds
    }

    /// Returns whether both are the same but for the bounds.
    func isSame(as other: FlightKey) -> Bool {
        slot == other.slot && levels == other.levels && epoch == other.epoch && isRefresh == other.isRefresh
    }
}

/// Why a value is loaded.
enum LoadReason: Sendable {
    /// Nothing is stored that counts.
    case missing
    /// The stored value is to be replaced.
    case refresh
    /// The stored value was returned, and is to be replaced.
    case background

    var isRefresh: Bool { self != .missing }
}

/// The result of a load.
struct Loaded<Value: Sendable>: Sendable {
    /// Where the value comes from.
    enum Origin: Sendable {
        /// From the source, as something new.
        case source
        /// From a level, or confirmed as unchanged by the source.
        case stored
        /// From a level, although its time has passed.
        case stale
    }

    let value: Value
    let origin: Origin
}
