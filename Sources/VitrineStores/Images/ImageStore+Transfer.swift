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
    ) -> AsyncThrowingStream<StoreTransfer, any Error> {
        let blocking = blocking
        return FileStore.transfer(files.executor, { () throws(StoreError) in
            try FileStore.visibleFiles(in: directory)
        }) {
            name throws(StoreError) in
            try blocking.save(fileAt: FilePath.join(directory, name), as: name, replacing: replacing)
        }
    }

    /// Copies all pictures, or their thumbnails, into a directory, under their names.
    ///
    /// - Parameters:
    ///   - directory: Where to; made if it is missing.
    ///   - version: Which files. Thumbnails that are missing are made.
    ///   - replacing: Whether files there may be replaced. Default false.
    public func exportPictures(
        to directory: String, as version: Version = .original, replacing: Bool = false
    ) -> AsyncThrowingStream<StoreTransfer, any Error> {
        guard keeps(version) else { return files.exportFiles(to: directory, replacing: replacing) }
        let blocking = blocking
        let target = FileStore(
            directory: directory, durability: configuration.durability, executor: files.executor).blocking
        return FileStore.transfer(files.executor, { () throws(StoreError) in try blocking.names }) { name throws(StoreError) in
            try target.save(blocking.load(name, as: version), as: name, replacing: replacing)
        }
    }
}
