public import VitrineCore
public import VitrineModels

extension ObjectStore {
    private static let sharedStore = Locked<ObjectStore?>(nil)

    /// The shared store of the program. Default: `objects.sqlite` in the program's directory for data.
    ///
    /// - Throws: `PersistenceError` if the store cannot be opened.
    public static var shared: ObjectStore {
        get throws(PersistenceError) {
            try sharedStore.withLock { store throws(PersistenceError) in
                if let store { return store }
                let directory: String
                do throws(FileError) {
                    directory = try Directories.current.dataDirectory(for: "vitrine-objects")
                } catch {
                    throw .invalidName("vitrine-objects", reason: error.description)
                }
                let opened = try ObjectStore(at: FilePath.join(directory, "objects.sqlite"))
                store = opened
                return opened
            }
        }
    }

    /// Replaces the shared store.
    public static func setShared(_ store: ObjectStore) { sharedStore.withLock { $0 = store } }
}

extension PersistentRecord {
    /// The default key for an instance of the type: the persistent name and `DefaultCacheKey`.
    static var defaultCacheKey: String { persistentName + "DefaultCacheKey" }
    /// The default key for an array of the type: the persistent name and `DefaultArrayCacheKey`.
    static var defaultArrayCacheKey: String { persistentName + "DefaultArrayCacheKey" }

    /// Stores the value in the shared store.
    ///
    /// - Parameters:
    ///   - key: Default: the persistent name and `DefaultCacheKey`.
    ///   - group: Default: `standard`, for values without a group.
    public nonisolated(nonsending) func cache(
        forKey key: String? = nil, in group: GroupPath = .standard
    ) async throws(PersistenceError) {
        let key = key ?? Self.defaultCacheKey
        try await ObjectStore.shared.put(self, for: key, in: group)
        CachePlaces.shared.remember(self, key: key, group: group)
    }

    /// Returns a value in the shared store, or nil if there is none.
    ///
    /// - Parameters:
    ///   - key: Default: the persistent name and `DefaultCacheKey`.
    ///   - group: Default: `standard`, for values without a group.
    public static func objectInCache(
        forKey key: String? = nil, in group: GroupPath = .standard
    ) throws(PersistenceError) -> Self? {
        let key = key ?? defaultCacheKey
        let value = try ObjectStore.shared.object(Self.self, for: key, in: group)
        if let value { CachePlaces.shared.remember(value, key: key, group: group) }
        return value
    }

    /// Removes a value from the shared store.
    ///
    /// - Parameters:
    ///   - key: Default: the persistent name and `DefaultCacheKey`.
    ///   - group: Default: `standard`, for values without a group.
    public nonisolated(nonsending) static func removeCache(
        forKey key: String? = nil, in group: GroupPath = .standard
    ) async throws(PersistenceError) {
        try await ObjectStore.shared.remove(key ?? defaultCacheKey, in: group)
    }

    /// Stores an array in the shared store.
    ///
    /// - Parameters:
    ///   - array: The array, which replaces an existing one.
    ///   - key: Default: the persistent name and `DefaultArrayCacheKey`.
    ///   - group: Default: `standard`, for values without a group.
    ///   - maximumCount: The largest number of elements to store, from the first one. Default: all.
    public nonisolated(nonsending) static func cacheArray(
        _ array: [Self], forKey key: String? = nil, in group: GroupPath = .standard, maximumCount: Int = .max
    ) async throws(PersistenceError) {
        let kept = Array(array.prefix(max(0, maximumCount)))
        try await ObjectStore.shared.put(kept, for: key ?? defaultArrayCacheKey, in: group)
    }

    /// Returns an array in the shared store, or nil if there is none.
    ///
    /// - Parameters:
    ///   - key: Default: the persistent name and `DefaultArrayCacheKey`.
    ///   - group: Default: `standard`, for values without a group.
    public static func arrayInCache(
        forKey key: String? = nil, in group: GroupPath = .standard
    ) throws(PersistenceError) -> [Self]? {
        try ObjectStore.shared.object([Self].self, for: key ?? defaultArrayCacheKey, in: group)
    }
}

extension PersistentObject {
    /// The key of the last `PersistentRecord/cache(forKey:in:)` or `PersistentRecord/objectInCache(forKey:in:)` of
    /// this instance; nil if there was none. A copy has no key.
    public var cacheKey: String? { CachePlaces.shared.place(of: self)?.key }

    /// The group of the `cacheKey`.
    public var cacheGroup: GroupPath? { CachePlaces.shared.place(of: self)?.group }

    /// Removes the value with the `cacheKey` of the instance from the shared store. Does nothing without a key.
    public nonisolated(nonsending) func removeCache() async throws(PersistenceError) {
        guard let (key, group) = CachePlaces.shared.place(of: self) else { return }
        try await ObjectStore.shared.remove(key, in: group)
        CachePlaces.shared.forget(self)
    }
}

/// The keys under which living instances were cached or restored. Only the identity of the objects is used.
private final class CachePlaces: Sendable {
    /// A key of an object, with a weak reference to the object.
    ///
    /// Unchecked: only the identity of the object is compared, under the lock.
    private struct Place: @unchecked Sendable {
        weak var object: AnyObject?
        let key: String
        let group: GroupPath
    }

    private struct State {
        var places: [ObjectIdentifier: Place] = [:]
        /// The number of places above which those of deallocated objects are removed.
        var limit = 64
    }

    static let shared = CachePlaces()

    private let state = Locked(State())

    /// Records the key of a value if it is an object.
    func remember<Value: PersistentRecord>(_ value: Value, key: String, group: GroupPath) {
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

    func place(of object: AnyObject) -> (key: String, group: GroupPath)? {
        let identity = ObjectIdentifier(object)
        return state.withLock { state in
            // Another object could have had this address.
            guard let place = state.places[identity], let known = place.object, ObjectIdentifier(known) == identity
            else { return nil }
            return (place.key, place.group)
        }
    }

    func forget(_ object: AnyObject) {
        let identity = ObjectIdentifier(object)
        state.withLock { _ = $0.places.removeValue(forKey: identity) }
    }
}
