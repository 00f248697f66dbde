/// A durable store of named files in a directory, or in a bucket of an S3-compatible server.
///
/// Code that keeps files takes any of them:
///
/// ```swift
/// func keep(_ letter: [UInt8], in letters: some FileStoring) async throws {
///     try await letters.save(letter, as: "Änderung.txt", replacing: false)
/// }
/// ```
///
/// - A save is atomic, and durable when it returns.
/// - Names are one path component in any Unicode, up to 255 bytes of UTF-8.
/// - Several programs may use one store at the same time.
public protocol FileStoring: Sendable {
    /// The errors of the store.
    associatedtype Failure: FileStoringError
    /// The bytes of a file in chunks, which are read on demand.
    associatedtype Chunks: AsyncSequence & Sendable where Chunks.Element == [UInt8]

    /// Saves bytes under a name.
    ///
    /// - Parameters:
    ///   - bytes: The contents.
    ///   - name: The name of the file.
    ///   - replacing: Whether to replace an existing file.
    /// - Throws: An error with ``FileStoringError/isExistingFile`` if there is a file that must not be replaced, and
    ///   others; the store is then unchanged.
    func save(_ bytes: [UInt8], as name: String, replacing: Bool) async throws(Failure)

    /// Saves a sequence of chunks, of which a few are in memory.
    ///
    /// - Parameters:
    ///   - chunks: The contents. If the sequence throws or the task is cancelled, the store stays unchanged.
    ///   - name: The name of the file.
    ///   - replacing: Whether to replace an existing file.
    /// - Returns: The number of saved bytes.
    /// - Throws: ``Failure``, or the error of `chunks`.
    @discardableResult
    func save<Contents: AsyncSequence & Sendable>(
        chunks: Contents, as name: String, replacing: Bool
    ) async throws -> Int where Contents.Element == [UInt8]

    /// Returns the bytes of a file.
    ///
    /// - Throws: An error with ``FileStoringError/isMissingFile`` if there is no such file, and others.
    func load(_ name: String) async throws(Failure) -> [UInt8]

    /// Returns the bytes of a file in chunks.
    ///
    /// - Parameters:
    ///   - name: The name of the file.
    ///   - size: The length of the chunks; the last one may be shorter.
    /// - Throws: As ``load(_:)``; some stores throw only when the first chunk is read.
    func chunks(of name: String, size: ByteCount) async throws(Failure) -> Chunks

    /// Deletes a file.
    ///
    /// - Returns: false if there was no file, which is not an error.
    @discardableResult
    func delete(_ name: String) async throws(Failure) -> Bool

    /// Renames a file.
    ///
    /// - Parameters:
    ///   - name: The current name.
    ///   - newName: The new name.
    ///   - replacing: Whether to replace an existing file.
    /// - Throws: As ``load(_:)`` and ``save(_:as:replacing:)``.
    func rename(_ name: String, to newName: String, replacing: Bool) async throws(Failure)

    /// Returns whether there is a file with this name; false for an invalid name.
    func exists(_ name: String) async throws(Failure) -> Bool

    /// The names of the files, in the order of their bytes.
    var names: [String] { get async throws(Failure) }
}

/// An error of a ``FileStoring``, of which callers tell two cases apart without knowing the store.
public protocol FileStoringError: Error, Sendable {
    /// Whether there is no file with the name.
    var isMissingFile: Bool { get }
    /// Whether there is a file with the name, which must not be replaced.
    var isExistingFile: Bool { get }
}

extension FileStoring {
    /// Copies all files into another store under their names, one after the other: a directory into a bucket, or back.
    ///
    /// A file that disappears meanwhile is passed over.
    ///
    /// - Parameters:
    ///   - store: The other store.
    ///   - replacing: Whether to replace its files. If false, the copy passes over names that it has, so that a copy
    ///     that was interrupted is continued. Default false.
    /// - Returns: The names of the copied files.
    /// - Throws: The first error of either store. Files copied until then stay.
    @discardableResult
    public func copyFiles(to store: some FileStoring, replacing: Bool = false) async throws -> [String] {
        var copied: [String] = []
        for name in try await names {
            try Task.checkCancellation()
            if !replacing, try await store.exists(name) { continue }
            do {
                let contents = try await chunks(of: name, size: .mebibytes(8))
                try await store.save(chunks: contents, as: name, replacing: replacing)
                copied.append(name)
            } catch let error as any FileStoringError
                where error.isMissingFile || (error.isExistingFile && !replacing)
            {
                continue
            }
        }
        return copied
    }
}
