import Synchronization
import VitrineCore

/// What a source gave for a key, shared by all formats that were waiting for it.
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

    /// The original's bytes as they came, if they did.
    let bytes: [UInt8]?
    /// When the original stops being fresh, since 1970, if the source said so.
    let timeToLive: Duration?
    let tag: [UInt8]
    /// Where the source lets it be kept.
    let levels: CacheLevels
    /// Whether the original may be stored for another format's sake.
    let storesOriginal: Bool
    let origin: Origin
    /// The right to store the original.
    let ticket: InvalidationRegister.Ticket
    private let decoded: Locked<Value?>
    /// Held by who decodes.
    private let decoding = Locked(())
    private let isClaimed = Atomic<Bool>(false)

    init(
        value: Value?, bytes: [UInt8]?, timeToLive: Duration?, tag: [UInt8], levels: CacheLevels, storesOriginal: Bool,
        origin: Origin, ticket: InvalidationRegister.Ticket
    ) {
        self.bytes = bytes
        self.timeToLive = timeToLive
        self.tag = tag
        self.levels = levels
        self.storesOriginal = storesOriginal
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

    /// The value, decoded once, whoever asks. May block.
    func value(decoding format: Format<Value>) throws -> Value {
        try decoding.withLock { _ in
            if let known = knownValue { return known }
            let value = try format.value(of: bytes ?? [])
            decoded.withLock { $0 = value }
            return value
        }
    }

    /// True for the first who asks: the original is stored once.
    func claimStoring() -> Bool { !isClaimed.exchange(true, ordering: .relaxed) }
}
