public import VitrineCore

/// Files by name in a directory, which stay until they are deleted: the durable twin of a cache (R108, R114).
///
/// ```swift
/// let letters = FileStore(.documents, path: ["Letters"])
/// try await letters.save(bytes, as: "Änderung.txt")     // on the medium when it returns
/// let again = try await letters.load("Änderung.txt")
/// ```
///
/// - A save is **whole or not at all**, also across a crash, and on the medium when it returns.
/// - Several processes may use one directory at once. What a killed one was writing is removed when another uses the
///   directory for the first time.
/// - **Names** are one component of a path in any Unicode, up to 255 bytes of UTF-8; see
///   ``StoreError/invalidName(_:reason:)``. Files that others put into the directory are the store's as well.
///   Directories and symbolic links are not.
///
/// Asynchronous calls work on a `BlockingExecutor`; ``blocking`` has the same calls for threads that may block. A call
/// whose task is cancelled throws ``StoreError/cancelled(name:)`` and changes nothing, unless it was all but done. No
/// directory is made before something is saved.
public struct FileStore: Sendable {
    /// Where the files are.
    public let directory: String
    /// When a save returns.
    public let durability: Durability
    let executor: BlockingExecutor
    // A name that is taken by the owner of this store.
    let reservedName: String?

    /// The components below the location where nobody says otherwise, as earlier libraries had them.
    public static let defaultPath = ["UserDocuments"]

    /// A store in a directory.
    ///
    /// - Parameters:
    ///   - location: Where the directory lies.
    ///   - path: Components below it, each made safe as a file name by `FileName.escaped`. Default:
    ///     ``defaultPath``.
    ///   - durability: When a save returns.
    ///   - directories: The system's, or those of a test.
    ///   - executor: Whose threads work for the asynchronous calls.
    public init(
        _ location: StoreLocation = .documents, path: [String] = FileStore.defaultPath, durability: Durability = .full,
        directories: Directories = .current, executor: BlockingExecutor = .shared
    ) {
        let directory = path.reduce(location.directory(in: directories)) { FilePath.join($0, FileName.escaped($1)) }
        self.init(directory: directory, durability: durability, executor: executor)
    }

    init(directory: String, durability: Durability, executor: BlockingExecutor, reservedName: String? = nil) {
        self.directory = directory
        self.durability = durability
        self.executor = executor
        self.reservedName = reservedName
    }

    /// The calls for threads that may block.
    public var blocking: Blocking { Blocking(store: self) }

    /// Where a file of this name is or would be.
    ///
    /// - Throws: ``StoreError/invalidName(_:reason:)``.
    public func path(of name: String) throws(StoreError) -> String {
        try StoreName.check(name, reserved: reservedName)
        return FilePath.join(directory, name)
    }

    // MARK: Saving

    /// Saves bytes under a name.
    ///
    /// - Parameters:
    ///   - bytes: The contents.
    ///   - name: What to find them by.
    ///   - replacing: Whether a file by this name may be replaced. Default true.
    /// - Throws: ``StoreError/alreadyExists(name:)`` if it may not, and others; nothing was changed then.
    ///   ``StoreError/notDurable(name:error:)`` if the file was saved, but a power cut may take it back.
    public func save(_ bytes: [UInt8], as name: String, replacing: Bool = true) async throws(StoreError) {
        try await run(name) { blocking throws(StoreError) in try blocking.save(bytes, as: name, replacing: replacing) }
    }

    /// Saves bytes under a new name that sorts by time: microseconds since 1970 and an extension (R109).
    ///
    /// - Parameters:
    ///   - bytes: The whole content.
    ///   - fileExtension: Without a dot; nil for none.
    /// - Returns: The name; no other save, of any process, gets the same.
    public func save(_ bytes: [UInt8], fileExtension: String? = nil) async throws(StoreError) -> String {
        try await run(directory) { blocking throws(StoreError) in
            try blocking.save(bytes, fileExtension: fileExtension)
        }
    }

    /// Saves a copy of a file, of which as little is written as the file system allows.
    public func save(fileAt path: String, as name: String, replacing: Bool = true) async throws(StoreError) {
        try await run(name) { blocking throws(StoreError) in
            try blocking.save(fileAt: path, as: name, replacing: replacing)
        }
    }

