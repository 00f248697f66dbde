#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore
public import VitrineImaging

/// A named look of images: the size, the processors and the file format that many requests share.
///
/// ```swift
/// let avatar = ImageStyle(
///     "avatar", resizing: .crop(width: 96, height: 96), processors: [.circle()], format: .webp(quality: 0.8))
/// let image = try await ImagePipeline.shared.image(for: ImageRequest(url, style: avatar, scale: 2))
/// ```
///
/// A `CacheFormat` and a preset of the image server can be made of it as well. Results of requests are cached by the
/// size, the processors and the format. The name is for people, and identifies a closure of the style.
public struct ImageStyle: Sendable, Hashable {
    /// The name of the style.
    public let name: String
    /// The rule for the size of the results, before the scale of a request. Default: the size of the source.
    public var resizing: ImageResizer
    /// The processors, which run in order after the image was resized.
    public var processors: [ImageProcessor]
    /// The file format in which caches store the results. Default nil: that of the cache.
    public var format: OutputFormat?

    /// Creates a style.
    public init(
        _ name: String, resizing: ImageResizer = .none, processors: [ImageProcessor] = [], format: OutputFormat? = nil
    ) {
        (self.name, self.resizing, self.processors, self.format) = (name, resizing, processors, format)
    }

    /// Creates a style whose images a closure draws.
    ///
    /// - Parameters:
    ///   - name: Identifies the closure in the caches. Another closure needs another name.
    ///   - resizing: The rule for the size of the images that the closure gets.
    ///   - format: The file format in which caches store the results. Default: that of the cache.
    ///   - transform: Draws the result. Runs on a thread that may block, several times at once for different images.
    public init(
        _ name: String, resizing: ImageResizer = .none, format: OutputFormat? = nil,
        transform: @escaping @Sendable (PixelImage) throws(ImageError) -> PixelImage
    ) {
        self.init(name, resizing: resizing, processors: [.custom(identifier: name, transform)], format: format)
    }
}

extension CacheFormat where Value == PixelImage {
    /// Creates a format of a cache that has the name of a style, and whose images have its look.
    ///
    /// - Parameters:
    ///   - style: The style.
    ///   - diskCapacity: See `CacheFormat.diskCapacity`.
    ///   - memoryCapacity: See `CacheFormat.memoryCapacity`.
    public init(_ style: ImageStyle, diskCapacity: ByteCount? = nil, memoryCapacity: ByteCount? = nil) {
        self.init(FormatName(style.name), diskCapacity: diskCapacity, memoryCapacity: memoryCapacity) { image in
            try style.resizing.resize(image).processed(by: style.processors)
        }
        if let format = style.format { encode = { try $0.encoded(as: format) } }
    }
}

extension ImageRequest {
    /// A request for an image of any source in a style.
    ///
    /// - Parameters:
    ///   - source: The source of the image.
    ///   - style: Its size, processors and format.
    ///   - scale: Pixels for each unit of the size, as of a display of high density. Default: 1.
    ///   - priority: How urgent it is.
    public init(_ source: any ImageSource, style: ImageStyle, scale: Double = 1, priority: RequestPriority = .normal) {
        self.init(source, resizing: style.resizing, scale: scale, processors: style.processors, priority: priority)
        format = style.format
    }

    /// A request for the image at a URL in a style.
    public init(_ url: URL, style: ImageStyle, scale: Double = 1, priority: RequestPriority = .normal) {
        self.init(URLImageSource(url), style: style, scale: scale, priority: priority)
    }
}
