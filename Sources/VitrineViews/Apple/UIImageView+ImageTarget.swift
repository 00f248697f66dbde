#if canImport(UIKit) && !os(watchOS)
public import UIKit
public import VitrineImaging

/// Image views show images at their size (R139), in pixels of their display, as their content mode says.
///
/// ```swift
/// cell.imageView.imageBinding.options.placeholder = tile
/// cell.imageView.imageBinding.set(.url(url, in: Shared.images))      // in collectionView(_:cellForItemAt:)
/// cell.imageView.imageBinding.prepareForReuse()                      // in prepareForReuse()
/// cell.imageView.imageBinding.targetSizeDidChange()                         // in layoutSubviews()
/// ```
///
/// Type-checked, and run against stand-ins for UIKit; not run on a device.
extension UIImageView: ImageTarget {
    /// The binding that fills the view, made when it is first asked for. It lives as long as the view.
    public var imageBinding: ImageBinding<UIImageView> { AttachedObject.of(self) { ImageBinding(self) } }

    /// Shows an image, fading only in a window. What ``imageBinding`` calls.
    public func show(_ image: VitrineImaging.Image?, transition: ImageTransition) {
        let picture = image?.makeUIImage(scale: traitCollection.pixelsPerPoint)
        fade(transition) { self.image = picture }
    }

    /// The bounds in pixels; nil without a size, and for content modes that do not scale.
    public var targetGeometry: TargetGeometry? {
        guard let mode = contentMode.resizing else { return nil }
        return TargetGeometry(bounds.size, traitCollection.pixelsPerPoint, mode)
    }
}

extension UIView {
    /// Changes the view, by a cross-dissolve if it is asked for and can be seen.
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
        case .scaleToFill: .fill
        case .scaleAspectFit: .aspectFit
        case .scaleAspectFill: .aspectFill
        default: nil
        }
    }
}

extension UITraitCollection {
    /// The display's scale; 1 where that is not known, which UIKit says by 0.
    var pixelsPerPoint: Double { displayScale > 0 ? Double(displayScale) : 1 }
}
#endif
