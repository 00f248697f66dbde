import VitrineCore

extension ImageStore {
    /// Saves the images of a directory under their names, like ``save(fileAt:as:replacing:)``.
    ///
    /// - Parameters:
    ///   - directory: The directory. Directories inside it, links and names beginning with a dot are skipped. A file
    ///     that is not an image is a step with a failure.
    ///   - replacing: Whether to replace images of the store. Default false.
    /// - Returns: One step per file. Throws only if the directory cannot be read. Ending the iteration ends the import
    ///   after the current image.
    public func importPictures(
        from directory: String, replacing: Bool = false
    ) -> AsyncThrowingStream<ExportProgress, any Error> {
        blocking.importing(directory, replacing).steps(on: files.executor)
    }

    /// Copies all pictures, or their thumbnails, into a directory, under their names.
    ///
    /// - Parameters:
    ///   - directory: Where to; made if it is missing.
    ///   - version: Which files. Thumbnails that are missing are made.
    ///   - replacing: Whether files there may be replaced. Default false.
    public func exportPictures(
        to directory: String, as version: Version = .original, replacing: Bool = false
    ) -> AsyncThrowingStream<ExportProgress, any Error> {
        guard keeps(version) else { return files.exportFiles(to: directory, replacing: replacing) }
        return blocking.exporting(directory, version: version, replacing: replacing).steps(on: files.executor)
    }
}

extension ImageStore.Blocking {
    fileprivate func importing(_ directory: String, _ replacing: Bool) -> TransferPlan {
        TransferPlan { () throws(StoreError) in
            try TransferPlan.visibleFiles(in: directory)
        } body: { name throws(StoreError) in
            try save(fileAt: FilePath.join(directory, name), as: name, replacing: replacing)
        }
    }

    fileprivate func exporting(
        _ directory: String, version: ImageStore.Version, replacing: Bool
    ) -> TransferPlan {
        let target = FileStore(
            directory: directory, durability: store.configuration.durability, executor: store.files.executor
        ).blocking
        return TransferPlan { () throws(StoreError) in
            try names
        } body: { name throws(StoreError) in
            try target.save(load(name, as: version), as: name, replacing: replacing)
        }
    }
}

/// The common blocking calls of file stores and image stores.
protocol NamedStore {
    func exists(_ name: String) -> Bool
    func delete(_ name: String) throws(StoreError) -> Bool
    func rename(_ name: String, to newName: String, replacing: Bool) throws(StoreError)
}

extension FileStore.Blocking: NamedStore {}
extension ImageStore.Blocking: NamedStore {}

/// Performs an operation in several stores, for example in documents and caches.
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
