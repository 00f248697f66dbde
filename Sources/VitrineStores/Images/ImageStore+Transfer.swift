import VitrineCore

extension ImageStore {
    /// Saves the pictures directly in a directory, under their names, as ``save(fileAt:as:replacing:)`` does.
    ///
    /// - Parameters:
    ///   - directory: Where they are. Directories below it, links and names beginning with a dot are left out; what is
    ///     no picture is a step with a failure.
    ///   - replacing: Whether pictures of the store may be replaced. Default false.
    /// - Returns: A step a file; ends with an error only if the directory cannot be read. Giving it up ends the import
    ///   after the picture it is at.
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
        return blocking.exporting(directory, version, replacing).steps(on: files.executor)
    }
}

extension ImageStore.Blocking {
    /// As ``ImageStore/importPictures(from:replacing:)``.
    ///
    /// - Parameters:
    ///   - directory: Where from.
    ///   - replacing: Whether pictures of the store may be replaced. Default false.
    ///   - step: Called after each picture; false ends the import.
    public func importPictures(
        from directory: String, replacing: Bool = false, step: (ExportProgress) -> Bool = { _ in true }
    ) throws(StoreError) {
        try importing(directory, replacing).run(step)
    }

    /// As ``ImageStore/exportPictures(to:as:replacing:)``.
    ///
    /// - Parameters:
    ///   - directory: Where to; made if it is missing.
    ///   - version: Which files. Thumbnails that are missing are made.
    ///   - replacing: Whether files there may be replaced. Default false.
    ///   - step: Called after each picture; false ends the export.
    public func exportPictures(
        to directory: String, as version: ImageStore.Version = .original, replacing: Bool = false,
        step: (ExportProgress) -> Bool = { _ in true }
    ) throws(StoreError) {
        guard store.keeps(version) else {
            return try store.files.blocking.exportFiles(to: directory, replacing: replacing, step: step)
        }
        try exporting(directory, version, replacing).run(step)
    }

    fileprivate func importing(_ directory: String, _ replacing: Bool) -> TransferPlan {
        TransferPlan { () throws(StoreError) in
            try TransferPlan.visibleFiles(in: directory)
        } body: { name throws(StoreError) in
            try save(fileAt: FilePath.join(directory, name), as: name, replacing: replacing)
        }
    }

    fileprivate func exporting(
        _ directory: String, _ version: ImageStore.Version, _ replacing: Bool
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
