public import VitrineCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A type of the standard library or Foundation that has compact bytes of its own instead of JSON.
///
/// Numbers are stored with their kind, so that one kind can be read as another whose value is exactly the same: an
/// `Int` 7 as a `Double` or a `UInt8`, but not 300 as a `UInt8` nor 0.1 as a `Float`.
package protocol CompactValue: CacheableCodable {
    /// Creates the value of its bytes; nil if they represent none.
    init?(compactBytes: [UInt8])
    /// The value as bytes.
    var compactBytes: [UInt8] { get }
    /// The memory that the value occupies.
    var compactCost: Int { get }
}

extension CompactValue {
    package var compactCost: Int { MemoryLayout<Self>.size }
}

extension CompactValue where Self: FixedWidthInteger {
    package init?(compactBytes: [UInt8]) {
        guard let value: Self = Scalar(compactBytes)?.integer() else { return nil }
        self = value
    }

    package var compactBytes: [UInt8] {
        Int64(exactly: self).map { Scalar.signed($0).bytes } ?? Scalar.unsigned(UInt64(truncatingIfNeeded: self)).bytes
    }
}

extension Int: CompactValue {}
extension Int8: CompactValue {}
extension Int16: CompactValue {}
extension Int32: CompactValue {}
extension Int64: CompactValue {}
extension UInt: CompactValue {}
extension UInt8: CompactValue {}
extension UInt16: CompactValue {}
extension UInt32: CompactValue {}
extension UInt64: CompactValue {}

extension Double: CompactValue {
    package init?(compactBytes: [UInt8]) {
        guard let value = Scalar(compactBytes)?.double else { return nil }
        self = value
    }

    /// Every bit is kept, also of NaN.
    package var compactBytes: [UInt8] { Scalar.double(self).bytes }
}

extension Float: CompactValue {
    package init?(compactBytes: [UInt8]) {
        guard let value = Scalar(compactBytes)?.double, value.isNaN || Double(Float(value)) == value else { return nil }
        self = Float(value)
    }

    /// The double of the same value.
    package var compactBytes: [UInt8] { Scalar.double(Double(self)).bytes }
}

extension Bool: CompactValue {
    /// Reads a truth value, or the numbers 0 and 1.
    package init?(compactBytes: [UInt8]) {
        guard let value: UInt8 = Scalar(compactBytes)?.integer(), value <= 1 else { return nil }
        self = value == 1
    }

    package var compactBytes: [UInt8] { Scalar.bool(self).bytes }
}

extension Date: CompactValue {
    package init?(compactBytes: [UInt8]) {
        guard case .date(let seconds) = Scalar(compactBytes) else { return nil }
        self.init(timeIntervalSinceReferenceDate: seconds)
    }

    /// Every bit of the time is kept.
    package var compactBytes: [UInt8] { Scalar.date(timeIntervalSinceReferenceDate).bytes }
}

extension UUID: CompactValue {
    package init?(compactBytes: [UInt8]) {
        guard compactBytes.count == 16 else { return nil }
        self = compactBytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }

    /// The sixteen bytes.
    package var compactBytes: [UInt8] { withUnsafeBytes(of: uuid) { Array($0) } }
}

extension Data: CompactValue, ImmediatelyDecodedValue {
    package init?(compactBytes: [UInt8]) { self.init(compactBytes) }
    package var compactBytes: [UInt8] { [UInt8](self) }
    package var compactCost: Int { count }
}

/// A number, a truth value or a date as nine bytes: its kind, and its 64 bits in little endian.
///
/// The kind allows a number to be read as another type that can represent the same value.
enum Scalar: Equatable {
    case signed(Int64)
    case unsigned(UInt64)
    case double(Double)
    case bool(Bool)
    /// Seconds since 2001-01-01 00:00 UTC.
    case date(Double)

    init?(_ bytes: [UInt8]) {
        guard bytes.count == 9 else { return nil }
        let word = bytes[1...].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        switch bytes[0] {
        case UInt8(ascii: "i"): self = .signed(Int64(bitPattern: word))
        case UInt8(ascii: "u"): self = .unsigned(word)
        case UInt8(ascii: "d"): self = .double(Double(bitPattern: word))
        case UInt8(ascii: "b") where word <= 1: self = .bool(word == 1)
        case UInt8(ascii: "t"): self = .date(Double(bitPattern: word))
        default: return nil
        }
    }

