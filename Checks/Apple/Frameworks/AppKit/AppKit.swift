// A stand-in for the parts of AppKit that the adapters use.
@_exported import CoreGraphics
@_exported import Foundation
@_exported import QuartzCore

public typealias NSSize = CGSize

@MainActor open class NSView: NSObject {
    public nonisolated override init() { super.init() }
    open var frame: CGRect = .zero { didSet { bounds = CGRect(origin: .zero, size: frame.size) } }
    open var bounds: CGRect = .zero
    open var window: NSWindow?
    open var layer: CALayer?
    open var wantsLayer = false { didSet { layer = wantsLayer ? layer ?? CALayer() : nil } }
}

@MainActor open class NSWindow: NSObject {
    public nonisolated override init() { super.init() }
    open var backingScaleFactor: CGFloat = 2
}

@MainActor open class NSControl: NSView {}

public enum NSImageScaling: UInt, Sendable {
    case scaleProportionallyDown, scaleAxesIndependently, scaleNone, scaleProportionallyUpOrDown
}

/// Not Sendable, as in AppKit.
public final class NSImage: NSObject {
    public let size: NSSize
    private let pixels: CGImage

    public init(cgImage: CGImage, size: NSSize) { (pixels, self.size) = (cgImage, size) }

    public func cgImage(
        forProposedRect rect: UnsafeMutablePointer<CGRect>?, context: AnyObject?, hints: [String: Any]?
    ) -> CGImage? { pixels }
}

@MainActor open class NSImageView: NSControl {
    open var image: NSImage?
    open var imageScaling = NSImageScaling.scaleProportionallyDown
}

@MainActor open class NSWorkspace: NSObject {
    /// Set by tests.
    public static var stubReducesMotion = false
    public static let shared = NSWorkspace()
    open var accessibilityDisplayShouldReduceMotion: Bool { Self.stubReducesMotion }
}
