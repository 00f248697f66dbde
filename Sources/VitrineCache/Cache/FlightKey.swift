import VitrineCore

/// What is shared by those who ask at the same time: the same entry, on the same terms.
struct FlightKey: Hashable, Sendable {
    let slot: MemoryKey
    /// All for the source, which is asked once whoever reads and keeps what it gives (R80).
    let levels: CacheLevels
    /// Requests made after the entry was changed do not join work that began before.
    let epoch: InvalidationRegister.Epoch
    /// Whether stored values count as missing.
    let isRefresh: Bool
}

extension Cache {
    /// Those who ask for an entry now.
    func flightKey(_ slot: MemoryKey, _ levels: CacheLevels, isRefresh: Bool = false) -> FlightKey {
        FlightKey(slot: slot, levels: levels, epoch: register.epoch(of: slot), isRefresh: isRefresh)
    }

    /// Those who wait for what the source says of a key.
    func sourceFlightKey(_ key: CacheKey, isRefresh: Bool = false) -> FlightKey {
        flightKey(original.slot(key), .all, isRefresh: isRefresh)
    }
}

/// Why a value is loaded.
enum LoadReason: Sendable {
    /// Nothing is stored that counts.
    case missing
    /// What is stored is to be replaced.
    case refresh
    /// The same, after the stored value was given.
    case background

    var isRefresh: Bool { self != .missing }
}

/// What a load gave.
struct Loaded<Value: Sendable>: Sendable {
    /// Where the value comes from.
    enum Origin: Sendable {
        /// From the source, as something new.
        case source
        /// From a level, or the source has said that what is stored is still right.
        case stored
        /// From a level, although its time has passed.
        case stale
    }

    let value: Value
    let origin: Origin
}
