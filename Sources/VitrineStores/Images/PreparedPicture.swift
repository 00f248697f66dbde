import VitrineCore
import VitrineImaging

/// A picture as it will be saved: its bytes and those of its thumbnail, made before anything is written.
struct PreparedPicture {
    /// Where the picture's bytes are.
    enum Contents {
        case bytes([UInt8])
        case file(String)
    }

    var contents: Contents
    /// nil for none.
    var thumbnail: [UInt8]?
    /// What the picture is, for a name that is to be made.
    var format: ImageFormat

    typealias Configuration = ImageStore.Configuration

    /// A picture in memory.
    init(_ image: Image, name: String?, _ configuration: Configuration) throws(ImageError) {
        let reduced = try configuration.resizer.resize(image)
        let encoded = try Self.encoded(reduced, name: name, configuration)
        format = encoded.format
        contents = .bytes(encoded.bytes)
        thumbnail = try Self.thumbnail(of: reduced, format, configuration)
    }

    /// The bytes of a picture in memory, and their format.
    static func encoded(
        _ image: Image, name: String?, _ configuration: Configuration
    ) throws(ImageError) -> (bytes: [UInt8], format: ImageFormat) {
        let reduced = try configuration.resizer.resize(image)
        let wanted = configuration.format ?? name.flatMap(Self.writtenFormat)
        let output = Self.output(wanted, configuration.quality ?? OutputFormat.defaultQuality)
        return (try reduced.encoded(as: output), output.imageFormat(for: reduced))
    }

    /// A picture as a file or bytes: kept as it is where nothing is asked of it.
    init(
        _ input: ImageInput, name: String?, _ configuration: Configuration, _ cancellation: CancellationToken?
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

    /// The thumbnail of a picture that is there already.
    static func thumbnail(
        of path: String, _ configuration: Configuration, _ cancellation: CancellationToken?
    ) throws(ImageError) -> Image {
        try ImageDecoder(limits: configuration.limits).decode(
            .file(path), at: configuration.thumbnailResizer, cancellation: cancellation ?? CancellationToken())
    }

    /// Its bytes, in the format of the picture if that can be written.
    static func thumbnail(
        of image: Image, _ format: ImageFormat, _ configuration: Configuration
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
        EncoderRegistry.standard.formats.contains(format)
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
