import VitrineCore
public import VitrineImaging

/// The store's operations on pictures at any path (R115). All block.
public enum ImageFile {
    /// Writes a picture, in the format that the path's extension says, else as JPEG, or as PNG where it is not opaque.
    ///
    /// - Parameters:
    ///   - image: Reduced to `maxSize` if it is larger.
    ///   - path: The file; replaced, whole or not at all.
    ///   - maxSize: In pixels; a side of 0 is no limit.
    ///   - quality: From 0 to 1.
    public static func write(
        _ image: Image, to path: String, maxSize: PixelSize = .zero, quality: Double = OutputFormat.defaultQuality
    ) throws(StoreError) {
        var configuration = ImageStore.Configuration()
        configuration.maxSize = maxSize
        configuration.quality = quality
        configuration.ignoresThumbnails = true
        let bytes: [UInt8]
        do throws(ImageError) {
            bytes = try PreparedPicture.encoded(image, name: path, configuration).bytes
        } catch {
            throw .image(name: path, error: error)
        }
        do throws(FileError) {
            try AtomicFile.write(bytes, to: path, options: .durable)
        } catch {
            throw StoreError(error, name: path)
        }
    }

    /// The picture at a path.
    public static func load(_ path: String) throws(StoreError) -> Image {
        do throws(ImageError) {
            return try ImageDecoder().decode(.file(path))
        } catch {
            throw .image(name: path, error: error)
        }
    }

    /// Deletes the file at a path.
    ///
    /// - Returns: false if there was none, which is no failure.
    @discardableResult
    public static func delete(_ path: String) throws(StoreError) -> Bool {
        try store(of: path) { files, name throws(StoreError) in try files.delete(name) }
    }

    /// Moves the file at a path to another of the same file system.
    ///
    /// - Parameter replacing: Whether a file there may be replaced. Default false.
    public static func move(_ path: String, to newPath: String, replacing: Bool = false) throws(StoreError) {
        try FileStore.Blocking.move(path, to: newPath, name: path, newName: newPath, replacing: replacing)
    }

    private static func store<R>(
        of path: String, _ body: (FileStore.Blocking, String) throws(StoreError) -> R
    ) throws(StoreError) -> R {
        let directory = FilePath.parent(of: path)
        let name = String(path.utf8.split(separator: UInt8(ascii: "/")).last.flatMap { String($0) } ?? "")
        let store = FileStore(directory: directory, durability: .full, executor: .shared)
        return try body(store.blocking, name)
    }
}

extension Image {
    /// The picture reduced to at most a size, as the bytes of a JPEG (R115).
    ///
    /// - Parameters:
    ///   - maxSize: In pixels; a side of 0 is no limit.
    ///   - quality: From 0 to 1.
    public func compressed(maxSize: PixelSize = .zero, quality: Double = 0.5) throws(ImageError) -> [UInt8] {
        let resizer: ImageResizer = maxSize == .zero ? .none : .limit(width: maxSize.width, height: maxSize.height)
        return try resizer.resize(self).encoded(as: .jpeg(quality: quality))
    }
}