    var bytes: [UInt8] {
        let (tag, word): (UInt8, UInt64) =
            switch self {
            case .signed(let value): (UInt8(ascii: "i"), UInt64(bitPattern: value))
            case .unsigned(let value): (UInt8(ascii: "u"), value)
            case .double(let value): (UInt8(ascii: "d"), value.bitPattern)
            case .bool(let value): (UInt8(ascii: "b"), value ? 1 : 0)
            case .date(let value): (UInt8(ascii: "t"), value.bitPattern)
            }
        return [tag] + (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }

    /// The value as an integer; nil unless it is exactly that.
    func integer<Number: FixedWidthInteger>() -> Number? {
        switch self {
        case .signed(let value): Number(exactly: value)
        case .unsigned(let value): Number(exactly: value)
        case .double(let value): Number(exactly: value)
        case .bool(let value): value ? 1 : 0
        case .date: nil
        }
    }

    /// The value as a double; nil unless it is exactly that.
    var double: Double? {
        switch self {
        case .signed(let value): Double(exactly: value)
        case .unsigned(let value): Double(exactly: value)
        case .double(let value): value
        case .bool(let value): value ? 1 : 0
        case .date: nil
        }
    }
}

/// An array of cacheable values as one cacheable value.
///
/// Its bytes are each element's length (32 bits, little endian) and bytes, so that elements can be dropped without
/// being decoded. No element may have 2³² bytes or more.
package struct CacheableList<Element: CacheableValue>: CacheableValue {
    /// The elements, oldest first where that means something.
    package var elements: [Element]

    /// A list of some elements.
    package init(_ elements: [Element]) { self.elements = elements }

    /// Decodes the elements.
    ///
    /// - Throws: `CacheableValueError` for bytes that are not a list, or the error of an element.
    package init(cacheBytes: [UInt8]) throws {
        guard let parts = ListBytes.split(cacheBytes) else {
            throw CacheableValueError.notRepresentable(type: "\(Self.self)")
        }
        elements = try parts.map { try Element(cacheBytes: Array(cacheBytes[$0])) }
    }

    /// Encodes the elements.
    ///
    /// - Throws: The error of an element, or `CacheableValueError` for an element that is too long.
    package func cacheBytes() throws -> [UInt8] {
        var bytes: [UInt8] = []
        for element in elements { try ListBytes.append(try element.cacheBytes(), to: &bytes) }
        return bytes
    }

    /// The sum of the elements' costs.
    package var cacheCost: Int { elements.reduce(0) { $0 + max(0, $1.cacheCost) + MemoryLayout<Element>.stride } }
}

extension CacheableList: Equatable where Element: Equatable {}
extension CacheableList: Hashable where Element: Hashable {}

/// The bytes of a list of any element type.
package enum ListBytes {
    /// Where the elements are; nil if the bytes are no list.
    static func split(_ bytes: [UInt8]) -> [Range<Int>]? {
        var parts: [Range<Int>] = []
        var position = 0
        while position < bytes.count {
            guard bytes.count - position >= 4 else { return nil }
            let count = (0..<4).reduce(0) { $0 | Int(bytes[position + $1]) << ($1 * 8) }
            position += 4
            guard bytes.count - position >= count else { return nil }
            parts.append(position..<position + count)
            position += count
        }
        return parts
    }

    static func append(_ element: [UInt8], to bytes: inout [UInt8]) throws(CacheableValueError) {
        guard let count = UInt32(exactly: element.count) else { throw .notRepresentable(type: "list element") }
        for shift in 0..<4 { bytes.append(UInt8(truncatingIfNeeded: count >> (shift * 8))) }
        bytes += element
    }

    /// Returns the list with an element inserted at its beginning or its end, cut to the maximum count.
    package static func inserting(
        _ element: [UInt8], atEnd: Bool, of bytes: [UInt8], maximumCount: Int?
    ) throws(CacheableValueError) -> [UInt8] {
        var added: [UInt8] = []
        try append(element, to: &added)
        let result = atEnd ? bytes + added : added + bytes
        guard let parts = split(result) else { throw .notRepresentable(type: "list") }
        guard let maximumCount, parts.count > maximumCount else { return result }
        return Array(result[..<(parts[maximumCount].lowerBound - 4)])
    }
}

/// A `Codable` type that caches and stores can store, by declaring `extension Palette: CacheableCodable {}`.
///
/// The bytes are JSON with sorted keys, so equal values have equal bytes. Infinite numbers and NaN are the texts `inf`,
/// `-inf` and `nan`. ``CodableBox`` wraps types of other modules.
///
/// Numbers, `Bool`, `Date`, `UUID` and `Data` conform and have compact bytes instead, which keep every bit. A number
/// can be read as any numeric type that has exactly the same value. `String` conforms, and so do arrays and dictionaries
/// of conforming types: `ValueCache<[String: [Palette]]>` needs no more than the declaration.
///
/// The default cost is the length of the bytes, but at least the size of the value. It needs encoding, so types that
/// are often put into memory should implement `cacheCost`.
public protocol CacheableCodable: CacheableValue, Codable {}

extension CacheableCodable {
    /// Decodes the value.
    ///
    /// - Throws: `DecodingError`, or another error if the bytes of a number or the like represent none.
    public init(cacheBytes: [UInt8]) throws {
        guard let compact = Self.self as? any CompactValue.Type else {
            self = try CodableBytes.decode(cacheBytes)
            return
        }
        guard let value = compact.init(compactBytes: cacheBytes) as? Self else {
            throw CacheableValueError.notRepresentable(type: "\(Self.self)")
        }
        self = value
    }

