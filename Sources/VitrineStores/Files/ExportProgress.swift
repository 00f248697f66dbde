import VitrineCore

/// One step of an import into a store or an export out of it.
public struct ExportProgress: Sendable {
    /// The file it concerns: its name in the store.
    public let name: String
    /// Files done, this one included.
    public let done: Int
    /// Files in all.
    public let total: Int
    /// Why this file could not be copied; nil if it was. The others go on.
    public let failure: StoreError?
}

extension FileStore {
    /// Copies the files directly in a directory into the store, under their names.
    ///
    /// ```swift
    /// for try await step in store.importFiles(from: "/media/card/DCIM") {
    ///     print(step.name, step.failure.map { "\($0)" } ?? "ok", "\(step.done)/\(step.total)")
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - directory: Where they are. Directories below it, links and names beginning with a dot are left out.
    ///   - replacing: Whether files of the store may be replaced. Default false.
    /// - Returns: A step a file; ends with an error only if the directory cannot be read. Giving it up ends the import
    ///   after the file it is at.
    public func importFiles(
        from directory: String, replacing: Bool = false
    ) -> AsyncThrowingStream<ExportProgress, any Error> {
        blocking.importing(directory, replacing).steps(on: executor)
    }

    /// Copies all files of the store into a directory, under their names.
    ///
    /// - Parameters:
    ///   - directory: Where to; made if it is missing.
    ///   - replacing: Whether files there may be replaced. Default false.
    public func exportFiles(
        to directory: String, replacing: Bool = false
    ) -> AsyncThrowingStream<ExportProgress, any Error> {
        blocking.exporting(directory, replacing).steps(on: executor)
    }
}

extension FileStore.Blocking {
    /// As ``FileStore/importFiles(from:replacing:)``.
    ///
    /// - Parameters:
    ///   - directory: Where from.
    ///   - replacing: Whether files there may be replaced. Default false.
    ///   - step: Called after each file; false ends the import.
    public func importFiles(
        from directory: String, replacing: Bool = false, step: (ExportProgress) -> Bool = { _ in true }
    ) throws(StoreError) {
        try importing(directory, replacing).run(step)
    }

    /// As ``FileStore/exportFiles(to:replacing:)``.
    ///
    /// - Parameters:
    ///   - directory: Where to; made if it is missing.
    ///   - replacing: Whether files there may be replaced. Default false.
    ///   - step: Called after each file; false ends the export.
    public func exportFiles(
        to directory: String, replacing: Bool = false, step: (ExportProgress) -> Bool = { _ in true }
    ) throws(StoreError) {
        try exporting(directory, replacing).run(step)
    }

    fileprivate func importing(_ directory: String, _ replacing: Bool) -> TransferPlan {
        TransferPlan { () throws(StoreError) in
            try TransferPlan.visibleFiles(in: directory)
        } body: { name throws(StoreError) in
            try save(fileAt: FilePath.join(directory, name), as: name, replacing: replacing)
        }
    }

    fileprivate func exporting(_ directory: String, _ replacing: Bool) -> TransferPlan {
        let target = FileStore(directory: directory, durability: store.durability, executor: store.executor).blocking
        return TransferPlan { () throws(StoreError) in
            try names
        } body: { name throws(StoreError) in
            try target.save(fileAt: regularFile(name), as: name, replacing: replacing)
        }
    }
}
