import VitrineCore

/// A step of an import into a store, or of an export from it.
public struct ExportProgress: Sendable {
    /// The name of the entry in the store.
    public let name: String
    /// The number of transferred entries, including this one.
    public let done: Int
    /// The number of all entries.
    public let total: Int
    /// The error of this entry; nil if it was transferred. The transfer continues in any case.
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
    ///   - directory: The directory. Directories inside it, links and names beginning with a dot are skipped.
    ///   - replacing: Whether to replace files of the store. Default false.
    /// - Returns: One step per file. Throws only if the directory cannot be read. Ending the iteration ends the import
    ///   after the current file.
    public func importFiles(
        from directory: String, replacing: Bool = false
    ) -> AsyncThrowingStream<ExportProgress, any Error> {
        blocking.importing(directory, replacing).steps(on: executor)
    }

    /// Copies all files of the store into a directory, under their names.
    ///
    /// - Parameters:
    ///   - directory: The directory, which is created if needed.
    ///   - replacing: Whether to replace existing files. Default false.
    public func exportFiles(
        to directory: String, replacing: Bool = false
    ) -> AsyncThrowingStream<ExportProgress, any Error> {
        blocking.exporting(directory, replacing).steps(on: executor)
    }
}

extension FileStore.Blocking {
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

/// The steps of an import or export, one for each name.
struct TransferPlan: Sendable {
    /// Returns the names; called before the first step.
    var names: @Sendable () throws(StoreError) -> [String]
    /// Transfers one entry.
    var body: @Sendable (String) throws(StoreError) -> Void

    /// The regular files directly in a directory whose names do not begin with a dot, by name.
    static func visibleFiles(in directory: String) throws(StoreError) -> [String] {
        do throws(FileError) {
            return try Directory.names(ofFilesIn: directory).filter { $0.utf8.first != UInt8(ascii: ".") }
        } catch {
            throw .file(error)
        }
    }

    /// Runs on threads that may block, one step for each element that is requested.
    func steps(on executor: BlockingExecutor) -> AsyncThrowingStream<ExportProgress, any Error> {
        let progress = Locked<Progress?>(nil)
        return AsyncThrowingStream {
            try await executor.run { () throws(StoreError) in
                let known = progress.withLock { $0 }
                var state = if let known { known } else { Progress(names: try names()) }
                let step = state.next(body)
                progress.withLock { $0 = state }
                return step
            }
        }
    }

    private struct Progress {
        let names: [String]
        var done = 0

        mutating func next(_ body: (String) throws(StoreError) -> Void) -> ExportProgress? {
            guard done < names.count else { return nil }
            let name = names[done]
            var failure: StoreError?
            do throws(StoreError) { try body(name) } catch { failure = error }
            done += 1
            return ExportProgress(name: name, done: done, total: names.count, failure: failure)
        }
    }
}
