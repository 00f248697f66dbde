#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
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
package struct DesktopThumbnailCache: Sendable, Hashable {
    /// Facts about the file that other programs can show. All are optional.
    package struct Details: Sendable, Hashable {
        /// Such as `image/jpeg`.
        package var mediaType: String?
        /// Width and height of an image, in pixels.
        package var size: PixelSize?
        /// Pages of a document.
        package var pageCount: Int?
        /// Length of a video, in seconds.
        package var duration: Double?

        package init(
            mediaType: String? = nil, size: PixelSize? = nil, pageCount: Int? = nil, duration: Double? = nil
        ) {
            self.mediaType = mediaType
            self.size = size
            self.pageCount = pageCount
            self.duration = duration
        }
    }

    /// Where the thumbnails are.
    package let directory: String
    /// The name and version under which failures are recorded, as another version may succeed.
    package let program: String

    /// - Parameters:
    ///   - directory: Where the thumbnails are; nil for `$XDG_CACHE_HOME/thumbnails`, else `~/.cache/thumbnails`.
    ///   - program: The program's name and version. Default `vitrine-0.1`.
    package init(directory: String? = nil, program: String = "vitrine-0.1") {
        self.directory = directory ?? FilePath.join(Directories.current.caches, "thumbnails")
        self.program = FileName.escaped(program)
    }

    /// Where the thumbnail of a file has its place, whether there is one or not.
    package func location(of path: String, size: DesktopThumbnailSize) -> String {
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
    package func thumbnail(of path: String, size: PixelSize) -> PixelImage? {
        guard !size.isEmpty, let least = DesktopThumbnailSize(covering: size.longestSide),
            let original = original(path)
        else { return nil }
        for candidate in DesktopThumbnailSize.allCases where candidate >= least {
            if let image = image(of: original, size, from: candidate) { return image }
        }
        return nil
    }

    /// Whether the thumbnail is there and valid, without decoding it.
    package func hasThumbnail(of path: String, size: DesktopThumbnailSize) -> Bool {
        guard let original = original(path) else { return false }
        return candidates(original, size).contains { entry(at: $0.path, of: original, isShared: $0.isShared) != nil }
    }

    /// The file, if it may have thumbnails: readable, and none itself. Take it before decoding the file.
    package func original(_ path: String) -> DesktopOriginal? {
        guard let original = DesktopOriginal(path: path), !isThumbnail(path) else { return nil }
        return original
    }

    private func image(of original: DesktopOriginal, _ box: PixelSize, from size: DesktopThumbnailSize) -> PixelImage? {
        for candidate in candidates(original, size) {
            guard let entry = entry(at: candidate.path, of: original, isShared: candidate.isShared),
                entry.isLargeEnough(for: box),
                let image = try? ImageDecoder().decode(
                    .bytes(entry.bytes, name: candidate.path),
                    at: ImageResizer(size: box, mode: .fit, allowsUpscaling: false))
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
    package func store(
        _ image: PixelImage, of original: DesktopOriginal, size: DesktopThumbnailSize, details: Details = Details()
    ) throws(ImagePipelineError) -> Bool {
        let fitted: PixelImage
        do throws(ImageError) {
            fitted = try ImageResizer(size: PixelSize(size.side), mode: .fit, allowsUpscaling: false)
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
    package func storeFailure(of original: DesktopOriginal) throws(ImagePipelineError) -> Bool {
        try write(PixelImage(size: PixelSize(1), color: .clear), of: original, to: FilePath.join("fail", program), Details())
    }

    /// Whether this program has failed on this version of the file before.
    package func hasFailed(_ path: String) -> Bool {
        guard let original = original(path) else { return false }
        return entry(at: failureLocation(of: path), of: original, isShared: false) != nil
    }

    /// Where a failure of this program on a file has its place.
    package func failureLocation(of path: String) -> String {
        location(MD5Digest.digest(of: FileURI.text(of: path)), in: FilePath.join("fail", program))
    }

    private func write(
        _ image: PixelImage, of original: DesktopOriginal, to name: String, _ details: Details
    ) throws(ImagePipelineError) -> Bool {
        // The version the image was made from may be gone by now.
        guard self.original(original.path) == original else { return false }
        var options = EncodeOptions()
        options.writesAllChannels = true
        do {
            var file = try image.encoded(as: .png, options: options)
            if let texts = Codecs.standard[.png]?.texts { file = texts.adding(entries(original, details), to: file) }
            let directory = FilePath.join(directory, name)
            try Directory.create(directory)
            let path = FilePath.join(directory, original.thumbnailName)
            // Nobody puts links into this cache on purpose: one there must not lead a write to another file.
            try file.withUnsafeBytes { file in
                try AtomicFile.write(file, to: path, options: .replacesSpecialFiles, permissions: 0o600)
            }
        } catch {
            throw .underlying(source: original.path, error: error)
        }
        return true
    }

    private func entries(_ original: DesktopOriginal, _ details: Details) -> [(keyword: String, text: String)] {
        var entries = [
            ("Thumb::URI", original.uri), ("Thumb::MTime", "\(original.modified)"),
            ("Thumb::Size", "\(original.count)"), ("Software", "Vitrine"),
        ]
        if let type = details.mediaType { entries.append(("Thumb::Mimetype", type)) }
        if let size = details.size {
            entries += [("Thumb::Image::Width", "\(size.width)"), ("Thumb::Image::Height", "\(size.height)")]
        }
        if let count = details.pageCount { entries.append(("Thumb::Document::Pages", "\(count)")) }
        if let seconds = details.duration, seconds.isFinite, seconds >= 0, seconds < 1e9 {
            entries.append(("Thumb::Movie::Length", "\(Int(seconds))"))
        }
        return entries
    }

    private func location(_ digest: [UInt8], in name: String) -> String {
        FilePath.join(FilePath.join(directory, name), Hexadecimal.text(digest) + ".png")
    }
}

extension DesktopThumbnailCache {
    /// The directory of thumbnails that lie beside their files ("Shared Thumbnail Repositories").
    static let sharedDirectoryName = ".sh_thumbnails"

    /// Whether a file lies among thumbnails, also through symbolic links: such files never have thumbnails.
    func isThumbnail(_ path: String) -> Bool {
        let roots = [FileURI.absolute(directory), FilePath.resolved(directory)].compactMap(\.self)
        return [FileURI.absolute(path), FilePath.resolved(path)].compactMap(\.self).contains { path in
            path.split(separator: "/").contains { $0 == Self.sharedDirectoryName }
                || roots.contains { path.hasPrefix($0 + "/") }
        }
    }
}

/// The sizes of thumbnails that desktops share (Thumbnail Managing Standard 0.9, "Thumbnail Directory").
package enum DesktopThumbnailSize: Int, Sendable, Hashable, CaseIterable, Comparable {
    case normal = 128
    case large = 256
    case extraLarge = 512
    case doubleExtraLarge = 1024

    /// The longest side that such a thumbnail has at most, in pixels.
    package var side: Int { rawValue }

    /// The directory of such thumbnails.
    package var directoryName: String {
        switch self {
        case .normal: "normal"
        case .large: "large"
        case .extraLarge: "x-large"
        case .doubleExtraLarge: "xx-large"
        }
    }

    /// The smallest that has `side` pixels or more; nil above 1024.
    package init?(covering side: Int) {
        guard let size = Self.allCases.first(where: { $0.side >= side }) else { return nil }
        self = size
    }

    package static func < (a: DesktopThumbnailSize, b: DesktopThumbnailSize) -> Bool { a.side < b.side }
}

/// A thumbnail file: its bytes, and its records about the original.
package struct DesktopThumbnailEntry {
    /// Larger files are no thumbnails: 1024 by 1024 pixels have 4 MB before they are compressed.
    private static let maximumCount = 16 << 20

    let bytes: [UInt8]
    private let texts: [String: String]
    private let size: PixelSize

    /// nil when there is none or it is no PNG.
    init?(path: String) {
        guard let source = try? ByteSource(.file(path)), source.count <= Self.maximumCount,
            let bytes = try? source.allBytes()
        else { return nil }
        self.init(bytes: bytes, name: path)
    }

    /// nil unless it is a PNG file.
    package init?(bytes: [UInt8], name: String) {
        let copy = ByteSource(bytes: bytes, name: name)
        guard let texts = try? Codecs.standard[.png]?.texts?.entries(of: copy),
            let info = try? ImageInfo(reading: copy), info.format == .png
        else { return nil }
        self.bytes = bytes
        self.texts = texts
        size = info.size
    }

    /// Whether it is of this version of the file. Shared ones need not say so, as they may be kept up to date in
    /// another way, but must not say otherwise.
    func isValid(for original: DesktopOriginal, isShared: Bool) -> Bool {
        if let size = texts["Thumb::Size"], Int(size) != original.count { return false }
        let (uri, modified) = (texts["Thumb::URI"], texts["Thumb::MTime"])
        guard isShared else { return uri == original.uri && modified.flatMap(Self.seconds) == original.modified }
        return uri.map(original.sharedURIs.contains) ?? true
            && modified.map { Self.seconds($0) == original.modified } ?? true
    }

    /// Whether it fills `box`, or has all pixels the file has as far as it says.
    package func isLargeEnough(for box: PixelSize) -> Bool {
        if size.width >= box.width || size.height >= box.height { return true }
        guard let width = texts["Thumb::Image::Width"].flatMap({ Int($0) }),
            let height = texts["Thumb::Image::Height"].flatMap({ Int($0) })
        else { return true }
        return max(width, height) <= size.longestSide
    }

    /// Seconds as programs write them: whole ones, a few with a fraction.
    private static func seconds(_ text: String) -> Int? {
        Int(text.prefix { $0 != "." })
    }
}
