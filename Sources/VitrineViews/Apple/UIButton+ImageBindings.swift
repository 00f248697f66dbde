#if canImport(UIKit) && !os(watchOS)
public import UIKit
public import VitrineImaging

/// Buttons show an image and a background for each state, and load each by itself (R143).
///
/// ```swift
/// button.imageSlots[.image()].set(.url(icon, in: Shared.images))
/// button.imageSlots[.background(.highlighted)].set(.url(glow, in: Shared.images))
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

    /// The bindings that fill the button, made when they are first asked for. They live as long as the button.
    public var imageSlots: ImageBindings<UIButton> { AttachedObject.of(self) { ImageBindings(self) } }

    /// Shows an image, fading only in a window. What ``imageSlots`` call.
    public func show(_ image: VitrineImaging.Image?, in slot: ImageSlot, transition: ImageTransition) {
        let picture = image?.makeUIImage(scale: traitCollection.pixelsPerPoint)
        fade(transition) {
            switch slot.part {
            case .image: self.setImage(picture, for: slot.state)
            case .background: self.setBackgroundImage(picture, for: slot.state)
            }
        }
    }

    /// The place of the content, in which images are not enlarged unless the button aligns them to fill it, or that of
    /// the background, which is filled.
    public func targetGeometry(of slot: ImageSlot) -> TargetGeometry? {
        let scale = traitCollection.pixelsPerPoint
        switch slot.part {
        case .background: return TargetGeometry(backgroundRect(forBounds: bounds).size, scale, .fill)
        case .image:
            let fills = contentHorizontalAlignment == .fill && contentVerticalAlignment == .fill
            return TargetGeometry(
                contentRect(forBounds: bounds).size, scale, fills ? .fill : .aspectFit, allowsUpscaling: fills)
        }
    }
}
#endif
