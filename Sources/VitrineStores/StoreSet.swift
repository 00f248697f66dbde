/// What stores of files and of pictures have in common.
protocol NamedStore: Sendable {
    func exists(_ name: String) async -> Bool
    func delete(_ name: String) async throws(StoreError) -> Bool
    func rename(_ name: String, to newName: String, replacing: Bool) async throws(StoreError)
}

extension FileStore: NamedStore {}
extension ImageStore: NamedStore {}

/// Does one thing in several stores, for example in documents and caches (R112, R114).
enum StoreSet {
    /// - Returns: In how many it was.
    /// - Throws: The first failure, after all have been tried.
    static func delete(_ name: String, in stores: [some NamedStore]) async throws(StoreError) -> Int {
        try await count(stores) { store throws(StoreError) in try await store.delete(name) }
    }

    /// - Returns: In how many it was.
    /// - Throws: ``StoreError/notFound(name:)`` if none has it; else the first failure, after all have been tried.
    static func rename(
        _ name: String, to newName: String, replacing: Bool, in stores: [some NamedStore]
    ) async throws(StoreError) -> Int {
        let count = try await count(stores) { store throws(StoreError) in
            guard await store.exists(name) else { return false }
            try await store.rename(name, to: newName, replacing: replacing)
            return true
        }
        guard count > 0 else { throw .notFound(name: name) }
        return count
    }

    private static func count<Store: NamedStore>(
        _ stores: [Store], where body: (Store) async throws(StoreError) -> Bool
    ) async throws(StoreError) -> Int {
        var count = 0
        var failure: StoreError?
        for store in stores {
            do throws(StoreError) {
                if try await body(store) { count += 1 }
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return count
    }
}
