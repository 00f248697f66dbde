#if canImport(AppKit) && !targetEnvironment(macCatalyst)
public import AppKit
import QuartzCore
public import VitrineImaging

/// Image views show images at their size (R139), in pixels of their window's display, as their scaling says.
///
/// ```swift
/// item.imageView?.imageBinding.set(ImageRequest(.file(path)))
/// ```
///
/// Type-checked, and run against stand-ins for AppKit; not run on a Mac.
extension NSImageView: ImageTarget {
    /// The binding that fills the view, made when it is first asked for. It lives as long as the view.
    public var imageBinding: ImageBinding<NSImageView> { AttachedObject.of(self) { ImageBinding(self) } }

    private var pixelsPerPoint: Double { Double(window?.backingScaleFactor ?? 1) }

    /// Shows an image, fading only in a window, for which the view gets a layer. What ``imageBinding`` calls.
    public func show(_ image: VitrineImaging.Image?, transition: ImageTransition) {
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
        case .scaleProportionallyDown: return TargetGeometry(size, scale, .aspectFit, allowsUpscaling: false)
        case .scaleAxesIndependently: return TargetGeometry(size, scale, .fill)
        case .scaleProportionallyUpOrDown: return TargetGeometry(size, scale, .aspectFit)
        default: return nil
        }
    }
}
#endif
