import VitrineCore

extension FileStore {
    /// Saves what comes in pieces. No more than one piece is in memory here.
    ///
    /// - Parameters:
    ///   - chunks: The contents. When it throws, or the task is cancelled, the store is as it was.
    ///   - name: What to find them by.
    ///   - replacing: Whether a file by this name may be replaced. Default true.
    /// - Returns: How many bytes were saved.
    /// - Throws: ``StoreError``, or what `chunks` throws.
    @discardableResult
    public func save<Chunks: AsyncSequence & Sendable>(
        chunks: Chunks, as name: String, replacing: Bool = true
    ) async throws -> Int where Chunks.Element == [UInt8] {
        try await withTaskExecutorPreference(executor) {
            let writer = try blocking.writer(for: name, replacing: replacing)
            for try await chunk in chunks {
                guard !Task.isCancelled else { throw StoreError.cancelled(name: name) }
                try writer.write(chunk)
            }
            // A sequence that was cancelled may simply end.
            guard !Task.isCancelled else { throw StoreError.cancelled(name: name) }
            try writer.commit()
            return writer.count
        }
    }

    /// The bytes of a file in pieces, read as they are asked for: of the file that is there now, whatever is saved
    /// under its name meanwhile.
    ///
    /// - Parameters:
    ///   - name: The file's name.
    ///   - size: How long the pieces are, but the last. Default 256 KiB.
    public func chunks(of name: String, size: Int = 1 << 18) async throws(StoreError) -> FileChunks {
        let file = try await map(name)
        return FileChunks(file: file, size: max(1, size))
    }
}

/// The bytes of a file in pieces.
public struct FileChunks: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = Never

    let file: MappedFile
    let size: Int

    /// How many bytes there are in all.
    public var count: Int { file.count }

    public func makeAsyncIterator() -> Iterator { Iterator(chunks: self) }

    public struct Iterator: AsyncIteratorProtocol {
        let chunks: FileChunks
        var offset = 0

        public mutating func next() async -> [UInt8]? {
            guard offset < chunks.file.count else { return nil }
            let range = offset..<Swift.min(chunks.file.count, offset + chunks.size)
            offset = range.upperBound
            let file = chunks.file
            return await BlockingExecutor.shared.run { file.withUnsafeBytes { Array($0[range]) } }
        }
    }
}
