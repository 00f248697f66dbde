public import VitrineCore

/// A durable store of named files in a directory. Files stay until they are deleted.
///
/// ```swift
/// let letters = FileStore(.documents, path: ["Letters"])
/// try await letters.save(bytes, as: "Änderung.txt")     // on the medium when it returns
/// let again = try await letters.load("Änderung.txt")
/// ```
///
/// - A save is **atomic**, also across a crash, and durable when it returns.
/// - Several processes may use one directory at the same time. The next process that uses the directory removes the
///   temporary files of a killed one.
/// - **Names** are one path component in any Unicode, up to 255 bytes of UTF-8; see
///   ``StoreError/invalidName(_:reason:)``. Files put into the directory by other programs belong to the store.
///   Directories and symbolic links do not.
///
/// Asynchronous calls run on a `BlockingExecutor`; ``blocking`` has the essential ones in blocking form. A call whose
/// task is cancelled throws ``StoreError/cancelled(name:)`` and changes nothing, unless it was almost complete. The
/// directory is created by the first save.
public struct FileStore: Sendable {
    /// Where the files are.
    public let directory: String
    /// The path of a store that is created without one.
    @usableFromInline static let defaultPath = ["UserDocuments"]

    /// When a save returns.
    package let durability: Durability
    let executor: BlockingExecutor
    // A name that is taken by the owner of this store.
    let reservedName: String?

    /// A store in a directory.
    ///
    /// - Parameters:
    ///   - location: Where the directory lies.
    ///   - path: Components below it, each made safe as a file name by `FileName.escaped`. Default:
    ///     `UserDocuments`.
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

    package init(directory: String, durability: Durability, executor: BlockingExecutor, reservedName: String? = nil) {
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
    ///   - name: The name of the file.
    ///   - replacing: Whether to replace an existing file. Default true.
    /// - Throws: ``StoreError/alreadyExists(name:)`` and others; the store is then unchanged.
    ///   ``StoreError/notDurable(name:error:)`` if the file was saved, but a power failure may undo it.
    public func save(_ bytes: [UInt8], as name: String, replacing: Bool = true) async throws(StoreError) {
        try await run(name) { blocking throws(StoreError) in try blocking.save(bytes, as: name, replacing: replacing) }
    }

    /// Saves bytes under a new name that sorts by time: microseconds since 1970 and an extension.
    ///
    /// - Parameters:
    ///   - bytes: The contents.
    ///   - fileExtension: The extension without a dot. Default nil: none.
    /// - Returns: The name, which is unique among all processes.
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

    /// Saves many files, and waits for the medium once.
    ///
    /// Each file is saved atomically, and none is visible before all are written. A crash may leave some of them in
    /// place. After any other failure, none is.
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
    package func map(_ name: String) async throws(StoreError) -> MappedFile {
        try await run(name) { blocking throws(StoreError) in try blocking.map(name) }
    }

    // MARK: Managing

    /// Deletes a file.
    ///
    /// - Returns: false if there was no file, which is not an error.
    @discardableResult
    public func delete(_ name: String) async throws(StoreError) -> Bool {
        try await run(name) { blocking throws(StoreError) in try blocking.delete(name) }
    }

    /// Renames a file.
    ///
    /// - Parameters:
    ///   - name: The current name.
    ///   - newName: The new name.
    ///   - replacing: Whether to replace an existing file. Default false.
    /// - Throws: ``StoreError/notFound(name:)``, ``StoreError/alreadyExists(name:)`` and others.
    public func rename(_ name: String, to newName: String, replacing: Bool = false) async throws(StoreError) {
        try await run(name) { blocking throws(StoreError) in
            try blocking.rename(name, to: newName, replacing: replacing)
        }
    }

    /// Returns whether there is a file with this name; false for an invalid name.
    public func exists(_ name: String) async -> Bool {
        await executor.run { blocking.exists(name) }
    }

    /// Returns the files.
    ///
    /// - Parameters:
    ///   - order: The property to sort by. Default: the bytes of the name.
    ///   - ascending: Whether to sort in ascending order. Default true.
    public func list(
        by order: DirectoryListing.Order = .name, ascending: Bool = true
    ) async throws(StoreError) -> [DirectoryListing.Item] {
        try await run(directory) { blocking throws(StoreError) in try blocking.list(by: order, ascending: ascending) }
    }

    /// The names of the files, in the order of their bytes: quicker than ``list(by:ascending:)``.
    public var names: [String] {
        get async throws(StoreError) { try await run(directory) { blocking throws(StoreError) in try blocking.names } }
    }

    /// The sum of the files' lengths.
    package var totalSize: ByteCount {
        get async throws(StoreError) {
            try await run(directory) { blocking throws(StoreError) in try blocking.totalSize }
        }
    }

    /// Removes the temporary files of crashed saves. Files that are being written stay.
    ///
    /// - Returns: The number of removed files.
    @discardableResult
    package func removeTemporaryFiles(olderThan age: Duration = .seconds(60)) async throws(StoreError) -> Int {
        try await run(directory) { blocking throws(StoreError) in try blocking.removeTemporaryFiles(olderThan: age) }
    }

    func run<R: Sendable>(
        _ name: String, _ body: @escaping @Sendable (Blocking) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        try await executor.run(name) { token throws(StoreError) in
            try body(Blocking(store: self, cancellation: token))
        }
    }
}

/// Where a store's directory lies.
public enum StoreLocation: Sendable, Hashable {
    /// The user's own documents.
    case documents
    /// The directory for files that can be made again. Vitrine evicts nothing there, but users and
    /// systems delete its contents.
    case caches
    /// The directory for valuable files that the user does not browse.
    case data
    /// Any directory.
    case root(String)

