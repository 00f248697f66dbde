public import VitrineCore
public import VitrineImaging

/// Pictures by name in a directory, each with a thumbnail beside it, which stay until they are deleted (R108–R113).
///
/// ```swift
/// let store = ImageStore(.documents, path: ["Shelf"])
/// let name = try await store.save(image)                            // a new name that sorts by time
/// try await store.save(fileAt: "lake.jpg", as: "Bodensee.jpg")      // the bytes as they are
/// let small = try await store.image("Bodensee.jpg", as: .thumbnail)
/// ```
///
/// - A save is durable and whole when it returns: picture and thumbnail **appear together or not at all**, also across
///   a crash. A picture and its thumbnail have one time of change; a thumbnail with another one, or none at all, is
///   made again when it is asked for, also after someone else changed the picture's file.
/// - What cannot be decoded is refused before anything is written.
/// - Several processes may use one directory at once.
/// - Names are those of ``FileStore``; `thumbnail` is the directory of the thumbnails and no name.
///
/// Asynchronous calls work on a `BlockingExecutor`; ``blocking`` has the same calls for threads that may block. A call
/// whose task is cancelled throws ``StoreError/cancelled(name:)`` and changes nothing, unless it was all but done.
public struct ImageStore: Sendable {
    /// Which of a name's two files.
    public enum Version: Sendable, Hashable {
        case original
        /// The small one; the original in a store that goes without thumbnails (R113).
        case thumbnail
    }

    /// The directory of the thumbnails, below that of the pictures.
    public static let thumbnailDirectory = "thumbnail"

    /// The pictures as files. What is changed there changes no thumbnail until that is asked for.
    public let files: FileStore
    /// What becomes of pictures when they are saved.
    public let configuration: Configuration
    let thumbnails: FileStore

    /// A store in a directory.
    ///
    /// - Parameters:
    ///   - location: Where the directory lies.
    ///   - path: Components below it. Default: ``FileStore/defaultPath``.
    ///   - configuration: What becomes of pictures when they are saved.
    ///   - directories: The system's, or those of a test.
    ///   - executor: Whose threads work for the asynchronous calls.
    public init(
        _ location: StoreLocation = .documents, path: [String] = FileStore.defaultPath,
        configuration: Configuration = Configuration(), directories: Directories = .current,
        executor: BlockingExecutor = .shared
    ) {
        let whole = FileStore(
            location, path: path, durability: configuration.durability, directories: directories, executor: executor)
        files = FileStore(
            directory: whole.directory, durability: configuration.durability, executor: executor,
            reservedName: Self.thumbnailDirectory)
        thumbnails = FileStore(
            directory: FilePath.join(whole.directory, Self.thumbnailDirectory), durability: configuration.durability,
            executor: executor)
        self.configuration = configuration
    }

    /// The store in the user's documents that programs share which ask for nothing else (R116).
    public static var documents: ImageStore { ImageStore(.documents) }

    /// Its twin in the directory of caches (R112).
    public static var caches: ImageStore { ImageStore(.caches) }

    /// The calls for threads that may block.
    public var blocking: Blocking { Blocking(store: self) }

    /// Where a version of a picture is or would be.
    ///
    /// - Throws: ``StoreError/invalidName(_:reason:)``.
    public func path(of name: String, as version: Version = .original) throws(StoreError) -> String {
        let path = try files.path(of: name)
        return keeps(version) ? try thumbnails.path(of: name) : path
    }

    /// Whether this version has files of its own.
    func keeps(_ version: Version) -> Bool { version == .thumbnail && !configuration.ignoresThumbnails }

    // MARK: Saving

    /// Saves a picture.
    ///
    /// - Parameters:
    ///   - image: Reduced to ``Configuration/maxSize`` if it is larger, and written in the format that the
    ///     configuration or the name's extension says, else as JPEG, or as PNG where it is not opaque.
    ///   - name: What to find it by; nil for a new name that sorts by time, with the format's extension (R109).
    ///   - replacing: Whether a picture by this name may be replaced. Default true.
    /// - Returns: The name.
    /// - Throws: ``StoreError``; nothing was changed then, except after ``StoreError/notDurable(name:error:)``.
    @discardableResult
    public func save(
        _ image: Image, as name: String? = nil, replacing: Bool = true
    ) async throws(StoreError) -> String {
        try await run(name ?? "") { blocking throws(StoreError) in
            try blocking.save(image, as: name, replacing: replacing)
        }
    }

