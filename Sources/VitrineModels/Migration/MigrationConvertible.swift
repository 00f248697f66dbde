#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A type whose values migration steps can take out of stored data and put into it.
public protocol MigrationConvertible {
    /// The value as stored data; nil if that is of another type. Numbers convert where nothing is lost.
    static func converted(from value: MigrationValue) -> Self?
    /// The value as data to be stored.
    var migrationValue: MigrationValue { get }
}

extension Bool: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> Bool? {
        if case .bool(let bool) = value { bool } else { nil }
    }

    public var migrationValue: MigrationValue { .bool(self) }
}

extension MigrationConvertible where Self: FixedWidthInteger {
    public static func converted(from value: MigrationValue) -> Self? {
        switch value {
        case .int(let number): Self(exactly: number)
        case .uint(let number): Self(exactly: number)
        default: nil
        }
    }

    public var migrationValue: MigrationValue {
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
    public static func converted(from value: MigrationValue) -> Double? {
        switch value {
        case .double(let number): number
        case .float(let number): Double(number)
        case .int(let number): Double(exactly: number)
        case .uint(let number): Double(exactly: number)
        default: nil
        }
    }

    public var migrationValue: MigrationValue { .double(self) }
}

extension Float: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> Float? {
        if case .float(let number) = value { number } else { nil }
    }

    public var migrationValue: MigrationValue { .float(self) }
}

extension String: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> String? {
        if case .string(let text) = value { text } else { nil }
    }

    public var migrationValue: MigrationValue { .string(self) }
}

extension Data: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> Data? {
        if case .data(let data) = value { data } else { nil }
    }

    public var migrationValue: MigrationValue { .data(self) }
}

extension Date: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> Date? {
        if case .date(let date) = value { date } else { nil }
    }

    public var migrationValue: MigrationValue { .date(self) }
}

extension UUID: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> UUID? {
        if case .uuid(let identifier) = value { identifier } else { nil }
    }

    public var migrationValue: MigrationValue { .uuid(self) }
}

extension URL: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> URL? {
        if case .url(let url) = value { url } else { nil }
    }

    public var migrationValue: MigrationValue { .url(self) }
}

extension Decimal: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> Decimal? {
        if case .decimal(let number) = value { number } else { nil }
    }

    public var migrationValue: MigrationValue { .decimal(self) }
}

extension MigrationData: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> MigrationData? {
        if case .record(let data) = value { data } else { nil }
    }

    public var migrationValue: MigrationValue { .record(self) }
}

extension Optional: MigrationConvertible where Wrapped: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> Wrapped?? {
        if case .null = value { return .some(nil) }
        return Wrapped.converted(from: value).map { .some($0) }
    }

    public var migrationValue: MigrationValue { self?.migrationValue ?? .null }
}

extension Array: MigrationConvertible where Element: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> [Element]? {
        guard case .array(let values) = value else { return nil }
        let elements = values.compactMap { Element.converted(from: $0) }
        return elements.count == values.count ? elements : nil
    }

    public var migrationValue: MigrationValue { .array(map { $0.migrationValue }) }
}

extension Dictionary: MigrationConvertible where Key: MigrationConvertible, Value: MigrationConvertible {
    public static func converted(from value: MigrationValue) -> [Key: Value]? {
        guard case .dictionary(let entries) = value else { return nil }
        var dictionary: [Key: Value] = [:]
        for entry in entries {
            guard let key = Key.converted(from: entry.key), let value = Value.converted(from: entry.value) else {
                return nil
            }
            dictionary[key] = value
        }
        return dictionary
    }

    public var migrationValue: MigrationValue {
        .dictionary(map { MigrationEntry(key: $0.key.migrationValue, value: $0.value.migrationValue) })
    }
}
