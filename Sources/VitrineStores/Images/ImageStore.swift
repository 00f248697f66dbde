public import VitrineCore
public import VitrineImaging

/// A durable store of named images in a directory, each with a thumbnail. Images stay until they are deleted.
///
/// ```swift
/// let store = ImageStore(.documents, path: ["Shelf"])
/// let name = try await store.save(image)                            // a new name that sorts by time
/// try await store.save(fileAt: "lake.jpg", as: "Bodensee.jpg")      // the bytes as they are
/// let small = try await store.image("Bodensee.jpg", as: .thumbnail)
/// ```
///
/// - A save is durable and atomic: image and thumbnail **appear together**, also across a crash. Both have the same
///   modification time. A missing thumbnail, or one with another time, is made again on request.
/// - Bytes that cannot be decoded are refused before anything is written.
/// - Several processes may use one directory at the same time.
/// - Names are those of ``FileStore``, except `thumbnail`, which is the directory of the thumbnails.
///
/// Asynchronous calls run on a `BlockingExecutor`; ``blocking`` has the essential ones in blocking form. A call whose
/// task is cancelled throws ``StoreError/cancelled(name:)`` and changes nothing, unless it was almost complete.
public struct ImageStore: Sendable {
    /// Which of a name's two files.
    public enum Version: Sendable, Hashable {
        /// The image as saved.
        case original
        /// The thumbnail; the original in a store without thumbnails.
        case thumbnail
    }

    /// The directory of the thumbnails, below that of the images.
    package static let thumbnailDirectory = "thumbnail"

    /// The files of the images. Changes through it update a thumbnail only when the thumbnail is requested.
    package let files: FileStore
    /// The options for saving images.
    package let configuration: Configuration
    let thumbnails: FileStore

    /// Creates a store in a directory.
    ///
    /// - Parameters:
    ///   - location: The parent directory.
    ///   - path: The path components below it. Default: `UserDocuments`.
    ///   - configuration: The options for saving images.
    ///   - directories: The directories of the system.
    ///   - executor: The threads for asynchronous calls.
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

    /// The default store in the user's documents directory.
    public static var documents: ImageStore { ImageStore(.documents) }

    /// The default store in the user's caches directory.
    public static var caches: ImageStore { ImageStore(.caches) }

    /// The calls for threads that may block.
    public var blocking: Blocking { Blocking(store: self) }

    /// Where a version of an image is or would be.
    ///
    /// - Throws: ``StoreError/invalidName(_:reason:)``.
    public func path(of name: String, as version: Version = .original) throws(StoreError) -> String {
        let path = try files.path(of: name)
        return keeps(version) ? try thumbnails.path(of: name) : path
    }

    /// Whether this version has files of its own.
    func keeps(_ version: Version) -> Bool { version == .thumbnail && !configuration.ignoresThumbnails }

    // MARK: Saving

    /// Saves an image.
    ///
    /// - Parameters:
    ///   - image: The image, which is reduced to ``Configuration/maxSize``. The format is that of the configuration or
    ///     the name's extension; otherwise JPEG, or PNG if the image is not opaque.
    ///   - name: The name. Default nil: a new name that sorts by time, with the format's extension.
    ///   - replacing: Whether to replace an existing image. Default true.
    /// - Returns: The name.
    /// - Throws: ``StoreError``. The store is unchanged, except after ``StoreError/notDurable(name:error:)``.
    @discardableResult
    public func save(
        _ image: PixelImage, as name: String? = nil, replacing: Bool = true
    ) async throws(StoreError) -> String {
        try await run(name ?? "") { blocking throws(StoreError) in
            try blocking.save(image, as: name, replacing: replacing)
        }
    }

    /// Saves an image's bytes: as they are if the configuration asks nothing of them and the name's extension is not
    /// that of another format that can be written.
    ///
    /// - Throws: ``StoreError/image(name:error:)`` if they are no image, and others; nothing was changed then,
    ///   except after ``StoreError/notDurable(name:error:)``.
    @discardableResult
    public func save(
        _ bytes: [UInt8], as name: String? = nil, replacing: Bool = true
    ) async throws(StoreError) -> String {
        try await run(name ?? "") { blocking throws(StoreError) in
            try blocking.save(bytes, as: name, replacing: replacing)
        }
    }

    /// Saves a copy of an image's file, in the same way.
    @discardableResult
    public func save(
        fileAt path: String, as name: String? = nil, replacing: Bool = true
    ) async throws(StoreError) -> String {
        try await run(name ?? "") { blocking throws(StoreError) in
            try blocking.save(fileAt: path, as: name, replacing: replacing)
        }
    }

    // MARK: Loading

    /// The image, or its thumbnail, decoded.
    ///
    /// - Throws: ``StoreError/notFound(name:)``, ``StoreError/image(name:error:)`` and others.
    public func image(_ name: String, as version: Version = .original) async throws(StoreError) -> PixelImage {
        try await run(name) { blocking throws(StoreError) in try blocking.image(name, as: version) }
    }