    /// Saves a picture's bytes: as they are if the configuration asks nothing of them and the name's extension is not
    /// that of another format that can be written.
    ///
    /// - Throws: ``StoreError/image(name:error:)`` if they are no picture, and others; nothing was changed then,
    ///   except after ``StoreError/notDurable(name:error:)``.
    @discardableResult
    public func save(
        _ bytes: [UInt8], as name: String? = nil, replacing: Bool = true
    ) async throws(StoreError) -> String {
        try await run(name ?? "") { blocking throws(StoreError) in
            try blocking.save(bytes, as: name, replacing: replacing)
        }
    }

    /// Saves a copy of a picture's file, in the same way.
    @discardableResult
    public func save(
        fileAt path: String, as name: String? = nil, replacing: Bool = true
    ) async throws(StoreError) -> String {
        try await run(name ?? "") { blocking throws(StoreError) in
            try blocking.save(fileAt: path, as: name, replacing: replacing)
        }
    }

    // MARK: Loading

    /// The picture, or its thumbnail, decoded.
    ///
    /// - Throws: ``StoreError/notFound(name:)``, ``StoreError/image(name:error:)`` and others.
    public func image(_ name: String, as version: Version = .original) async throws(StoreError) -> Image {
        try await run(name) { blocking throws(StoreError) in try blocking.image(name, as: version) }
    }

    /// The picture decoded at a size, from the thumbnail if that has enough pixels.
    public func image(_ name: String, at resizer: ImageResizer) async throws(StoreError) -> Image {
        try await run(name) { blocking throws(StoreError) in try blocking.image(name, at: resizer) }
    }

    /// The bytes of a version's file. A thumbnail that is missing is made.
    public func load(_ name: String, as version: Version = .original) async throws(StoreError) -> [UInt8] {
        try await run(name) { blocking throws(StoreError) in try blocking.load(name, as: version) }
    }

    // MARK: Managing

    /// Deletes a picture and its thumbnail.
    ///
    /// - Returns: false if there was none, which is no failure (R116).
    @discardableResult
    public func delete(_ name: String) async throws(StoreError) -> Bool {
        try await run(name) { blocking throws(StoreError) in try blocking.delete(name) }
    }

    /// Renames a picture and its thumbnail. Bytes stay as they are, whatever the new name's extension.
    ///
    /// - Parameters:
    ///   - name: The name it has.
    ///   - newName: The name it gets.
    ///   - replacing: Whether a picture by the new name may be replaced. Default false (R116).
    public func rename(_ name: String, to newName: String, replacing: Bool = false) async throws(StoreError) {
        try await run(name) { blocking throws(StoreError) in
            try blocking.rename(name, to: newName, replacing: replacing)
        }
    }

    /// Whether there is a picture by this name.
    public func exists(_ name: String) async -> Bool { await files.exists(name) }

    /// The pictures' files.
    public func list(
        by order: DirectoryListing.Order = .name, ascending: Bool = true
    ) async throws(StoreError) -> [DirectoryListing.Item] {
        try await run(files.directory) { blocking throws(StoreError) in
            try blocking.list(by: order, ascending: ascending)
        }
    }

    /// The names of the pictures, in the order of their bytes.
    public var names: [String] {
        get async throws(StoreError) {
            try await run(files.directory) { blocking throws(StoreError) in try blocking.names }
        }
    }

    /// Removes what crashed saves left behind, and thumbnails without a picture.
    ///
    /// - Returns: How many files there were.
    @discardableResult
    public func removeTemporaryFiles(olderThan age: Duration = .seconds(60)) async throws(StoreError) -> Int {
        try await run(files.directory) { blocking throws(StoreError) in try blocking.removeTemporaryFiles(olderThan: age) }
    }

    // MARK: Several stores

    /// Deletes a picture in every one of some stores, for example in documents and caches (R112).
    ///
    /// - Returns: In how many it was.
    /// - Throws: The first failure, after all have been tried.
    @discardableResult
    public static func delete(_ name: String, in stores: [ImageStore]) async throws(StoreError) -> Int {
        try await (stores.first?.files.executor ?? .shared).run(name) { token throws(StoreError) in
            try StoreSet.delete(name, in: stores.map { Blocking(store: $0, cancellation: token) })
        }
    }

    /// Renames a picture in every one of some stores that has it (R112).
    @discardableResult
    public static func rename(
        _ name: String, to newName: String, replacing: Bool = false, in stores: [ImageStore]
    ) async throws(StoreError) -> Int {
        try await (stores.first?.files.executor ?? .shared).run(name) { token throws(StoreError) in
            try StoreSet.rename(
                name, to: newName, replacing: replacing, in: stores.map { Blocking(store: $0, cancellation: token) })
        }
    }

    func run<R: Sendable>(
        _ name: String, _ body: @escaping @Sendable (Blocking) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        try await files.executor.run(name) { token throws(StoreError) in
            try body(Blocking(store: self, cancellation: token))
        }
    }
}