    /// Encodes the value.
    ///
    /// - Throws: `EncodingError`.
    public func cacheBytes() throws -> [UInt8] {
        if let compact = self as? any CompactValue { return compact.compactBytes }
        return try CodableBytes.encode(self)
    }

    /// The larger of the value's own size and the length of its bytes.
    public var cacheCost: Int {
        if let compact = self as? any CompactValue { return compact.compactCost }
        return CodableBytes.cost(of: self)
    }
}

/// Texts are stored as UTF-8. Arrays and dictionaries of them are ``CacheableCodable``, too.
extension String: CacheableCodable {}

/// Arrays are stored as JSON, and bytes (`[UInt8]`) as they are.
extension Array: CacheableValue, CacheableCodable where Element: CacheableCodable {
    /// Decodes the array.
    ///
    /// - Throws: `DecodingError`; never for bytes.
    public init(cacheBytes: [UInt8]) throws {
        if Element.self == UInt8.self, let bytes = cacheBytes as? Self {
            self = bytes
        } else {
            self = try CodableBytes.decode(cacheBytes)
        }
    }

    /// Encodes the array.
    ///
    /// - Throws: `EncodingError`; never for bytes.
    public func cacheBytes() throws -> [UInt8] {
        if Element.self == UInt8.self, let bytes = self as? [UInt8] { return bytes }
        return try CodableBytes.encode(self)
    }

    /// The number of bytes. For other elements, the larger of their own size and the length of the JSON.
    public var cacheCost: Int {
        if Element.self == UInt8.self { return count }
        return Swift.max(count * MemoryLayout<Element>.stride, CodableBytes.cost(of: self))
    }
}

/// Dictionaries are stored as JSON.
extension Dictionary: CacheableValue, CacheableCodable where Key: CacheableCodable, Value: CacheableCodable {
    /// Decodes the dictionary.
    ///
    /// - Throws: `DecodingError`.
    public init(cacheBytes: [UInt8]) throws { self = try CodableBytes.decode(cacheBytes) }

    /// Encodes the dictionary.
    ///
    /// - Throws: `EncodingError`.
    public func cacheBytes() throws -> [UInt8] { try CodableBytes.encode(self) }

    /// The larger of the memory of the keys and values themselves and the length of the JSON.
    public var cacheCost: Int {
        Swift.max(count * (MemoryLayout<Key>.stride + MemoryLayout<Value>.stride), CodableBytes.cost(of: self))
    }
}

/// A `Codable` value of any type in a wrapper that caches and stores can keep.
///
/// ```swift
/// let cache = ValueCache<CodableBox<ClosedRange<Date>>>(…)
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
