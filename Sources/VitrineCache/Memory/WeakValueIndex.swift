import VitrineCore

/// Finds values that a memory cache has evicted but that are alive elsewhere.
///
/// It registers every stored value with a closure that returns it while it is alive, and keeps the registration after
/// eviction. The closures may run code of the user. They are never called here, because this type is used under a lock.
@usableFromInline
package struct WeakValueIndex<Key: HashedKey, Value: Sendable>: Sendable {
    /// A value that may be alive.
    package struct Registration: Sendable {
        /// Different for each registration, also of one key.
        package let id: Int
        /// The cost of the value when it was stored.
        package let cost: Int
        /// The lifetime it was stored with.
        package var lifetime: EntryLifetime?
        /// Gives the value back while it is alive.
        package let resolve: @Sendable () -> Value?
    }

    private typealias Identity = KeyIdentity<Key>

    private var registrations: [Identity: Registration] = [:]
    private var lastID = 0
    /// From this size on it is worth looking for the dead.
    private var sweepAt = Self.smallestSweep

    private static var smallestSweep: Int { 64 }

    /// An empty index.
    package init() {}

    /// How many registrations there are, dead ones included.
    package var count: Int { registrations.count }
    /// Whether so many were added since the last sweep that dead ones should be looked for.
    package var needsSweep: Bool { registrations.count >= sweepAt }
    /// All that may be alive.
    package var all: [(key: Key, registration: Registration)] { registrations.map { ($0.key.key, $0.value) } }

    /// Registers a value under its key, in place of the one before.
    package mutating func register(
        _ key: Key, cost: Int, lifetime: EntryLifetime?, resolve: @escaping @Sendable () -> Value?
    ) {
        lastID += 1
        registrations[Identity(key: key)] = Registration(id: lastID, cost: cost, lifetime: lifetime, resolve: resolve)
    }

    /// The registration of a key, as long as its lifetime is not over.
    package mutating func registration(_ key: Key, now: Duration?) -> Registration? {
        let identity = Identity(key: key)
        guard var registration = registrations[identity] else { return nil }
        if let now, registration.lifetime?.isOver(at: now) == true {
            registrations[identity] = nil
            return nil
        }
        if now != nil { registrations[identity]?.lifetime = registration.lifetime }
        return registration
    }

    /// Whether a key has a registration, whose value may have ended.
    func holds(_ key: Key) -> Bool { registrations[Identity(key: key)] != nil }

    /// Whether a key still has this very registration.
    package func holds(_ id: Int, _ key: Key) -> Bool { registrations[Identity(key: key)]?.id == id }

    /// Forgets a key.
    package mutating func forget(_ key: Key) { registrations[Identity(key: key)] = nil }

    /// Removes the registrations that a sweep found dead, unless the key was registered again. The next sweep is due at
    /// twice the remaining number, so that sweeping costs a constant share per registration.
    package mutating func forget(dead: [(key: Key, id: Int)]) {
        for (key, id) in dead where holds(id, key) { registrations[Identity(key: key)] = nil }
        sweepAt = max(Self.smallestSweep, registrations.count * 2)
    }

    /// Puts the next sweep off while one is under way.
    package mutating func beginSweep() { sweepAt = .max }
}
