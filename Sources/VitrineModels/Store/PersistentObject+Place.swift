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

/// Where instances were cached or restored, as long as they live. Of the objects nothing but their identity is used.
final class CachePlaces: Sendable {
    /// An object that is not kept alive.
    ///
    /// Unchecked: only its identity is compared, under the lock.
    private struct Place: @unchecked Sendable {
        weak var object: AnyObject?
        let key: String
        let group: ObjectGroup
    }

    private struct State {
        var places: [ObjectIdentifier: Place] = [:]
        /// How many places there may be before those of objects that are gone are looked for.
        var limit = 64
    }

    static let shared = CachePlaces()

    private let state = Locked(State())

    /// Remembers where a value is, if it is an object.
    func remember<Value: PersistentRecord>(_ value: Value, _ key: String, _ group: ObjectGroup) {
        guard let object = value as? any PersistentObject else { return }
        let place = Place(object: object, key: key, group: group)
        let identity = ObjectIdentifier(object)
        state.withLock { state in
            state.places[identity] = place
            guard state.places.count > state.limit else { return }
            state.places = state.places.filter { $0.value.object != nil }
            state.limit = max(64, state.places.count * 2)
        }
    }

    func place(of object: AnyObject) -> (key: String, group: ObjectGroup)? {
        let identity = ObjectIdentifier(object)
        return state.withLock { state in
            // Another object may have had this address.
            guard let place = state.places[identity], let known = place.object, ObjectIdentifier(known) == identity else {
                return nil
            }
            return (place.key, place.group)
        }
    }

    func forget(_ object: AnyObject) {
        let identity = ObjectIdentifier(object)
        state.withLock { _ = $0.places.removeValue(forKey: identity) }
    }
}
