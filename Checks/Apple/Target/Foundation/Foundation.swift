// The parts of Foundation and CoreFoundation that the adapters and the stand-ins use, declared as Apple does.
@_exported import ObjectiveC

public typealias CGFloat = Double
public typealias TimeInterval = Double
public typealias NSObjectProtocol = ObjectiveC.NSObjectProtocol

public struct CGPoint: Equatable, Sendable {
    public var x: CGFloat, y: CGFloat
    public init(x: CGFloat, y: CGFloat) { (self.x, self.y) = (x, y) }
}
public struct CGSize: Equatable, Sendable {
    public var width: CGFloat, height: CGFloat
    public init(width: CGFloat, height: CGFloat) { (self.width, self.height) = (width, height) }
    public static var zero: CGSize { CGSize(width: 0, height: 0) }
}
public struct CGRect: Equatable, Sendable {
    public var origin: CGPoint, size: CGSize
    public init(origin: CGPoint, size: CGSize) { (self.origin, self.size) = (origin, size) }
    public init(x: CGFloat, y: CGFloat, width: CGFloat, height: CGFloat) {
        self.init(origin: CGPoint(x: x, y: y), size: CGSize(width: width, height: height))
    }
    public init(x: Int, y: Int, width: Int, height: Int) {
        self.init(x: Double(x), y: Double(y), width: Double(width), height: Double(height))
    }
    public static var zero: CGRect { CGRect(x: 0.0, y: 0, width: 0, height: 0) }
}
extension CGPoint { public static var zero: CGPoint { CGPoint(x: 0, y: 0) } }

public final class NSString: NSObject, ExpressibleByStringLiteral {
    public init(stringLiteral value: String) {}
}
public struct Data: Hashable, Sendable, Sequence {
    public init(_ bytes: [UInt8]) {}
    public func makeIterator() -> IndexingIterator<[UInt8]> { fatalError("a declaration") }
}
public struct Notification {
    public struct Name: Hashable, Sendable { public init(_ name: String) {} }
    public var object: Any?
}
open class OperationQueue: NSObject, @unchecked Sendable {
    public static var main: OperationQueue { OperationQueue() }
}
open class NotificationCenter: NSObject, @unchecked Sendable {
    open class var `default`: NotificationCenter { NotificationCenter() }
    // The token is not Sendable.
    open func addObserver(
        forName name: Notification.Name?, object: Any?, queue: OperationQueue?,
        using body: @escaping @Sendable (Notification) -> Void
    ) -> any NSObjectProtocol { NSObject() }
    open func removeObserver(_ observer: Any) {}
}
open class Progress: NSObject, @unchecked Sendable {
    public init(totalUnitCount count: Int64) {}
    open var completedUnitCount: Int64 = 0
    open var cancellationHandler: (@Sendable () -> Void)?
}
public enum NSItemProviderRepresentationVisibility: Int, Sendable { case all, team, group, ownProcess }
open class NSItemProvider: NSObject, @unchecked Sendable {
    open var suggestedName: String?
    open func registerDataRepresentation(
        forTypeIdentifier type: String, visibility: NSItemProviderRepresentationVisibility,
        loadHandler: @escaping @Sendable (@escaping @Sendable (Data?, (any Error)?) -> Void) -> Progress?
    ) {}
}
open class ProcessInfo: NSObject, @unchecked Sendable {
    open class var processInfo: ProcessInfo { ProcessInfo() }
    #if !os(macOS)
    open func performExpiringActivity(withReason reason: String, using body: @escaping @Sendable (Bool) -> Void) {}
    #endif
}
