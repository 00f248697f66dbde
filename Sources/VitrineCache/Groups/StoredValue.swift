import VitrineCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A value as a ``KeyValueStore`` keeps it: bytes, and which sort of type they were made by.
struct StoredValue: Sendable, Equatable {
    /// Sorts of types. A value is read back by a type of the sort that wrote it, so that a text is never taken for a
    /// number. The numbers are on disk: they never change.
    enum Kind: Int64, Sendable {
        case opaque = 0, text = 1, scalar = 2, list = 3, codable = 4

        /// The sort of a type.
        init(of type: any CacheableValue.Type) {
            if type == String.self {
                self = .text
            } else if type == [UInt8].self || type == Data.self {
                self = .opaque
            } else if type == Int.self || type == Double.self || type == Bool.self || type == Float.self
                || type == Date.self || type is any CacheableInteger.Type
            {
                self = .scalar
            } else if type is any ListValue.Type {
                self = .list
            } else if type is any CodableValue.Type || type is any CacheableCodable.Type {
                self = .codable
            } else {
                self = .opaque
            }
        }
    }

    var kind: Kind
    var bytes: [UInt8]

    /// Makes the value, if it is of a sort.
    func value<Value: CacheableValue>(as type: Value.Type) throws -> Value {
        guard kind == Kind(of: type) else { throw CacheableValueError.notRepresentable(type: "\(type)") }
        return try Value(cacheBytes: bytes)
    }

    init(kind: Kind, bytes: [UInt8]) {
        self.kind = kind
        self.bytes = bytes
    }

    init<Value: CacheableValue>(_ value: Value) throws {
        self.init(kind: Kind(of: Value.self), bytes: try value.cacheBytes())
    }
}

/// Marks ``CacheableList`` of any element.
protocol ListValue {}
extension CacheableList: ListValue {}
/// Marks ``CodableBox`` of any value.
protocol CodableValue {}
extension CodableBox: CodableValue {}
