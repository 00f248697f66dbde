public import VitrineStores

extension FileStore {
    /// Deletes a file in several stores, for example in documents and caches.
    ///
    /// - Returns: The number of stores that had the file.
    /// - Throws: The first error, after all stores have been tried.
    @discardableResult
    public static func delete(_ name: String, in stores: [FileStore]) async throws(StoreError) -> Int {
        try await deleteInAll(name, stores)
    }

    /// Renames a file in all stores that have it.
    ///
    /// - Returns: The number of stores that had the file.
    /// - Throws: `StoreError.notFound` if none has it, or the first error after all have been tried.
    @discardableResult
    public static func rename(
        _ name: String, to newName: String, replacing: Bool = false, in stores: [FileStore]
    ) async throws(StoreError) -> Int {
        try await renameInAll(name, to: newName, replacing: replacing, stores)
    }
}

extension ImageStore {
    /// Deletes an image in several stores, for example in documents and caches.
    ///
    /// - Returns: The number of stores that had the image.
    /// - Throws: The first error, after all stores have been tried.
    @discardableResult
    public static func delete(_ name: String, in stores: [ImageStore]) async throws(StoreError) -> Int {
        try await deleteInAll(name, stores)
    }

    /// Renames an image in all stores that have it.
    ///
    /// - Returns: The number of stores that had the image.
    /// - Throws: `StoreError.notFound` if none has it, or the first error after all have been tried.
    @discardableResult
    public static func rename(
        _ name: String, to newName: String, replacing: Bool = false, in stores: [ImageStore]
    ) async throws(StoreError) -> Int {
        try await renameInAll(name, to: newName, replacing: replacing, stores)
    }
}

/// The requirements of the functions for several stores on each of them.
private protocol NamedStore {
    func delete(_ name: String) async throws(StoreError) -> Bool
    func exists(_ name: String) async -> Bool
    func rename(_ name: String, to newName: String, replacing: Bool) async throws(StoreError)
}

extension FileStore: NamedStore {}
extension ImageStore: NamedStore {}

private func deleteInAll(_ name: String, _ stores: [some NamedStore]) async throws(StoreError) -> Int {
    try await count(stores) { store throws(StoreError) in try await store.delete(name) }
}

private func renameInAll(
    _ name: String, to newName: String, replacing: Bool, _ stores: [some NamedStore]
) async throws(StoreError) -> Int {
    let count = try await count(stores) { store throws(StoreError) in
        guard await store.exists(name) else { return false }
        try await store.rename(name, to: newName, replacing: replacing)
        return true
    }
    guard count > 0 else { throw .notFound(name: name) }
    return count
}

/// Returns the number of stores for which the body is true.
///
/// - Throws: The first error, after all stores have been tried.
private func count<Store>(
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