    /// The directory, of the system's directories.
    package func directory(in directories: Directories = .current) -> String {
        switch self {
        case .documents: directories.documents
        case .caches: directories.caches
        case .data: directories.data
        case .root(let path): path
        }
    }
}

/// Says which names things in a store may have: one component of a path, in any Unicode, and with
/// bytes that are none (see `PathText`).
enum StoreName {
    /// Checks a name.
    ///
    /// - Parameters:
    ///   - name: Compared by its bytes, as in the file system, without normalizing Unicode.
    ///   - reserved: A name used by the store itself.
    static func check(_ name: String, reserved: String? = nil) throws(StoreError) {
        if let reason = fault(name, reserved) { throw .invalidName(name, reason: reason) }
    }

    /// Whether a name that was found in a directory, so is a component of a path, is none of the store's.
    static func isForeign(_ name: String, reserved: String?) -> Bool {
        if name.utf8.first == UInt8(ascii: "."), name.hasPrefix(AtomicFile.temporaryPrefix) { return true }
        guard let reserved, name.utf8.count == reserved.utf8.count else { return false }
        return name.utf8.elementsEqual(reserved.utf8)
    }

    private static func fault(_ name: String, _ reserved: String?) -> String? {
        if name.isEmpty { return "it is empty" }
        if name == "." || name == ".." { return "it means a directory" }
        if name.utf8.contains(UInt8(ascii: "/")) { return "it has a slash" }
        if name.utf8.contains(0) { return "it has a zero byte" }
        let count = PathText.byteCount(of: name)
        if count > FileName.maximumLength {
            return "it has \(count) bytes, more than \(FileName.maximumLength)"
        }
        if !PathText.isExact(name) { return "the file system would have it as another name" }
        if name.hasPrefix(AtomicFile.temporaryPrefix) { return "files being written have such names" }
        if let reserved, name.utf8.elementsEqual(reserved.utf8) { return "the store keeps something else under it" }
        return nil
    }
}

/// Makes names and times of change that no two saves of this process share.
enum StoreClock {
    private static let lastName = Locked(0)

    /// Returns the microseconds since 1970, as 16 digits, and an extension.
    static func name(fileExtension: String?) -> String {
        let now = WallClock.system.now / .microseconds(1)
        let microseconds = lastName.withLock { last in
            last = max(Int(now), last + 1)
            return last
        }
        return "\(microseconds)" + (fileExtension.map { $0.isEmpty ? "" : ".\($0)" } ?? "")
    }
}

extension StoreClock {
    private static let lastStamp = Locked(Duration.zero)

    /// A time of change that no file has had before: now, or later than `previous` where the clock went back.
    static func stamp(after previous: Duration?) -> Duration {
        lastStamp.withLock { last in
            last = max(WallClock.system.now, last + .nanoseconds(1), (previous ?? .zero) + .nanoseconds(1))
            return last
        }
    }
}
