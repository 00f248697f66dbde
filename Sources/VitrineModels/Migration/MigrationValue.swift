#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A stored value of any type in ``MigrationData``.
///
/// ``MigrationData/value(_:as:)`` reads a value as a type. A value that is moved to another property stays as it is.
public struct MigrationValue {
    package let tree: MigrationTree

    init(_ tree: MigrationTree) { self.tree = tree }
}

/// A stored value as untyped data.
package enum MigrationTree: Equatable {
    /// A key of a stored dictionary with its value.
    package struct Entry: Equatable {
        var key: MigrationTree
        var value: MigrationTree
    }

    /// A nil value.
    case null
    /// A value of an optional of an optional that is itself nil or wrapped. All other values stand for themselves.
    indirect case wrapped(MigrationTree)
    /// A Boolean.
    case bool(Bool)
    /// A signed integer of any width.
    case int(Int64)
    /// An unsigned integer of any width.
    case uint(UInt64)
    /// A single-precision number.
    case float(Float)
    /// A double-precision number.
    case double(Double)
    /// A string.
    case string(String)
    /// Bytes.
    case data(Data)
    /// A date.
    case date(Date)
    /// A UUID.
    case uuid(UUID)
    /// A URL.
    case url(URL)
    /// A decimal number.
    case decimal(Decimal)
    /// An array, or a set in its stored order.
    case array([MigrationTree])
    /// A dictionary in its stored order.
    case dictionary([Entry])
    /// A struct, an enum or an object. Two records are equal if they are the same instance.
    case record(MigrationData)

    /// The value as that of an optional.
    var inOptional: MigrationTree {
        switch self {
        case .null, .wrapped: .wrapped(self)
        default: self
        }
    }

    /// The name of the value's type, for messages.
    var kind: String {
        switch self {
        case .null, .wrapped: "nil"
        case .bool: "Bool"
        case .int: "Int"
        case .uint: "UInt"
        case .float: "Float"
        case .double: "Double"
        case .string: "String"
        case .data: "Data"
        case .date: "Date"
        case .uuid: "UUID"
        case .url: "URL"
        case .decimal: "Decimal"
        case .array: "an array"
        case .dictionary: "a dictionary"
        case .record(let data): data.typeName
        }
    }
}

/// A type that migration steps can read from untyped data and write to it.
///
/// Numbers, strings, dates and other scalar types, ``MigrationData``, and optionals and collections of them conform. Do
/// not implement the requirements of this protocol yourself: read and write raw values of your own types.
public protocol MigrationConvertible {
    /// Returns the value; nil if the untyped value has another type. Numbers convert if no precision is lost.
    static func _converted(from value: MigrationValue) -> Self?
    /// The value as untyped data.
    var _migrationValue: MigrationValue { get }
}

extension Bool: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Bool? {
        if case .bool(let bool) = value.tree { bool } else { nil }
    }

    public var _migrationValue: MigrationValue { .init(.bool(self)) }
}

extension MigrationConvertible where Self: FixedWidthInteger {
    public static func _converted(from value: MigrationValue) -> Self? {
        switch value.tree {
        case .int(let number): Self(exactly: number)
        case .uint(let number): Self(exactly: number)
        default: nil
        }
    }

    public var _migrationValue: MigrationValue {
        .init(Self.isSigned ? .int(Int64(truncatingIfNeeded: self)) : .uint(UInt64(truncatingIfNeeded: self)))
    }
}

extension Int: MigrationConvertible {}
extension Int64: MigrationConvertible {}
extension Int32: MigrationConvertible {}
extension Int16: MigrationConvertible {}
extension Int8: MigrationConvertible {}
extension UInt: MigrationConvertible {}
extension UInt64: MigrationConvertible {}
extension UInt32: MigrationConvertible {}
extension UInt16: MigrationConvertible {}
extension UInt8: MigrationConvertible {}

extension Double: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Double? {
        switch value.tree {
        case .double(let number): number
        case .float(let number): Double(number)
        case .int(let number): Double(exactly: number)
        case .uint(let number): Double(exactly: number)
        default: nil
        }
    }

    public var _migrationValue: MigrationValue { .init(.double(self)) }
}

extension Float: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Float? {
        if case .float(let number) = value.tree { number } else { nil }
    }

    public var _migrationValue: MigrationValue { .init(.float(self)) }
}

extension String: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> String? {
        if case .string(let text) = value.tree { text } else { nil }
    }

    public var _migrationValue: MigrationValue { .init(.string(self)) }
}

extension Data: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Data? {
        if case .data(let data) = value.tree { data } else { nil }
    }

    public var _migrationValue: MigrationValue { .init(.data(self)) }
}

extension Date: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Date? {
        if case .date(let date) = value.tree { date } else { nil }
    }

    public var _migrationValue: MigrationValue { .init(.date(self)) }
}

extension UUID: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> UUID? {
        if case .uuid(let identifier) = value.tree { identifier } else { nil }
    }

    public var _migrationValue: MigrationValue { .init(.uuid(self)) }
}

extension URL: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> URL? {
        if case .url(let url) = value.tree { url } else { nil }
    }

    public var _migrationValue: MigrationValue { .init(.url(self)) }
}

extension Decimal: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Decimal? {
        if case .decimal(let number) = value.tree { number } else { nil }
    }

    public var _migrationValue: MigrationValue { .init(.decimal(self)) }
}

extension MigrationData: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> MigrationData? {
        if case .record(let data) = value.tree { data } else { nil }
    }

    public var _migrationValue: MigrationValue { .init(.record(self)) }
}

extension Optional: MigrationConvertible where Wrapped: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Wrapped?? {
        switch value.tree {
        case .null: .some(nil)
        case .wrapped(let tree): Wrapped._converted(from: .init(tree)).map { .some($0) }
        default: Wrapped._converted(from: value).map { .some($0) }
        }
    }

    public var _migrationValue: MigrationValue { .init(self?._migrationValue.tree.inOptional ?? .null) }
}

extension Array: MigrationConvertible where Element: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> [Element]? {
        guard case .array(let values) = value.tree else { return nil }
        let elements = values.compactMap { Element._converted(from: .init($0)) }
        return elements.count == values.count ? elements : nil
    }

    public var _migrationValue: MigrationValue { .init(.array(map { $0._migrationValue.tree })) }
}

extension Dictionary: MigrationConvertible where Key: MigrationConvertible, Value: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> [Key: Value]? {
        guard case .dictionary(let entries) = value.tree else { return nil }
        var dictionary: [Key: Value] = [:]
        for entry in entries {
            guard let key = Key._converted(from: .init(entry.key)),
                let value = Value._converted(from: .init(entry.value))
            else {
                return nil
            }
            dictionary[key] = value
        }
        return dictionary
    }

    public var _migrationValue: MigrationValue {
        .init(.dictionary(map { .init(key: $0.key._migrationValue.tree, value: $0.value._migrationValue.tree) }))
    }
}
