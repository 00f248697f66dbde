internal import VitrineCore

extension ObjectStore {
    private static let sharedStore = Locked<ObjectStore?>(nil)

    /// The store of everyone in the program who names no other: the one that was set, else `objects.sqlite` in the
    /// program's directory for data.
    ///
    /// - Throws: ``PersistenceError`` if it cannot be opened.
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

    /// Makes a store the shared one.
    public static func setShared(_ store: ObjectStore) { sharedStore.withLock { $0 = store } }
}

// In the ancestor's words.
extension PersistentRecord {
    /// The key for a type's one instance: its name and `DefaultCacheKey`.
    public static var defaultCacheKey: String { persistentName + "DefaultCacheKey" }
    /// The key for a type's one array: its name and `DefaultArrayCacheKey`.
    public static var defaultArrayCacheKey: String { persistentName + "DefaultArrayCacheKey" }

    /// Stores the value in the shared store, by default as the one of its type.
    public nonisolated(nonsending) func cache(
        forKey key: String? = nil, in group: ObjectGroup = .root
    ) async throws(PersistenceError) {
        let key = key ?? Self.defaultCacheKey
        try await ObjectStore.shared.put(self, for: key, in: group)
        CachePlaces.shared.remember(self, key, group)
    }

    /// The value in the shared store, by default the one of the type; nil if there is none.
    public static func objectInCache(
        forKey key: String? = nil, in group: ObjectGroup = .root
    ) throws(PersistenceError) -> Self? {
        let key = key ?? defaultCacheKey
        let value = try ObjectStore.shared.object(Self.self, for: key, in: group)
        if let value { CachePlaces.shared.remember(value, key, group) }
        return value
    }

    /// Removes a value from the shared store, by default the one of the type.
    public nonisolated(nonsending) static func removeCache(
        forKey key: String? = nil, in group: ObjectGroup = .root
    ) async throws(PersistenceError) {
        try await ObjectStore.shared.remove(key ?? defaultCacheKey, in: group)
    }

    /// Stores an array in the shared store, by default as the one of its type.
    ///
    /// - Parameters:
    ///   - array: Replaces the one before.
    ///   - key: Default: ``defaultArrayCacheKey``.
    ///   - group: Default: the root group.
    ///   - maximumCount: How many of its elements are stored, from the first. Default: all.
    public nonisolated(nonsending) static func cacheArray(
        _ array: [Self], forKey key: String? = nil, in group: ObjectGroup = .root, maximumCount: Int = .max
    ) async throws(PersistenceError) {
        let kept = Array(array.prefix(max(0, maximumCount)))
        try await ObjectStore.shared.put(kept, for: key ?? defaultArrayCacheKey, in: group)
    }

    /// The array in the shared store, by default the one of the type; nil if there is none.
    public static func arrayInCache(
        forKey key: String? = nil, in group: ObjectGroup = .root
    ) throws(PersistenceError) -> [Self]? {
        try ObjectStore.shared.object([Self].self, for: key ?? defaultArrayCacheKey, in: group)
    }
}
