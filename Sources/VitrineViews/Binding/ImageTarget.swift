/// Something that shows one image at a time: an image view, a layer, one state of a button.
///
/// ```swift
/// extension Picture: ImageTarget {
///     func show(_ image: Image?, transition: ImageTransition) { setTexture(image, fade: transition) }
///     var targetGeometry: TargetGeometry? { TargetGeometry(width: width, height: height, scale: scaleFactor, mode: .aspectFill) }
/// }
/// ```
///
/// What it is to show at which time is decided by an ``ImageBinding``.
@MainActor
public protocol ImageTarget<Value>: AnyObject {
    /// What it shows, for example `Image`, or the picture type of a toolkit.
    associatedtype Value: Sendable

    /// Shows an image instead of what it shows now; nil for nothing.
    func show(_ image: Value?, transition: ImageTransition)

    /// What images are brought to before they are shown; nil for a target that takes them as they are, or has no size
    /// yet. The default is nil.
    var targetGeometry: TargetGeometry? { get }
}

extension ImageTarget {
    public var targetGeometry: TargetGeometry? { nil }
}

/// How one image takes the place of another.
public enum ImageTransition: Sendable, Hashable {
    /// At once.
    case none
    /// By fading over.
    case crossFade(Duration)

    /// A fade of a tenth of a second.
    public static let standard = ImageTransition.crossFade(.milliseconds(100))
    /// A fade of a quarter of a second, for images that appear on an empty ground.
    public static let slow = ImageTransition.crossFade(.milliseconds(250))
}
