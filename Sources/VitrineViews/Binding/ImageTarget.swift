public import VitrineCore
public import VitrineImaging

/// A view that shows one image at a time: an image view, a layer, or one state of a button.
///
/// ```swift
/// extension Picture: ImageTarget {
///     func show(_ image: PixelImage?, transition: ImageTransition) { setTexture(image, fade: transition) }
///     var targetGeometry: TargetGeometry? {
///         TargetGeometry(width: width, height: height, scale: scaleFactor, mode: .fill)
///     }
/// }
/// ```
///
/// An ``ImageBinding`` decides which image the target shows at which time.
@MainActor
public protocol ImageTarget: AnyObject {
    /// Replaces the image that the target shows; nil for no image.
    func show(_ image: PixelImage?, transition: ImageTransition)

    /// The size and mode of the images that the target shows. nil, the default, for a target that takes images at their
    /// own size, or that has no size yet.
    var targetGeometry: TargetGeometry? { get }

    /// Whether the user wants no motion, so that animations show their first frame only. Default: false.
    var prefersReducedMotion: Bool { get }
}

extension ImageTarget {
    public var targetGeometry: TargetGeometry? { nil }

    public var prefersReducedMotion: Bool { false }
}

/// A view that shows several images, each in a slot: for example a button with one image for each state.
@MainActor
public protocol MultiImageTarget: AnyObject {
    /// Identifies a slot.
    associatedtype Slot: Hashable & Sendable

    /// Replaces the image of a slot; nil for no image.
    func show(_ image: PixelImage?, in slot: Slot, transition: ImageTransition)

    /// The size and mode of the images that a slot shows. nil, the default, for images at their own size.
    func targetGeometry(of slot: Slot) -> TargetGeometry?

    /// Whether the user wants no motion, so that animations show their first frame only. Default: false.
    var prefersReducedMotion: Bool { get }
}

extension MultiImageTarget {
    public func targetGeometry(of slot: Slot) -> TargetGeometry? { nil }

    public var prefersReducedMotion: Bool { false }
}

/// The transition from one image to the next.
public enum ImageTransition: Sendable, Hashable {
    /// The new image appears at once.
    case none
    /// The new image fades in for a duration.
    case crossFade(Duration)

    /// A fade of a tenth of a second.
    public static let standard = ImageTransition.crossFade(.milliseconds(100))
}

/// The size of a target in pixels of the display, and how images are resized for it.
public struct TargetGeometry: Sendable, Hashable {
    /// Width and height in pixels, both positive.
    public let size: PixelSize
    /// How an image is resized to the size.
    public let mode: ImageResizer.Mode
    /// Whether smaller images are enlarged before they are cached. If not, the toolkit enlarges them when it draws.
    public let allowsUpscaling: Bool

    /// Creates the geometry of a view.
    ///
    /// - Parameters:
    ///   - width: In points.
    ///   - height: In points.
    ///   - scale: Pixels a point. The products are rounded up, unless they are within a millionth of a whole number.
    ///   - mode: How an image is resized to the size.
    ///   - allowsUpscaling: Whether smaller images are enlarged.
    /// - Returns: nil without a positive, finite size, for example before the first layout.
    public init?(
        width: Double, height: Double, scale: Double = 1, mode: ImageResizer.Mode = .fit,
        allowsUpscaling: Bool = true
    ) {
        let columns = PixelSize.pixels(width, scale: scale), rows = PixelSize.pixels(height, scale: scale)
        guard Self.sides.contains(columns), Self.sides.contains(rows) else { return nil }
        size = PixelSize(width: Int(columns), height: Int(rows))
        self.mode = mode
        self.allowsUpscaling = allowsUpscaling
    }

    private static let sides = 1.0...1_048_576

    /// The resizer that gives images this size.
    public var resizer: ImageResizer { ImageResizer(size: size, mode: mode, allowsUpscaling: allowsUpscaling) }
}

/// Options of an ``ImageBinding``.
public struct ImageOptions: Sendable {
    /// The image that is shown while another one is loaded. Images in memory need none. Default: nil; see
    /// ``keepsPreviousImage``.
    public var placeholder: PixelImage?
    /// The image that is shown if a request fails. Default: nil, which leaves the target as it is.
    public var failureImage: PixelImage?
    /// Whether the target keeps its previous image while another one is loaded and there is no placeholder. If not, it
    /// shows no image. Default: true.
    public var keepsPreviousImage = true
    /// The transition to an image that was not in memory. Images in memory, placeholders and failure images appear at
    /// once. Default: ``ImageTransition/standard``.
    public var transition = ImageTransition.standard
    /// Whether animations play: GIF, APNG, WebP, AVIF and JPEG XL from files, bytes and URLs. Default: true.
    ///
    /// The first frame is shown as any image. The others follow while the target is visible, unless it asks for reduced
    /// motion. An animation at a URL plays if the pipeline's cache has its original bytes. `AnimatedImage.frameCapacity`
    /// bounds the memory of the frames.
    public var playsAnimations = true
    /// The priority of requests while the target is visible. Default: normal.
    public var priority = RequestPriority.normal

    /// Creates the default options.
    public init() {}
}
