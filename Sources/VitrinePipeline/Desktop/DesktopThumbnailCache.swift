import VitrineCore
import VitrineImaging

/// The thumbnails that file managers and other programs of a desktop share, as the freedesktop.org Thumbnail Managing
/// Standard, version 0.9, lays them down.
///
/// ```swift
/// let desktop = DesktopThumbnailCache()
/// if let picture = desktop.thumbnail(of: "photo.jpg", size: PixelSize(200)) { … }
/// ```
///
/// Thumbnails are PNG files in `$XDG_CACHE_HOME/thumbnails`, named after the MD5 digest of the file's address, in
/// directories by size: 128, 256, 512 and 1024 pixels. A thumbnail counts as long as the address and the time of change
/// that stand in it are the file's. Thumbnails that stand beside the files, in `.sh_thumbnails`, are read too, never
/// written.
///
/// Only you can read the files: directories have the mode 0700, files 0600. Nothing is looked up or written for
/// files that you cannot read, and for files which are thumbnails themselves. All calls block.
public struct DesktopThumbnailCache: Sendable, Hashable {
    /// Facts about the file that other programs can show. All are optional.
    public struct Details: Sendable, Hashable {
        /// Such as `image/jpeg`.
        public var mediaType: String?
        /// Width and height of a picture, in pixels.
        public var size: PixelSize?
        /// Pages of a document.
        public var pageCount: Int?
        /// Length of a film, in seconds.
        public var duration: Double?

        public init(
            mediaType: String? = nil, size: PixelSize? = nil, pageCount: Int? = nil, duration: Double? = nil
        ) {
            self.mediaType = mediaType
            self.size = size
            self.pageCount = pageCount
            self.duration = duration
        }
    }

    /// Where the thumbnails are.
    public let directory: String
    /// The name and version under which failures are recorded, as another version may succeed.
    public let program: String

    /// - Parameters:
    ///   - directory: Where the thumbnails are; nil for `$XDG_CACHE_HOME/thumbnails`, else `~/.cache/thumbnails`.
    ///   - program: The program's name and version. Default `vitrine-0.1`.
    public init(directory: String? = nil, program: String = "vitrine-0.1") {
        self.directory = directory ?? FilePath.join(Directories.current.caches, "thumbnails")
        self.program = FileName.escaped(program)
    }

    /// Where the thumbnail of a file has its place, whether there is one or not.
    public func location(of path: String, size: DesktopThumbnailSize) -> String {
        location(MD5Digest.digest(of: FileURI.text(of: path)), in: size.directoryName)
    }

    // MARK: Reading

    /// The thumbnail of a file in `size` pixels or less, if a valid one is there which is large enough.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - size: The box it is fitted into. A thumbnail of a file that is smaller than the box has the file's own size.
    /// - Returns: nil when there is none, when it is of another version of the file, when it cannot be read, and for
    ///   boxes above 1024 pixels.
    public func thumbnail(of path: String, size: PixelSize) -> Image? {
        guard !size.isEmpty, let least = DesktopThumbnailSize(covering: size.longestSide),
            let original = original(path)
        else { return nil }
        for candidate in DesktopThumbnailSize.allCases where candidate >= least {
            if let image = image(of: original, size, from: candidate) { return image }
        }
        return nil
    }

    /// Whether the thumbnail is there and valid, without decoding it.
    public func hasThumbnail(of path: String, size: DesktopThumbnailSize) -> Bool {
        guard let original = original(path) else { return false }
        return candidates(original, size).contains { entry(at: $0.path, of: original, isShared: $0.isShared) != nil }
    }

    /// The file, if it may have thumbnails: readable, and none itself. Take it before decoding the file.
    public func original(_ path: String) -> DesktopOriginal? {
        guard let original = DesktopOriginal(path: path), !isThumbnail(path) else { return nil }
        return original
    }

    private func image(of original: DesktopOriginal, _ box: PixelSize, from size: DesktopThumbnailSize) -> Image? {
        for candidate in candidates(original, size) {
            guard let entry = entry(at: candidate.path, of: original, isShared: candidate.isShared),
                entry.isLargeEnough(for: box),
                let image = try? ImageDecoder().decode(
                    .bytes(entry.bytes, name: candidate.path),
                    at: ImageResizer(size: box, mode: .aspectFit, allowsUpscaling: false))
            else { continue }
            return image
        }
        return nil
    }

