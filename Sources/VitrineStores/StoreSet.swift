/// What the blocking forms of stores of files and of pictures have in common.
protocol NamedStore {
    func exists(_ name: String) -> Bool
    func delete(_ name: String) throws(StoreError) -> Bool
    func rename(_ name: String, to newName: String, replacing: Bool) throws(StoreError)
}

extension FileStore.Blocking: NamedStore {
    /// As ``FileStore/delete(_:in:)``.
    @discardableResult
    public static func delete(_ name: String, in stores: [FileStore]) throws(StoreError) -> Int {
        try StoreSet.delete(name, in: stores.map(\.blocking))
    }

    /// As ``FileStore/rename(_:to:replacing:in:)``.
    @discardableResult
    public static func rename(
        _ name: String, to newName: String, replacing: Bool = false, in stores: [FileStore]
    ) throws(StoreError) -> Int {
        try StoreSet.rename(name, to: newName, replacing: replacing, in: stores.map(\.blocking))
    }
}

extension ImageStore.Blocking: NamedStore {
    /// As ``ImageStore/delete(_:in:)``.
    @discardableResult
    public static func delete(_ name: String, in stores: [ImageStore]) throws(StoreError) -> Int {
        try StoreSet.delete(name, in: stores.map(\.blocking))
    }

    /// As ``ImageStore/rename(_:to:replacing:in:)``.
    @discardableResult
    public static func rename(
        _ name: String, to newName: String, replacing: Bool = false, in stores: [ImageStore]
    ) throws(StoreError) -> Int {
        try StoreSet.rename(name, to: newName, replacing: replacing, in: stores.map(\.blocking))
    }
}

/// Does one thing in several stores, for example in documents and caches (R112, R114).
enum StoreSet {
    /// - Returns: In how many it was.
    /// - Throws: The first failure, after all have been tried.
    static func delete(_ name: String, in stores: [some NamedStore]) throws(StoreError) -> Int {
        try count(stores) { store throws(StoreError) in try store.delete(name) }
    }

    /// - Returns: In how many it was.
    /// - Throws: ``StoreError/notFound(name:)`` if none has it; else the first failure, after all have been tried.
    static func rename(
        _ name: String, to newName: String, replacing: Bool, in stores: [some NamedStore]
    ) throws(StoreError) -> Int {
        let count = try count(stores) { store throws(StoreError) in
            guard store.exists(name) else { return false }
            try store.rename(name, to: newName, replacing: replacing)
            return true
        }
        guard count > 0 else { throw .notFound(name: name) }
        return count
    }

    private static func count<Store: NamedStore>(
        _ stores: [Store], where body: (Store) throws(StoreError) -> Bool
    ) throws(StoreError) -> Int {
        var count = 0
        var failure: StoreError?
        for store in stores {
            do throws(StoreError) {
                if try body(store) { count += 1 }
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return count
    }
}
