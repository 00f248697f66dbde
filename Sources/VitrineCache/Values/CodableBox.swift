#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
public import VitrineCore

/// A `Codable` type that caches and stores can keep, by naming it: `extension Palette: CacheableCodable {}` (R1).
///
/// The bytes are JSON with sorted keys, so equal values have equal bytes; numbers that are not finite are the texts
/// `inf`, `-inf` and `nan`. For a type that is not yours to extend there is ``CodableBox``.
///
/// The default cost is what the bytes are long, and at least the size of the value itself. It takes encoding to know:
/// a type that is put into memory often does better with a `cacheCost` of its own.
public protocol CacheableCodable: CacheableValue, Codable {}

extension CacheableCodable {
    /// Decodes the value.
    ///
    /// - Throws: `DecodingError`.
    public init(cacheBytes: [UInt8]) throws { self = try CodableBytes.decode(cacheBytes) }

    /// Encodes the value.
    ///
    /// - Throws: `EncodingError`.
    public func cacheBytes() throws -> [UInt8] { try CodableBytes.encode(self) }

    /// The larger of the value's own size and the length of its bytes.
    public var cacheCost: Int { CodableBytes.cost(of: self) }
}

/// A `Codable` value of any type in a wrapper that caches and stores can keep.
///
/// ```swift
/// let cache = Cache<CodableBox<[String: Date]>>(…)
/// ```
public struct CodableBox<Value: Codable & Sendable>: CacheableValue {
    /// The value.
    public var value: Value

    /// Wraps a value.
    public init(_ value: Value) { self.value = value }

    /// Decodes the value.
    ///
    /// - Throws: `DecodingError`.
    public init(cacheBytes: [UInt8]) throws { value = try CodableBytes.decode(cacheBytes) }

    /// Encodes the value, as ``CacheableCodable`` does.
    ///
    /// - Throws: `EncodingError`.
    public func cacheBytes() throws -> [UInt8] { try CodableBytes.encode(value) }

    /// The larger of the value's own size and the length of its bytes.
    public var cacheCost: Int { CodableBytes.cost(of: value) }
}

extension CodableBox: Equatable where Value: Equatable {}
extension CodableBox: Hashable where Value: Hashable {}

/// Codable values as bytes.
enum CodableBytes {
    static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        return [UInt8](try encoder.encode(value))
    }

    static func decode<Value: Decodable>(_ bytes: [UInt8]) throws -> Value {
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        return try decoder.decode(Value.self, from: Data(bytes))
    }

    static func cost<Value: Encodable>(of value: Value) -> Int {
        // A value that cannot be encoded is kept in memory only, and has to cost something there.
        max(MemoryLayout<Value>.size, (try? encode(value).count) ?? 0)
    }
}
