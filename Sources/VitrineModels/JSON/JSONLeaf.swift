#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import VitrineCache

/// Values without parts, as JSON has them.
enum JSONLeaf {
    /// The value; nil if it is none of the type's.
    static func value(_ json: JSON.Value, _ type: ValueType) -> MigrationValue? {
        switch type {
        case .bool: json.bool.map { .bool($0) }
        case .int8, .int16, .int32, .int64: json.number?.int64.map { .int($0) }
        case .uint8, .uint16, .uint32, .uint64: json.number?.uint64.map { .uint($0) }
        case .float: number(json).map { .float(Float($0)) }
        case .double: number(json).map { .double($0) }
        case .date: number(json).map { .date(Date(timeIntervalSinceReferenceDate: $0)) }
        case .string: json.string.map { .string($0) }
        case .data: json.string.flatMap { Data(base64Encoded: $0) }.map { .data($0) }
        case .uuid: json.string.flatMap { UUID(uuidString: $0) }.map { .uuid($0) }
        case .url: url(json).map { .url($0) }
        case .decimal: decimal(json).map { .decimal($0) }
        case .optional, .array, .set, .dictionary, .record, .object: nil
        }
    }

    private static func number(_ json: JSON.Value) -> Double? {
        if let number = json.double { return number }
        return switch json.string {
        case "nan": .nan
        case "inf": .infinity
        case "-inf": -.infinity
        default: nil
        }
    }

    private static func url(_ json: JSON.Value) -> URL? {
        if let text = json.string { return URL(string: text) }
        guard let text = json["relative"]?.string, let base = json["base"]?.string else { return nil }
        return URL(string: text, relativeTo: URL(string: base))
    }

    private static func decimal(_ json: JSON.Value) -> Decimal? {
        guard let text = json.string ?? json.number?.text else { return nil }
        return text == "nan" ? .nan : Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
    }
}
