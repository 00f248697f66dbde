import VitrineCore
public import VitrineImaging
public import VitrineStores

/// The file of an image at any path, with the operations of a store.
///
/// ```swift
/// let file = ImageFile("/tmp/lake.png")
/// try await file.write(image, maxSize: PixelSize(width: 800, height: 600), quality: 0.5)
/// try await file.move(to: "/tmp/bodensee.png")
/// ```
///
/// Asynchronous calls run on threads that may block.
public struct ImageFile: Sendable {
    /// Where the file is.
    package let path: String

    /// The file at a path. Nothing is opened.
    public init(_ path: String) { self.path = path }

    /// The calls for threads that may block.
    package var blocking: Blocking { Blocking(path: path) }

    /// Writes an image, in the format that the path's extension says, else as JPEG, or as PNG where it is not opaque.
    ///
    /// - Parameters:
    ///   - image: Reduced to `maxSize` if it is larger.
    ///   - maxSize: In pixels; a side of 0 is no limit.
    ///   - quality: From 0 to 1.
    /// - Throws: `StoreError`; a file that was there is still there then, except after
    ///   `StoreError/notDurable(name:error:)`.
    public func write(
        _ image: PixelImage, maxSize: PixelSize = .zero, quality: Double = OutputFormat.defaultQuality
    ) async throws(StoreError) {
        try await run { file throws(StoreError) in try file.write(image, maxSize: maxSize, quality: quality) }
    }

    /// The image.
    public func load() async throws(StoreError) -> PixelImage {
        try await run { file throws(StoreError) in try file.load() }
    }

    /// Deletes the file.
    ///
    /// - Returns: false if there was none, which is no failure.
    @discardableResult
    public func delete() async throws(StoreError) -> Bool {
        try await run { file throws(StoreError) in try file.delete() }
    }

    /// Moves the file to another path of the same file system.
    ///
    /// - Parameters:
    ///   - newPath: Where it is to be.
    ///   - replacing: Whether a file there may be replaced. Default false.
    public func move(to newPath: String, replacing: Bool = false) async throws(StoreError) {
        try await run { file throws(StoreError) in try file.move(to: newPath, replacing: replacing) }
    }

    private func run<R: Sendable>(
        _ body: @escaping @Sendable (Blocking) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        try await BlockingExecutor.shared.run(path) { token throws(StoreError) in
            try body(Blocking(path: path, cancellation: token))
        }
    }

    /// The calls for threads that may block.
    package struct Blocking: Sendable {
        let path: String
        var cancellation: CancellationToken?

        /// As `ImageFile/write(_:maxSize:quality:)`.
        package func write(
            _ image: PixelImage, maxSize: PixelSize = .zero, quality: Double = OutputFormat.defaultQuality
        ) throws(StoreError) {
            var configuration = ImageStore.Configuration()
            configuration.maxSize = maxSize
            configuration.quality = quality
            configuration.ignoresThumbnails = true
            let bytes: [UInt8]
            do throws(ImageError) {
                bytes = try PreparedImage.encoded(image, name: path, configuration).bytes
            } catch {
                throw StoreError(error, name: path)
            }
            do throws(FileError) {
                try AtomicFile.write(bytes, to: path, durability: .full, cancellation: cancellation)
            } catch {
                throw StoreError(error, name: path)
            }
        }

        /// As `ImageFile/load()`.
        package func load() throws(StoreError) -> PixelImage {
            do throws(ImageError) {
                return try ImageDecoder().decode(.file(path), cancellation: cancellation ?? CancellationToken())
            } catch {
                throw StoreError(error, name: path)
            }
        }

        /// As `ImageFile/delete()`.
        @discardableResult
        package func delete() throws(StoreError) -> Bool {
            let name = path.utf8.split(separator: UInt8(ascii: "/")).last.flatMap { String($0) } ?? ""
            let store = FileStore(directory: FilePath.parent(of: path), durability: .full, executor: .shared)
            return try store.blocking.delete(name)
        }

        /// As `ImageFile/move(to:replacing:)`.
        package func move(to newPath: String, replacing: Bool = false) throws(StoreError) {
            try FileStore.Blocking.move(path, to: newPath, name: path, newName: newPath, replacing: replacing)
        }
    }
}

extension PixelImage {
    /// Returns the image, reduced to a maximum size, as a JPEG.
    ///
    /// - Parameters:
    ///   - maxSize: The maximum size in pixels; 0 is no limit for a side.
    ///   - quality: The quality from 0 to 1.
    public func compressed(maxSize: PixelSize = .zero, quality: Double = 0.5) throws(ImageError) -> [UInt8] {
        let resizer: ImageResizer = maxSize == .zero ? .none : .limit(width: maxSize.width, height: maxSize.height)
        return try resizer.resize(self).encoded(as: .jpeg(quality: quality))
    }
}
