import VitrineCore

/// One step of an import into a store or an export out of it.
public struct StoreTransfer: Sendable {
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
    ) -> AsyncThrowingStream<StoreTransfer, any Error> {
        let blocking = blocking
        return Self.transfer(executor, { () throws(StoreError) in try Self.visibleFiles(in: directory) }) { name throws(StoreError) in
            try blocking.save(fileAt: FilePath.join(directory, name), as: name, replacing: replacing)
        }
    }

    /// Copies all files of the store into a directory, under their names.
    ///
    /// - Parameters:
    ///   - directory: Where to; made if it is missing.
    ///   - replacing: Whether files there may be replaced. Default false.
    public func exportFiles(
        to directory: String, replacing: Bool = false
    ) -> AsyncThrowingStream<StoreTransfer, any Error> {
        let blocking = blocking
        let target = FileStore(directory: directory, durability: durability, executor: executor).blocking
        return Self.transfer(executor, { () throws(StoreError) in try blocking.names }) { name throws(StoreError) in
            try target.save(fileAt: blocking.regularFile(name), as: name, replacing: replacing)
        }
    }

    static func visibleFiles(in directory: String) throws(StoreError) -> [String] {
        do throws(FileError) {
            return try Directory.names(ofFilesIn: directory).filter { !$0.hasPrefix(".") }.sorted()
        } catch {
            throw .file(error)
        }
    }

    /// Does something to one name after the other, on a thread that may block, as far as somebody asks for the next.
    static func transfer(
        _ executor: BlockingExecutor, _ names: @escaping @Sendable () throws(StoreError) -> [String],
        _ body: @escaping @Sendable (String) throws(StoreError) -> Void
    ) -> AsyncThrowingStream<StoreTransfer, any Error> {
        let progress = Locked<(names: [String], done: Int)?>(nil)
        return AsyncThrowingStream {
            try await executor.run { () throws(StoreError) in
                var state = (names: [String](), done: 0)
                if let known = progress.withLock({ $0 }) { state = known } else { state.names = try names() }
                guard state.done < state.names.count else { return nil }
                let name = state.names[state.done]
                var failure: StoreError?
                do throws(StoreError) { try body(name) } catch { failure = error }
                state.done += 1
                progress.withLock { $0 = state }
                return StoreTransfer(name: name, done: state.done, total: state.names.count, failure: failure)
            }
        }
    }
}
