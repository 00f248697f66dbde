#if canImport(UIKit) && !os(watchOS)
public import UIKit
public import VitrineImaging

/// An image view shows images at its own size, in pixels of its display and by its content mode.
///
/// ```swift
/// cell.imageView.imageBinding.options.placeholder = tile
/// cell.imageView.imageBinding.set(ImageRequest(url))                 // in collectionView(_:cellForItemAt:)
/// cell.imageView.imageBinding.prepareForReuse()                      // in prepareForReuse()
/// cell.imageView.imageBinding.targetSizeDidChange()                         // in layoutSubviews()
/// ```
///
/// Type-checked, and run against stand-ins for UIKit; not run on a device.
extension UIImageView: ImageTarget {
    /// The binding of the view, created at its first use. It lives as long as the view.
    public var imageBinding: ImageBinding<UIImageView> { AttachedObject.of(self) { ImageBinding(self) } }

    /// Shows an image, with a fade only in a window. ``imageBinding`` calls this.
    public func show(_ image: VitrineImaging.PixelImage?, transition: ImageTransition) {
        let picture = image?.makeUIImage(scale: traitCollection.pixelsPerPoint)
        fade(transition) { self.image = picture }
    }

    /// The bounds in pixels; nil without a size, and for content modes that do not scale.
    public var targetGeometry: TargetGeometry? {
        guard let mode = contentMode.resizing else { return nil }
        return TargetGeometry(bounds.size, scale: traitCollection.pixelsPerPoint, mode: mode)
    }

    /// The user's setting “Reduce Motion”.
    public var prefersReducedMotion: Bool { UIAccessibility.isReduceMotionEnabled }
}

extension UIView {
    /// Changes the view, with a cross-dissolve if there is a visible transition and the view is in a window.
    func fade(_ transition: ImageTransition, _ change: @escaping () -> Void) {
        guard let seconds = transition.seconds, window != nil else { return change() }
        UIView.transition(
            with: self, duration: seconds, options: [.transitionCrossDissolve, .allowUserInteraction],
            animations: change)
    }
}

extension UIView.ContentMode {
    /// How images are brought to the view's size; nil if they are not.
    fileprivate var resizing: ImageResizer.Mode? {
        switch self {
        case .scaleToFill: .stretch
        case .scaleAspectFit: .fit
        case .scaleAspectFill: .fill
        default: nil
        }
    }
}

extension UITraitCollection {
    /// The scale of the display; 1 if it is not known, which UIKit represents by 0.
    var pixelsPerPoint: Double { displayScale > 0 ? Double(displayScale) : 1 }
}
#endif
