@_exported import ObjectiveC

@frozen public struct Selector: ExpressibleByStringLiteral, Hashable {
    var pointer: OpaquePointer?
    public init(_ name: String) {}
    public init(stringLiteral name: String) {}
}

@frozen public struct ObjCBool: ExpressibleByBooleanLiteral {
    public let boolValue: Bool
    public init(booleanLiteral value: Bool) { boolValue = value }
}

extension NSObject: Hashable, Equatable {
    public static func == (one: NSObject, other: NSObject) -> Bool { one === other }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
