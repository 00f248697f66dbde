#if canImport(UIKit) && !os(watchOS) || canImport(AppKit)
import ObjectiveC

/// Objects that hang on a view of the system and live as long as it does.
@MainActor
enum AttachedObject {
    /// The one object of its type that hangs on `owner`, made when it is first asked for.
    static func of<Value: AnyObject>(_ owner: AnyObject, make: () -> Value) -> Value {
        // The type's own address: there is one of each type.
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
