#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A stored value as untyped data.
public enum MigrationValue: Equatable {
    /// A nil value.
    case null
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
    case array([MigrationValue])
    /// A dictionary in its stored order.
    case dictionary([MigrationEntry])
    /// A struct, an enum or an object. Two records are equal if they are the same instance.
    case record(MigrationData)

    /// The name of the value's type, for messages.
    var kind: String {
        switch self {
        case .null: "nil"
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

/// A key of a stored dictionary with its value.
public struct MigrationEntry: Equatable {
    /// The key.
    public var key: MigrationValue
    /// The value.
    public var value: MigrationValue

    /// Creates an entry.
    public init(key: MigrationValue, value: MigrationValue) {
        self.key = key
        self.value = value
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
        if case .bool(let bool) = value { bool } else { nil }
    }

    public var _migrationValue: MigrationValue { .bool(self) }
}

extension MigrationConvertible where Self: FixedWidthInteger {
    public static func _converted(from value: MigrationValue) -> Self? {
        switch value {
        case .int(let number): Self(exactly: number)
        case .uint(let number): Self(exactly: number)
        default: nil
        }
    }

    public var _migrationValue: MigrationValue {
        Self.isSigned ? .int(Int64(truncatingIfNeeded: self)) : .uint(UInt64(truncatingIfNeeded: self))
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
        switch value {
        case .double(let number): number
        case .float(let number): Double(number)
        case .int(let number): Double(exactly: number)
        case .uint(let number): Double(exactly: number)
        default: nil
        }
    }

    public var _migrationValue: MigrationValue { .double(self) }
}

extension Float: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Float? {
        if case .float(let number) = value { number } else { nil }
    }

    public var _migrationValue: MigrationValue { .float(self) }
}

extension String: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> String? {
        if case .string(let text) = value { text } else { nil }
    }

    public var _migrationValue: MigrationValue { .string(self) }
}

extension Data: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Data? {
        if case .data(let data) = value { data } else { nil }
    }

    public var _migrationValue: MigrationValue { .data(self) }
}

extension Date: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Date? {
        if case .date(let date) = value { date } else { nil }
    }

    public var _migrationValue: MigrationValue { .date(self) }
}

extension UUID: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> UUID? {
        if case .uuid(let identifier) = value { identifier } else { nil }
    }

    public var _migrationValue: MigrationValue { .uuid(self) }
}

extension URL: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> URL? {
        if case .url(let url) = value { url } else { nil }
    }

    public var _migrationValue: MigrationValue { .url(self) }
}

extension Decimal: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Decimal? {
        if case .decimal(let number) = value { number } else { nil }
    }

    public var _migrationValue: MigrationValue { .decimal(self) }
}

extension MigrationData: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> MigrationData? {
        if case .record(let data) = value { data } else { nil }
    }

    public var _migrationValue: MigrationValue { .record(self) }
}

extension Optional: MigrationConvertible where Wrapped: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> Wrapped?? {
        if case .null = value { return .some(nil) }
        return Wrapped._converted(from: value).map { .some($0) }
    }

    public var _migrationValue: MigrationValue { self?._migrationValue ?? .null }
}

extension Array: MigrationConvertible where Element: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> [Element]? {
        guard case .array(let values) = value else { return nil }
        let elements = values.compactMap { Element._converted(from: $0) }
        return elements.count == values.count ? elements : nil
    }

    public var _migrationValue: MigrationValue { .array(map { $0._migrationValue }) }
}

extension Dictionary: MigrationConvertible where Key: MigrationConvertible, Value: MigrationConvertible {
    public static func _converted(from value: MigrationValue) -> [Key: Value]? {
        guard case .dictionary(let entries) = value else { return nil }
        var dictionary: [Key: Value] = [:]
        for entry in entries {
            guard let key = Key._converted(from: entry.key), let value = Value._converted(from: entry.value) else {
                return nil
            }
            dictionary[key] = value
        }
        return dictionary
    }

    public var _migrationValue: MigrationValue {
        .dictionary(map { MigrationEntry(key: $0.key._migrationValue, value: $0.value._migrationValue) })
    }
}
