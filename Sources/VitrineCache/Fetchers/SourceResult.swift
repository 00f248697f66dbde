import Synchronization
import VitrineCore

/// What a source gave for a key, shared by all formats that were waiting for it.
final class SourceResult<Value: CacheableValue>: Sendable {
    /// The original's bytes as they came, if they did.
    let bytes: [UInt8]?
    /// When the original stops being fresh, since 1970, if the source said so.
    let timeToLive: Duration?
    let tag: [UInt8]
    /// Where the source lets it be kept.
    let levels: CacheLevels
    /// Whether the original may be stored for another format's sake.
    let storesOriginal: Bool
    /// Whether it is the stored original, which is up to date already.
    let isStored: Bool
    /// The right to store the original.
    let ticket: LoadRegister.Ticket
    private let decoded: Locked<Value?>
    private let isClaimed = Atomic<Bool>(false)

    init(
        value: Value?, bytes: [UInt8]?, timeToLive: Duration?, tag: [UInt8], levels: CacheLevels, storesOriginal: Bool,
        isStored: Bool, ticket: LoadRegister.Ticket
    ) {
        self.bytes = bytes
        self.timeToLive = timeToLive
        self.tag = tag
        self.levels = levels
        self.storesOriginal = storesOriginal
        self.isStored = isStored
        self.ticket = ticket
        decoded = Locked(value)
    }

    /// The value, if the source gave it or someone has decoded it.
    var knownValue: Value? { decoded.withLock { $0 } }

    /// The value, decoded if nobody has yet. May block.
    func value(decoding format: Format<Value>) throws -> Value {
        if let known = knownValue { return known }
        let value = try format.value(of: bytes ?? [])
        decoded.withLock { $0 = value }
        return value
    }

    /// True for the first who asks: the original is stored once.
    func claimStoring() -> Bool { !isClaimed.exchange(true, ordering: .relaxed) }
}
