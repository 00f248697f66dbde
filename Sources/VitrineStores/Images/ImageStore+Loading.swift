import VitrineCore
public import VitrineImaging

extension ImageStore.Blocking {
    /// As ``ImageStore/image(_:as:)``.
    public func image(_ name: String, as version: ImageStore.Version = .original) throws(StoreError) -> Image {
        guard store.keeps(version) else {
            return try decode(.file(try files.regularFile(name)), name)
        }
        return try decode(.bytes(try load(name, as: .thumbnail), name: name), name)
    }

    /// As ``ImageStore/image(_:at:)``.
    public func image(_ name: String, at resizer: ImageResizer) throws(StoreError) -> Image {
        let path = try files.regularFile(name)
        if let small = pairedThumbnail(name, path), shows(small, insteadOf: path, at: resizer) {
            return try decode(.file(small), name, at: resizer)
        }
        return try decode(.file(path), name, at: resizer)
    }

    /// The path of the thumbnail that belongs to the picture at a path; nil for none.
    func pairedThumbnail(_ name: String, _ path: String) -> String? {
        guard store.keeps(.thumbnail), let small = try? store.thumbnails.path(of: name),
            ThumbnailPair.isPair(path, small)
        else { return nil }
        return small
    }

    /// Whether a thumbnail shows the same as the picture would at this size.
    func shows(_ small: String, insteadOf path: String, at resizer: ImageResizer) -> Bool {
        guard let info = try? ImageInfo(of: .file(path), limits: configuration.limits),
            let target = try? resizer.targetSize(for: info.size),
            let thumbnail = try? ImageInfo(of: .file(small), limits: configuration.limits).size
        else { return false }
        return target.width * 2 <= thumbnail.width && target.height * 2 <= thumbnail.height
    }

    /// As ``ImageStore/load(_:as:)``.
    public func load(_ name: String, as version: ImageStore.Version = .original) throws(StoreError) -> [UInt8] {
        let path = try files.regularFile(name)
        guard store.keeps(version) else { return try files.load(name) }
        let small = try store.thumbnails.path(of: name)
        if ThumbnailPair.isPair(path, small), let bytes = try? thumbnails.load(name),
            ThumbnailPair.isPair(path, small)
        {
            return bytes
        }
        return try makeThumbnail(name, path)
    }

    /// Makes a thumbnail of the picture that is there, and keeps it unless the picture is replaced meanwhile.
    private func makeThumbnail(_ name: String, _ path: String) throws(StoreError) -> [UInt8] {
        let stamp = ThumbnailPair.modified(path)
        let bytes: [UInt8]
        do throws(ImageError) {
            let format = try ImageInfo(of: .file(path), limits: configuration.limits).format
            let image = try PreparedPicture.thumbnail(of: path, configuration, cancellation)
            guard let made = try PreparedPicture.thumbnail(of: image, format, configuration) else { return [] }
            bytes = made
        } catch {
            throw StoreError(error, name: name)
        }
        // A store that cannot be written to has its thumbnails made each time.
        try? keep(bytes, as: name, path, stamp)
        return bytes
    }

    private func keep(
        _ bytes: [UInt8], as name: String, _ path: String, _ stamp: Duration?
    ) throws(StoreError) {
        guard let stamp else { return }
        try thumbnails.makeDirectory()
        let writer = try thumbnails.writer(name, replacing: true)
        try files.named(name) { () throws(FileError) in
            try writer.write(bytes)
            try writer.setModified(stamp)
        }
        try ThumbnailPair.whileLocked(store) { () throws(StoreError) in
            guard ThumbnailPair.modified(path) == stamp else { return }
            try files.named(name) { () throws(FileError) in try writer.place() }
        }
    }

    private func decode(
        _ input: ImageInput, _ name: String, at resizer: ImageResizer = .none
    ) throws(StoreError) -> Image {
        do throws(ImageError) {
            return try ImageDecoder(limits: configuration.limits).decode(
                input, at: resizer, cancellation: cancellation ?? CancellationToken())
        } catch {
            throw StoreError(error, name: name)
        }
    }
}
