// A stand-in for the parts of UIKit that the adapters use. Views have bounds, and transitions run and are counted.
@_exported import CoreGraphics
@_exported import Foundation
@_exported import QuartzCore

@MainActor open class UIResponder: NSObject {
    public nonisolated override init() { super.init() }
}

public final class UITraitCollection: NSObject, @unchecked Sendable {
    public let displayScale: CGFloat
    public init(displayScale: CGFloat) { self.displayScale = displayScale }
}

@MainActor open class UIView: UIResponder {
    public enum ContentMode: Int, Sendable {
        case scaleToFill, scaleAspectFit, scaleAspectFill, redraw, center, top, bottom, left, right, topLeft, topRight
        case bottomLeft, bottomRight
    }

    public struct AnimationOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var allowUserInteraction: AnimationOptions { AnimationOptions(rawValue: 1 << 1) }
        public static var transitionCrossDissolve: AnimationOptions { AnimationOptions(rawValue: 5 << 20) }
    }

    public override nonisolated init() { super.init() }
    open var frame: CGRect = .zero { didSet { bounds = CGRect(origin: .zero, size: frame.size) } }
    open var bounds: CGRect = .zero
    open var contentMode: ContentMode = .scaleToFill
    open var traitCollection = UITraitCollection(displayScale: 2)
    open var window: UIWindow?

    open class func transition(
        with view: UIView, duration: TimeInterval, options: AnimationOptions = [], animations: (() -> Void)?,
        completion: ((Bool) -> Void)? = nil
    ) {
        view.stubTransitions.append((duration, options))
        animations?()
        completion?(true)
    }

    public var stubTransitions: [(duration: TimeInterval, options: AnimationOptions)] = []
}

@MainActor open class UIWindow: UIView {}

public final class UIImage: NSObject, @unchecked Sendable {
    public enum Orientation: Int, Sendable {
        case up, down, left, right, upMirrored, downMirrored, leftMirrored, rightMirrored
    }

    public let cgImage: CGImage?
    public let scale: CGFloat
    public let imageOrientation: Orientation
    public init(cgImage: CGImage, scale: CGFloat, orientation: Orientation) {
        (self.cgImage, self.scale, imageOrientation) = (cgImage, scale, orientation)
    }
}

@MainActor open class UIImageView: UIView {
    open var image: UIImage?
}

@MainActor open class UIControl: UIView {
    /// Not hashable, as in UIKit.
    public struct State: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var normal: State { [] }
        public static var highlighted: State { State(rawValue: 1) }
        public static var disabled: State { State(rawValue: 2) }
        public static var selected: State { State(rawValue: 4) }
    }

    public enum ContentHorizontalAlignment: Int, Sendable { case center, left, right, fill, leading, trailing }
    public enum ContentVerticalAlignment: Int, Sendable { case center, top, bottom, fill }
    open var contentHorizontalAlignment = ContentHorizontalAlignment.center
    open var contentVerticalAlignment = ContentVerticalAlignment.center
}

@MainActor open class UIButton: UIControl {
    private var images: [UInt: UIImage] = [:], backgrounds: [UInt: UIImage] = [:]
    open func setImage(_ image: UIImage?, for state: UIControl.State) { images[state.rawValue] = image }
    open func setBackgroundImage(_ image: UIImage?, for state: UIControl.State) { backgrounds[state.rawValue] = image }
    open func image(for state: UIControl.State) -> UIImage? { images[state.rawValue] ?? images[0] }
    open func backgroundImage(for state: UIControl.State) -> UIImage? { backgrounds[state.rawValue] ?? backgrounds[0] }
    /// A margin of two points on either side, so that the two rectangles differ.
    open func contentRect(forBounds bounds: CGRect) -> CGRect {
        CGRect(
            x: bounds.origin.x + 2, y: bounds.origin.y + 2, width: bounds.size.width - 4,
            height: bounds.size.height - 4)
    }
    open func backgroundRect(forBounds bounds: CGRect) -> CGRect { bounds }
}

@MainActor public final class UIApplication: UIResponder {
    public class var didReceiveMemoryWarningNotification: Notification.Name {
        Notification.Name("UIApplicationDidReceiveMemoryWarningNotification")
    }
    public class var didEnterBackgroundNotification: Notification.Name {
        Notification.Name("UIApplicationDidEnterBackgroundNotification")
    }
}

@MainActor public enum UIAccessibility {
    /// Set by tests.
    public static var stubReducesMotion = false
    public static var isReduceMotionEnabled: Bool { stubReducesMotion }
}
