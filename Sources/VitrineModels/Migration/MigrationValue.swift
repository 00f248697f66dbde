#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One stored value as data, without its type's code.
public enum MigrationValue: Equatable {
    case null
    case bool(Bool), int(Int64), uint(UInt64), float(Float), double(Double), string(String), data(Data)
    case date(Date), uuid(UUID), url(URL), decimal(Decimal)
    /// An array, or a set in the order it was stored in.
    case array([MigrationValue])
    /// A dictionary in the order it was stored in.
    case dictionary([MigrationEntry])
    /// A struct, an enum or an object. Two are equal if they are the same.
    case record(MigrationData)

    /// What kind of value it is: a type's name.
    public var kind: String {
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

/// One key of a stored dictionary with its value.
public struct MigrationEntry: Equatable {
    public var key: MigrationValue
    public var value: MigrationValue

    public init(key: MigrationValue, value: MigrationValue) {
        self.key = key
        self.value = value
    }
}
