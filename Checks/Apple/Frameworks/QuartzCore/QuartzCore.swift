// A stand-in for Core Animation that records its calls.
@_exported import CoreGraphics
@_exported import Foundation

public struct CATransitionType: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let fade = CATransitionType(rawValue: "fade")
}

open class CAAnimation: NSObject {
    open var duration: CFTimeInterval = 0
}

open class CATransition: CAAnimation {
    open var type = CATransitionType.fade
}

public typealias CFTimeInterval = Double

open class CALayer: NSObject {
    open func add(_ animation: CAAnimation, forKey key: String?) { stubAnimations.append(animation) }
    public private(set) var stubAnimations: [CAAnimation] = []
}