    private func candidates(
        _ original: DesktopOriginal, _ size: DesktopThumbnailSize
    ) -> [(path: String, isShared: Bool)] {
        let own = FilePath.join(FilePath.join(directory, size.directoryName), original.thumbnailName)
        let beside = FilePath.join(FilePath.parent(of: original.path), Self.sharedDirectoryName)
        let shared = FilePath.join(beside, size.directoryName)
        return [(own, false)] + original.sharedNames.map { (FilePath.join(shared, $0), true) }
    }

    private func entry(at path: String, of original: DesktopOriginal, isShared: Bool) -> DesktopThumbnailEntry? {
        guard let entry = DesktopThumbnailEntry(path: path), entry.isValid(for: original, isShared: isShared) else {
            return nil
        }
        return entry
    }

    // MARK: Writing

    /// Stores a thumbnail for other programs.
    ///
    /// - Parameters:
    ///   - image: Made from the whole file, with at least as many pixels as `size` has or the file's own. Reduced if it
    ///     has more.
    ///   - original: The file as it was before it was decoded.
    ///   - size: The size to store.
    ///   - details: Facts about the file.
    /// - Returns: Whether it was stored: not if the file has changed since, or may not have thumbnails.
    /// - Throws: ``ImagePipelineError/underlying(source:error:)`` when it cannot be written.
    @discardableResult
    public func store(
        _ image: Image, of original: DesktopOriginal, size: DesktopThumbnailSize, details: Details = Details()
    ) throws(ImagePipelineError) -> Bool {
        let fitted: Image
        do throws(ImageError) {
            fitted = try ImageResizer(size: PixelSize(size.side), mode: .aspectFit, allowsUpscaling: false)
                .resize(image)
        } catch {
            throw ImagePipelineError(error, source: original.path)
        }
        return try write(fitted, of: original, to: size.directoryName, details)
    }

    /// Records that no thumbnail can be made of this version of the file.
    ///
    /// - Returns: Whether it was recorded; see ``store(_:of:size:details:)``.
    @discardableResult
    public func storeFailure(of original: DesktopOriginal) throws(ImagePipelineError) -> Bool {
        try write(Image(size: PixelSize(1), color: .clear), of: original, to: FilePath.join("fail", program), Details())
    }

    /// Whether this program has failed on this version of the file before.
    public func hasFailed(_ path: String) -> Bool {
        guard let original = original(path) else { return false }
        let location = location(MD5Digest.digest(of: original.uri), in: FilePath.join("fail", program))
        return entry(at: location, of: original, isShared: false) != nil
    }

    private func write(
        _ image: Image, of original: DesktopOriginal, to name: String, _ details: Details
    ) throws(ImagePipelineError) -> Bool {
        // The version the picture was made from may be gone by now.
        guard self.original(original.path) == original else { return false }
        var options = EncodeOptions()
        options.writesAllChannels = true
        do {
            let file = PNGText.adding(
                texts(original, details), to: try image.encoded(as: .png, options: options))
            let directory = FilePath.join(directory, name)
            try Directory.create(directory)
            let path = FilePath.join(directory, original.thumbnailName)
            try AtomicFile.write(file, to: path, permissions: 0o600)
        } catch {
            throw .underlying(source: original.path, error: error)
        }
        return true
    }

    private func texts(_ original: DesktopOriginal, _ details: Details) -> [(keyword: String, text: String)] {
        var texts = [
            ("Thumb::URI", original.uri), ("Thumb::MTime", "\(original.modified)"),
            ("Thumb::Size", "\(original.count)"), ("Software", "Vitrine"),
        ]
        if let type = details.mediaType { texts.append(("Thumb::Mimetype", type)) }
        if let size = details.size {
            texts += [("Thumb::Image::Width", "\(size.width)"), ("Thumb::Image::Height", "\(size.height)")]
        }
        if let count = details.pageCount { texts.append(("Thumb::Document::Pages", "\(count)")) }
        if let seconds = details.duration, seconds.isFinite, seconds >= 0, seconds < 1e9 {
            texts.append(("Thumb::Movie::Length", "\(Int(seconds))"))
        }
        return texts
    }

    private func location(_ digest: [UInt8], in name: String) -> String {
        FilePath.join(FilePath.join(directory, name), Hexadecimal.text(digest) + ".png")
    }
}
