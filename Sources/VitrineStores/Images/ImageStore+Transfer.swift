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
    public func importImages(
        from directory: String, replacing: Bool = false
    ) -> AsyncThrowingStream<ExportProgress, any Error> {
        blocking.importing(directory, replacing).steps(on: files.executor)
    }

    /// Copies all images, or their thumbnails, into a directory, under their names.
    ///
    /// - Parameters:
    ///   - directory: Where to; made if it is missing.
    ///   - version: Which files. Thumbnails that are missing are made.
    ///   - replacing: Whether files there may be replaced. Default false.
    public func exportImages(
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