    /// Saves many files at once, for which the medium is waited for once (R114).
    ///
    /// Each is whole or not at all, and none is seen before all have been written. A crash may leave some in place and
    /// others not; a failure before that leaves all as they were.
    public func save(_ files: [(name: String, bytes: [UInt8])]) async throws(StoreError) {
        try await run(directory) { blocking throws(StoreError) in try blocking.save(files) }
    }

    // MARK: Loading

    /// The bytes of a file.
    ///
    /// - Throws: ``StoreError/notFound(name:)`` and others.
    public func load(_ name: String) async throws(StoreError) -> [UInt8] {
        try await run(name) { blocking throws(StoreError) in try blocking.load(name) }
    }

    /// The bytes of a file without reading them all; see ``MappedFile``.
    public func map(_ name: String) async throws(StoreError) -> MappedFile {
        try await run(name) { blocking throws(StoreError) in try blocking.map(name) }
    }

    // MARK: Managing

    /// Deletes a file.
    ///
    /// - Returns: false if there was none, which is no failure (R116).
    @discardableResult
    public func delete(_ name: String) async throws(StoreError) -> Bool {
        try await run(name) { blocking throws(StoreError) in try blocking.delete(name) }
    }

    /// Renames a file.
    ///
    /// - Parameters:
    ///   - name: The name it has.
    ///   - newName: The name it gets.
    ///   - replacing: Whether a file by the new name may be replaced. Default false (R116).
    /// - Throws: ``StoreError/notFound(name:)``, ``StoreError/alreadyExists(name:)`` and others.
    public func rename(_ name: String, to newName: String, replacing: Bool = false) async throws(StoreError) {
        try await run(name) { blocking throws(StoreError) in
            try blocking.rename(name, to: newName, replacing: replacing)
        }
    }

    /// Whether there is a file by this name. False for what cannot be a name.
    public func exists(_ name: String) async -> Bool {
        await executor.run { blocking.exists(name) }
    }

    /// The files.
    ///
    /// - Parameters:
    ///   - order: What to sort by. Default: the name's bytes.
    ///   - ascending: Default true.
    public func list(
        by order: DirectoryListing.Order = .name, ascending: Bool = true
    ) async throws(StoreError) -> [DirectoryListing.Item] {
        try await run(directory) { blocking throws(StoreError) in try blocking.list(by: order, ascending: ascending) }
    }

    /// The names of the files, in the order of their bytes: quicker than ``list(by:ascending:)``.
    public var names: [String] {
        get async throws(StoreError) { try await run(directory) { blocking throws(StoreError) in try blocking.names } }
    }

    /// What the files' lengths add up to.
    public var totalSize: ByteCount {
        get async throws(StoreError) {
            try await run(directory) { blocking throws(StoreError) in try blocking.totalSize }
        }
    }

    /// Removes what crashed saves left behind. Files that are being written stay.
    ///
    /// - Returns: How many there were.
    @discardableResult
    public func removeTemporaryFiles(olderThan age: Duration = .seconds(60)) async throws(StoreError) -> Int {
        try await run(directory) { blocking throws(StoreError) in try blocking.removeTemporaryFiles(olderThan: age) }
    }

    // MARK: Several stores

    /// Deletes a file in every one of some stores, for example in documents and caches (R114).
    ///
    /// - Returns: In how many it was.
    /// - Throws: The first failure, after all have been tried.
    @discardableResult
    public static func delete(_ name: String, in stores: [FileStore]) async throws(StoreError) -> Int {
        try await (stores.first?.executor ?? .shared).run(name) { token throws(StoreError) in
            try StoreSet.delete(name, in: stores.map { Blocking(store: $0, cancellation: token) })
        }
    }

    /// Renames a file in every one of some stores that has it (R114).
    ///
    /// - Returns: In how many it was.
    /// - Throws: ``StoreError/notFound(name:)`` if none has it; else the first failure, after all have been tried.
    @discardableResult
    public static func rename(
        _ name: String, to newName: String, replacing: Bool = false, in stores: [FileStore]
    ) async throws(StoreError) -> Int {
        try await (stores.first?.executor ?? .shared).run(name) { token throws(StoreError) in
            try StoreSet.rename(
                name, to: newName, replacing: replacing, in: stores.map { Blocking(store: $0, cancellation: token) })
        }
    }

    func run<R: Sendable>(
        _ name: String, _ body: @escaping @Sendable (Blocking) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        try await executor.run(name) { token throws(StoreError) in
            try body(Blocking(store: self, cancellation: token))
        }
    }
}
