#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore
public import VitrineImaging

/// A named look of images: the size and the processors that many requests share.
///
/// ```swift
/// let avatar = ImageStyle("avatar", resizing: .crop(width: 96, height: 96), processors: [.circle()])
/// let image = try await ImagePipeline.shared.image(for: ImageRequest(url, style: avatar, scale: 2))
/// ```
///
/// Results are cached by the size and the processors. The name is for people, and identifies a closure of the style.
public struct ImageStyle: Sendable, Hashable {
    /// The name of the style.
    public let name: String
    /// The rule for the size of the results, before the scale of a request. Default: the size of the source.
    public var resizing: ImageResizer
    /// The processors, which run in order after the image was resized.
    public var processors: [ImageProcessor]

    /// Creates a style.
    public init(_ name: String, resizing: ImageResizer = .none, processors: [ImageProcessor] = []) {
        (self.name, self.resizing, self.processors) = (name, resizing, processors)
    }

    /// Creates a style whose images a closure draws.
    ///
    /// - Parameters:
    ///   - name: Identifies the closure in the caches. Another closure needs another name.
    ///   - resizing: The rule for the size of the images that the closure gets.
    ///   - transform: Draws the result. Runs on a thread that may block, several times at once for different images.
    public init(
        _ name: String, resizing: ImageResizer = .none,
        transform: @escaping @Sendable (PixelImage) throws(ImageError) -> PixelImage
    ) {
        self.init(name, resizing: resizing, processors: [.custom(identifier: name, transform)])
    }
}

extension ImageRequest {
    /// A request for an image of any source in a style.
    ///
    /// - Parameters:
    ///   - source: The source of the image.
    ///   - style: Its size and processors.
    ///   - scale: Pixels for each unit of the size, as of a display of high density. Default: 1.
    ///   - priority: How urgent it is.
    public init(_ source: any ImageSource, style: ImageStyle, scale: Double = 1, priority: RequestPriority = .normal) {
        self.init(source, resizing: style.resizing, scale: scale, processors: style.processors, priority: priority)
    }

    /// A request for the image at a URL in a style.
    public init(_ url: URL, style: ImageStyle, scale: Double = 1, priority: RequestPriority = .normal) {
        self.init(url, resizing: style.resizing, scale: scale, processors: style.processors, priority: priority)
    }
}
