#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCore

// Numbers are stored with their kind, so that one kind can be read as another whose value is exactly the same: an
// `Int` 7 as a `Double` or a `UInt8`, but not 300 as a `UInt8` nor 0.1 as a `Float`.

/// A whole number that is stored with its kind.
public protocol CacheableInteger: CacheableValue, FixedWidthInteger {}

extension CacheableInteger {
    /// Reads a number of any kind whose value this type has.
    ///
    /// - Throws: `CacheableValueError` for another value, or for bytes that are no number.
    public init(cacheBytes: [UInt8]) throws {
        guard let value: Self = Scalar(cacheBytes)?.integer() else {
            throw CacheableValueError.notRepresentable(type: "\(Self.self)")
        }
        self = value
    }

    /// Nine bytes.
    public func cacheBytes() -> [UInt8] {
        Int64(exactly: self).map { Scalar.signed($0).bytes } ?? Scalar.unsigned(UInt64(truncatingIfNeeded: self)).bytes
    }

    /// The number's size.
    public var cacheCost: Int { MemoryLayout<Self>.size }
}

extension Int: CacheableInteger {}
extension Int8: CacheableInteger {}
extension Int16: CacheableInteger {}
extension Int32: CacheableInteger {}
extension Int64: CacheableInteger {}
extension UInt: CacheableInteger {}
extension UInt8: CacheableInteger {}
extension UInt16: CacheableInteger {}
extension UInt32: CacheableInteger {}
extension UInt64: CacheableInteger {}

extension Double: CacheableValue {
    /// Reads a number of any kind whose value a double has.
    public init(cacheBytes: [UInt8]) throws {
        guard let value = Scalar(cacheBytes)?.double else {
            throw CacheableValueError.notRepresentable(type: "Double")
        }
        self = value
    }

    /// Nine bytes: every bit is kept, also of NaN.
    public func cacheBytes() -> [UInt8] { Scalar.double(self).bytes }
    public var cacheCost: Int { MemoryLayout<Self>.size }
}

extension Float: CacheableValue {
    /// Reads a number of any kind whose value a float has.
    public init(cacheBytes: [UInt8]) throws {
        guard let value = Scalar(cacheBytes)?.double, value.isNaN || Double(Float(value)) == value else {
            throw CacheableValueError.notRepresentable(type: "Float")
        }
        self = Float(value)
    }

    /// Nine bytes: the double of the same value.
    public func cacheBytes() -> [UInt8] { Scalar.double(Double(self)).bytes }
    public var cacheCost: Int { MemoryLayout<Self>.size }
}

extension Bool: CacheableValue {
    /// Reads a truth value, or the numbers 0 and 1.
    public init(cacheBytes: [UInt8]) throws {
        guard let value: UInt8 = Scalar(cacheBytes)?.integer(), value <= 1 else {
            throw CacheableValueError.notRepresentable(type: "Bool")
        }
        self = value == 1
    }

    /// Nine bytes.
    public func cacheBytes() -> [UInt8] { Scalar.bool(self).bytes }
    public var cacheCost: Int { MemoryLayout<Self>.size }
}

extension Date: CacheableValue {
    public init(cacheBytes: [UInt8]) throws {
        guard case .date(let seconds) = Scalar(cacheBytes) else {
            throw CacheableValueError.notRepresentable(type: "Date")
        }
        self.init(timeIntervalSinceReferenceDate: seconds)
    }

    /// Nine bytes: every bit of the time is kept.
    public func cacheBytes() -> [UInt8] { Scalar.date(timeIntervalSinceReferenceDate).bytes }
    public var cacheCost: Int { MemoryLayout<Self>.size }
}

extension UUID: CacheableValue {
    public init(cacheBytes: [UInt8]) throws {
        guard cacheBytes.count == 16 else { throw CacheableValueError.notRepresentable(type: "UUID") }
        self = cacheBytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }

    /// The sixteen bytes.
    public func cacheBytes() -> [UInt8] { withUnsafeBytes(of: uuid) { Array($0) } }
    public var cacheCost: Int { MemoryLayout<Self>.size }
}

extension Data: CacheableValue {
    public init(cacheBytes: [UInt8]) { self.init(cacheBytes) }

    /// A copy of the bytes.
    public func cacheBytes() -> [UInt8] { [UInt8](self) }
    public var cacheCost: Int { count }
    public static var isCacheDecodingImmediate: Bool { true }
}
