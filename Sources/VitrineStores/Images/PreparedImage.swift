import VitrineCore
import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// An image as it will be saved: its bytes and those of its thumbnail, made before anything is written.
package struct PreparedImage {
    /// Where the image's bytes are.
    enum Contents {
        case bytes([UInt8])
        case file(String)
    }

    var contents: Contents
    /// nil for none.
    var thumbnail: [UInt8]?
    /// The format of the image, for a generated name.
    var format: ImageFormat

    typealias Configuration = ImageStore.Configuration

    /// An image in memory.
    init(_ image: PixelImage, name: String?, _ configuration: Configuration) throws(ImageError) {
        let reduced = try configuration.resizer.resize(image)
        let encoded = try Self.encoded(reduced, name: name, configuration)
        format = encoded.format
        contents = .bytes(encoded.bytes)
        thumbnail = try Self.thumbnail(of: reduced, format, configuration)
    }

    /// The bytes of an image in memory, and their format.
    package static func encoded(
        _ image: PixelImage, name: String?, _ configuration: ImageStore.Configuration
    ) throws(ImageError) -> (bytes: [UInt8], format: ImageFormat) {
        let reduced = try configuration.resizer.resize(image)
        let wanted = configuration.format ?? name.flatMap(Self.writtenFormat)
        let output = Self.output(wanted, configuration.quality ?? OutputFormat.defaultQuality)
        return (try reduced.encoded(as: output), output.imageFormat(for: reduced))
    }

    /// An image as a file or bytes: kept as it is where nothing is asked of it.
    init(
        _ input: ImageInput, name: String?, configuration: Configuration, cancellation: CancellationToken?
    ) throws(ImageError) {
        let cancellation = cancellation ?? CancellationToken()
        let decoder = ImageDecoder(limits: configuration.limits)
        let info = try ImageInfo(of: input, limits: configuration.limits)
        let wanted = configuration.format ?? name.flatMap(Self.writtenFormat)
        let isOther = wanted.map { $0 != info.format } ?? false
        guard configuration.quality != nil || configuration.reduces(info.size) || isOther else {
            format = info.format
            switch input {
            case .bytes(let bytes, _): contents = .bytes(bytes)
            case .file(let path): contents = .file(path)
            }
            // Made in any case: what cannot be shown is not saved.
            let small = try decoder.decode(input, at: Self.proof(configuration), cancellation: cancellation)
            thumbnail = try Self.thumbnail(of: small, info.format, configuration)
            return
        }
        let image = try decoder.decode(input, at: configuration.resizer, cancellation: cancellation)
        let kept = Self.isWritten(info.format) ? info.format : nil
        let output = Self.output(wanted ?? kept, configuration.quality ?? OutputFormat.defaultQuality)
        format = output.imageFormat(for: image)
        contents = .bytes(try image.encoded(as: output))
        thumbnail = try Self.thumbnail(of: image, format, configuration)
    }

    /// The thumbnail of an image that is there already.
    static func thumbnail(
        of path: String, _ configuration: Configuration, _ cancellation: CancellationToken?
    ) throws(ImageError) -> PixelImage {
        try ImageDecoder(limits: configuration.limits).decode(
            .file(path), at: configuration.thumbnailResizer, cancellation: cancellation ?? CancellationToken())
    }

    /// Its bytes, in the format of the image if that can be written.
    static func thumbnail(
        of image: PixelImage, _ format: ImageFormat, _ configuration: Configuration
    ) throws(ImageError) -> [UInt8]? {
        guard !configuration.ignoresThumbnails else { return nil }
        let small = try configuration.thumbnailResizer.resize(image)
        let quality = configuration.thumbnailQuality ?? configuration.quality ?? OutputFormat.defaultQuality
        return try small.encoded(as: output(isWritten(format) ? format : nil, quality))
    }

    /// The format an extension stands for, if it is one that can be written.
    static func writtenFormat(of name: String) -> ImageFormat? {
        let known: [String: ImageFormat] = [
            "jpg": .jpeg, "jpeg": .jpeg, "jpe": .jpeg, "png": .png, "webp": .webp, "avif": .avif, "jxl": .jxl,
            "gif": .gif,
        ]
        return known[FileName.pathExtension(of: name).lowercased()].flatMap { isWritten($0) ? $0 : nil }
    }

    private static func isWritten(_ format: ImageFormat) -> Bool {
        Codecs.standard.writtenFormats.contains(format)
    }

    /// Small enough to be quick, and decoded from every part of the file.
    private static func proof(_ configuration: Configuration) -> ImageResizer {
        configuration.ignoresThumbnails || configuration.thumbnailMaxSize == .zero
            ? .limit(width: 256, height: 256) : configuration.thumbnailResizer
    }

    private static func output(_ format: ImageFormat?, _ quality: Double) -> OutputFormat {
        switch format {
        case .jpeg: .jpeg(quality: quality)
        case .png: .png
        case .webp: .webp(quality: quality)
        case .avif: .avif(quality: quality)
        case .jxl: .jxl(quality: quality)
        case .gif: .gif
        default: .automatic(quality: quality)
        }
    }
}

/// The connection of an image and its thumbnail.
///
/// No file system renames two files in one step. So both have the same modification time, which no other version of the
/// image has. A thumbnail with another time belongs to another version and is not used. This needs no journal, and also
/// detects images edited by other programs.
enum ThumbnailPair {
    /// When a file was changed; nil if there is none.
    static func modified(_ path: String) -> Duration? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return .seconds(Int64(status.modified.tv_sec)) + .nanoseconds(Int64(status.modified.tv_nsec))
    }

    /// Whether both are there and belong together.
    static func isPair(_ original: String, _ thumbnail: String) -> Bool {
        guard let time = modified(original) else { return false }
        return modified(thumbnail) == time
    }

    /// Calls a body while no other process or thread changes pairs of the store. Without a directory for thumbnails
    /// there are none.
    static func whileLocked<R>(
        _ store: ImageStore, _ body: () throws(StoreError) -> R
    ) throws(StoreError) -> R {
        guard let directory = try? FileDescriptor(opening: store.thumbnails.directory, flags: O_RDONLY | O_DIRECTORY)
        else { return try body() }
        while flock(directory.number, LOCK_EX) != 0 {
            // Some network file systems have no locks: two writers of one name may then cost a thumbnail.
            guard errno == EINTR else { break }
        }
        // Released when the descriptor goes.
        return try body()
    }
}