    /// The bytes of a version's file. A thumbnail that is missing is made.
    public func load(_ name: String, as version: Version = .original) async throws(StoreError) -> [UInt8] {
        try await run(name) { blocking throws(StoreError) in try blocking.load(name, as: version) }
    }

    // MARK: Managing

    /// Deletes an image and its thumbnail.
    ///
    /// - Returns: false if there was no image, which is not an error.
    @discardableResult
    public func delete(_ name: String) async throws(StoreError) -> Bool {
        try await run(name) { blocking throws(StoreError) in try blocking.delete(name) }
    }

    /// Renames an image and its thumbnail. The bytes do not change, even if the extension does.
    ///
    /// - Parameters:
    ///   - name: The current name.
    ///   - newName: The new name.
    ///   - replacing: Whether to replace an existing image. Default false.
    public func rename(_ name: String, to newName: String, replacing: Bool = false) async throws(StoreError) {
        try await run(name) { blocking throws(StoreError) in
            try blocking.rename(name, to: newName, replacing: replacing)
        }
    }

    /// Whether there is an image by this name.
    public func exists(_ name: String) async -> Bool { await files.exists(name) }

    /// The images' files.
    public func list(
        by order: DirectoryListing.Order = .name, ascending: Bool = true
    ) async throws(StoreError) -> [DirectoryListing.Item] {
        try await run(files.directory) { blocking throws(StoreError) in
            try blocking.list(by: order, ascending: ascending)
        }
    }

    /// The names of the images, in the order of their bytes.
    public var names: [String] {
        get async throws(StoreError) {
            try await run(files.directory) { blocking throws(StoreError) in try blocking.names }
        }
    }

    /// Removes the temporary files of crashed saves, and thumbnails without an image.
    ///
    /// - Returns: The number of removed files.
    @discardableResult
    package func removeTemporaryFiles(olderThan age: Duration = .seconds(60)) async throws(StoreError) -> Int {
        try await run(files.directory) { blocking throws(StoreError) in try blocking.removeTemporaryFiles(olderThan: age) }
    }

    func run<R: Sendable>(
        _ name: String, _ body: @escaping @Sendable (Blocking) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        try await files.executor.run(name) { token throws(StoreError) in
            try body(Blocking(store: self, cancellation: token))
        }
    }
}

extension ImageStore {
    /// The options for saving images.
    public struct Configuration: Sendable, Hashable {
        /// The largest an image may be, in pixels; larger ones are reduced. A side of 0 is no limit. Default: none.
        public var maxSize = PixelSize.zero
        /// The quality of encoded images, from 0 to 1. nil, the default, keeps bytes as they came where nothing else
        /// is asked of them, and is 0.8 where something is.
        public var quality: Double?
        /// The format of all images. Default nil: that of the name's extension, otherwise that of the saved image.
        public var format: ImageFormat?
        /// The largest a thumbnail may be, in pixels; a side of 0 is no limit. Default 256 × 256.
        public var thumbnailMaxSize = PixelSize(256)
        /// The quality of thumbnails, from 0 to 1. Default: that of the images.
        public var thumbnailQuality: Double?
        /// Whether the store has no thumbnails. Requests for a thumbnail then return the image. Default false.
        public var ignoresThumbnails = false
        /// When a save returns. Default `Durability.full`.
        public var durability = Durability.full
        /// The limits for decoding.
        package var limits = ImageLimits.standard

        /// Bytes stay as they came; thumbnails of at most 256 pixels.
        public init() {}

        /// A preset that saves images of at most 800 × 600 at quality 0.5, with thumbnails of at most 133 × 100.
        public static var reduced: Configuration {
            var configuration = Configuration()
            configuration.maxSize = PixelSize(width: 800, height: 600)
            configuration.quality = 0.5
            configuration.thumbnailMaxSize = PixelSize(width: 133, height: 100)
            return configuration
        }

        /// A preset that saves all pixels at quality 1, without thumbnails. If ``ignoresThumbnails`` is set to false,
        /// thumbnails have any size and quality 0.9.
        public static var fullSize: Configuration {
            var configuration = Configuration()
            configuration.quality = 1
            configuration.thumbnailMaxSize = .zero
            configuration.thumbnailQuality = 0.9
            configuration.ignoresThumbnails = true
            return configuration
        }

        var resizer: ImageResizer { Self.limit(maxSize) }
        var thumbnailResizer: ImageResizer { Self.limit(thumbnailMaxSize) }
        /// Whether an image of this size is reduced.
        func reduces(_ size: PixelSize) -> Bool {
            (maxSize.width > 0 && size.width > maxSize.width) || (maxSize.height > 0 && size.height > maxSize.height)
        }

        private static func limit(_ size: PixelSize) -> ImageResizer {
            size == .zero ? .none : .limit(width: size.width, height: size.height)
        }
    }
}
