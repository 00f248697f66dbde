#if canImport(UIKit) && !os(watchOS)
public import UIKit
public import VitrineImaging

/// A button shows an image and a background for each state. Each one is loaded independently.
///
/// ```swift
/// button.imageSlots[.image()].set(ImageRequest(icon))
/// button.imageSlots[.background(.highlighted)].set(ImageRequest(glow))
/// ```
///
/// Type-checked, and run against stand-ins for UIKit; not run on a device.
extension UIButton: MultiImageTarget {
    /// The image or the background of one state.
    public struct ImageSlot: Hashable, Sendable {
        fileprivate enum Part: Hashable, Sendable { case image, background }
        fileprivate let part: Part
        fileprivate let rawState: UInt

        fileprivate var state: UIControl.State { UIControl.State(rawValue: rawState) }

        /// The image of a state.
        public static func image(_ state: UIControl.State = .normal) -> ImageSlot {
            ImageSlot(part: .image, rawState: state.rawValue)
        }

        /// The background of a state.
        public static func background(_ state: UIControl.State = .normal) -> ImageSlot {
            ImageSlot(part: .background, rawState: state.rawValue)
        }
    }

    /// The bindings of the button, created at their first use. They live as long as the button.
    public var imageSlots: ImageBindings<UIButton> { AttachedObject.of(self) { ImageBindings(self) } }

    /// Shows an image, with a fade only in a window. ``imageSlots`` call this.
    public func show(_ image: VitrineImaging.PixelImage?, in slot: ImageSlot, transition: ImageTransition) {
        let picture = image?.makeUIImage(scale: traitCollection.pixelsPerPoint)
        fade(transition) {
            switch slot.part {
            case .image: self.setImage(picture, for: slot.state)
            case .background: self.setBackgroundImage(picture, for: slot.state)
            }
        }
    }

    /// The user's setting “Reduce Motion”.
    public var prefersReducedMotion: Bool { UIAccessibility.isReduceMotionEnabled }

    /// The content rectangle for images, and the background rectangle for backgrounds. Images are enlarged only if the
    /// button aligns its content to fill; backgrounds fill their rectangle.
    public func targetGeometry(of slot: ImageSlot) -> TargetGeometry? {
        let scale = traitCollection.pixelsPerPoint
        switch slot.part {
        case .background: return TargetGeometry(backgroundRect(forBounds: bounds).size, scale: scale, mode: .stretch)
        case .image:
            let fills = contentHorizontalAlignment == .fill && contentVerticalAlignment == .fill
            return TargetGeometry(
                contentRect(forBounds: bounds).size, scale: scale, mode: fills ? .stretch : .fit,
                allowsUpscaling: fills)
        }
    }
}
#endif
