internal import VitrineCore

extension PersistentObject {
    /// The key under which this instance was cached last by ``PersistentRecord/cache(forKey:in:)``, or restored by
    /// ``PersistentRecord/objectInCache(forKey:in:)``; nil if it was not. A copy has none.
    public var cacheKey: String? { CachePlaces.shared.place(of: self)?.key }

    /// The group that goes with the ``cacheKey``.
    public var cacheGroup: ObjectGroup? { CachePlaces.shared.place(of: self)?.group }

    /// Removes the instance from the shared store, from where it was cached or restored. Nothing happens if it was not.
    public nonisolated(nonsending) func removeCache() async throws(PersistenceError) {
        guard let (key, group) = CachePlaces.shared.place(of: self) else { return }
        try await ObjectStore.shared.remove(key, in: group)
        CachePlaces.shared.forget(self)
    }
}

/// Where instances were cached or restored, as long as they live.
///
/// Unchecked: a lock type. The places are touched under `lock` only, and of the objects nothing but their identity is
/// used.
final class CachePlaces: @unchecked Sendable {
    private struct Place {
        weak var object: AnyObject?
        let key: String
        let group: ObjectGroup
    }

    static let shared = CachePlaces()

    private let lock = Locked(())
    private var places: [ObjectIdentifier: Place] = [:]
    /// How many places there may be before those of objects that are gone are looked for.
    private var limit = 64

    /// Remembers where a value is, if it is an object.
    func remember<Value: PersistentRecord>(_ value: Value, _ key: String, _ group: ObjectGroup) {
        guard let object = value as? any PersistentObject else { return }
        let place = Place(object: object, key: key, group: group)
        lock.withLock { _ in
            places[ObjectIdentifier(object)] = place
            guard places.count > limit else { return }
            places = places.filter { $0.value.object != nil }
            limit = max(64, places.count * 2)
        }
    }

    func place(of object: AnyObject) -> (key: String, group: ObjectGroup)? {
        lock.withLock { _ in
            // Another object may have had this address.
            guard let place = places[ObjectIdentifier(object)], place.object === object else { return nil }
            return (place.key, place.group)
        }
    }

    func forget(_ object: AnyObject) { lock.withLock { _ in places[ObjectIdentifier(object)] = nil } }
}
