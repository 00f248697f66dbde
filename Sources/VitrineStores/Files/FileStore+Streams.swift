public import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension FileStore {
    /// Saves a sequence of chunks. At most one chunk is in memory.
    ///
    /// - Parameters:
    ///   - chunks: The contents. If the sequence throws or the task is cancelled, the store stays unchanged.
    ///   - name: The name of the file.
    ///   - replacing: Whether to replace an existing file. Default true.
    /// - Returns: The number of saved bytes.
    /// - Throws: ``StoreError``, or the error of `chunks`.
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

    /// Returns the bytes of a file in chunks, which are read on demand. They are those of the current file, even if it
    /// is replaced meanwhile.
    ///
    /// - Parameters:
    ///   - name: The name of the file.
    ///   - size: The length of the chunks; the last one may be shorter. Default 256 KiB.
    public func chunks(
        of name: String, size: ByteCount = .kibibytes(256)
    ) async throws(StoreError) -> some AsyncSequence<[UInt8], Never> & Sendable {
        let file = try await map(name)
        return FileChunks(file: file, size: max(1, size.bytes))
    }
}

extension FileStore: FileStoring {
    /// The errors of the store.
    public typealias Failure = StoreError
}

extension StoreError: FileStoringError {
    /// Whether it is ``notFound(name:)``.
    public var isMissingFile: Bool { if case .notFound = self { true } else { false } }
    /// Whether it is ``alreadyExists(name:)``.
    public var isExistingFile: Bool { if case .alreadyExists = self { true } else { false } }
}

/// The bytes of a file in chunks.
private struct FileChunks: AsyncSequence, Sendable {
    typealias Element = [UInt8]
    typealias Failure = Never

    let file: MappedFile
    let size: Int

    /// Returns an iterator from the beginning of the file.
    func makeAsyncIterator() -> Iterator { Iterator(chunks: self) }

    struct Iterator: AsyncIteratorProtocol {
        let chunks: FileChunks
        var offset = 0

        /// Returns the next chunk; nil at the end.
        mutating func next() async -> [UInt8]? {
            guard offset < chunks.file.count else { return nil }
            let range = offset..<Swift.min(chunks.file.count, offset + chunks.size)
            offset = range.upperBound
            let file = chunks.file
            return await BlockingExecutor.shared.run { file.withUnsafeBytes { Array($0[range]) } }
        }
    }
}

/// A writer for a file in pieces. The file appears atomically with ``commit()``.
///
/// A writer that is deallocated before the commit removes the temporary file. It must not be used by several threads at
/// the same time. All calls block; ``FileStore/save(chunks:as:replacing:)`` is the asynchronous form.
package final class StoreWriter {
    private let writer: AtomicFileWriter
    private let name: String

    init(_ writer: AtomicFileWriter, name: String) {
        self.writer = writer
        self.name = name
    }

    /// The number of bytes written so far.
    package var count: Int { writer.count }

    /// Appends bytes.
    package func write(_ bytes: [UInt8]) throws(StoreError) {
        do throws(FileError) { try writer.write(bytes) } catch { throw StoreError(error, name: name) }
    }

    /// Makes the file appear under its name.
    package func commit() throws(StoreError) {
        do throws(FileError) { try writer.commit() } catch { throw StoreError(error, name: name) }
    }
}

/// The bytes of a file, mapped into memory. The system reads them on access.
///
/// Stores replace files by renaming, so the bytes do not change after mapping. If another program cuts the file, an
/// access ends the process with a bus error. So map only files that stores wrote.
package final class MappedFile: Sendable {
    /// The number of bytes.
    package let count: Int
    // Readable until deinit, and never written.
    private let address: UInt

    /// Maps a file. Blocks for a short time.
    package init(path: String) throws(FileError) {
        let file = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        let status = try file.status()
        guard status.st_mode & S_IFMT == S_IFREG else { throw .untrusted(path: path, reason: "it is not a regular file") }
        count = Int(status.st_size)
        guard count > 0 else {
            address = 0
            return
        }
        guard let start = mmap(nil, count, PROT_READ, MAP_PRIVATE, file.number, 0), start != MAP_FAILED else {
            throw FileError(operation: "mmap", path: path, code: errno)
        }
        address = UInt(bitPattern: start)
    }

    deinit {
        if count > 0 { munmap(UnsafeMutableRawPointer(bitPattern: address), count) }
    }

    /// Calls a body with the bytes, which must not be used after it returns.
    package func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        defer { withExtendedLifetime(self) {} }
        return try body(UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: address), count: count))
    }
}
