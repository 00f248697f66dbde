#if canImport(UIKit) || canImport(AppKit) || canImport(SwiftUI)
import CoreGraphics
import VitrineImaging

extension TargetGeometry {
    /// The geometry of a view whose size is given in points; nil without a size.
    init?(_ size: CGSize, scale: Double, mode: ImageResizer.Mode, allowsUpscaling: Bool = true) {
        self.init(
            width: Double(size.width), height: Double(size.height), scale: scale, mode: mode,
            allowsUpscaling: allowsUpscaling)
    }
}

extension ImageTransition {
    /// The duration; nil for a transition that is not visible.
    var seconds: Double? {
        guard case .crossFade(let duration) = self, duration > .zero else { return nil }
        return duration / .seconds(1)
    }
}
#endif

#if canImport(UIKit) && !os(watchOS) || canImport(AppKit)
import ObjectiveC

/// Objects that are associated with a view of the system and live as long as the view.
@MainActor
enum AttachedObject {
    /// Returns the object of a type that is associated with `owner`, created at its first use.
    static func of<Value: AnyObject>(_ owner: AnyObject, make: () -> Value) -> Value {
        // The address of the type: each type has one object.
        guard let key = UnsafeRawPointer(bitPattern: UInt(bitPattern: ObjectIdentifier(Value.self))) else {
            return make()
        }
        if let known = objc_getAssociatedObject(owner, key) as? Value { return known }
        let value = make()
        objc_setAssociatedObject(owner, key, value, .OBJC_ASSOCIATION_RETAIN_NONATOMIC)
        return value
    }
}
#endif
