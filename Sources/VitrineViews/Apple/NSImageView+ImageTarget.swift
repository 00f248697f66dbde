#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit
import QuartzCore
public import VitrineImaging

/// An image view shows images at its own size, in pixels of its display and by its scaling.
///
/// ```swift
/// item.imageView?.imageBinding.set(ImageRequest(.file(path)))
/// ```
///
/// Type-checked, and run against stand-ins for AppKit; not run on a Mac.
extension NSImageView: ImageTarget {
    /// The binding of the view, created at its first use. It lives as long as the view.
    public var imageBinding: ImageBinding<NSImageView> { AttachedObject.of(self) { ImageBinding(self) } }

    private var pixelsPerPoint: Double { Double(window?.backingScaleFactor ?? 1) }

    /// Shows an image, with a fade only in a window. A fade gives the view a layer. ``imageBinding`` calls this.
    public func show(_ image: VitrineImaging.PixelImage?, transition: ImageTransition) {
        if let seconds = transition.seconds, window != nil {
            let fade = CATransition()
            fade.type = .fade
            fade.duration = seconds
            wantsLayer = true
            layer?.add(fade, forKey: "vitrine.fade")
        }
        self.image = image?.makeNSImage(scale: pixelsPerPoint)
    }

    /// The bounds in pixels; nil without a size, and for a view that does not scale.
    public var targetGeometry: TargetGeometry? {
        let (size, scale) = (bounds.size, pixelsPerPoint)
        switch imageScaling {
        case .scaleProportionallyDown: return TargetGeometry(size, scale: scale, mode: .fit, allowsUpscaling: false)
        case .scaleAxesIndependently: return TargetGeometry(size, scale: scale, mode: .stretch)
        case .scaleProportionallyUpOrDown: return TargetGeometry(size, scale: scale, mode: .fit)
        default: return nil
        }
    }

    /// The user's setting “Reduce motion”.
    public var prefersReducedMotion: Bool { NSWorkspace.shared.accessibilityDisplayShouldReduceMotion }
}
#endif
