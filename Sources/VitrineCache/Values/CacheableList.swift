public import VitrineCore

/// An array of cacheable values as one cacheable value.
///
/// Its bytes are each element's length (32 bits, little endian) and bytes, so that elements can be dropped without
/// being decoded. No element may have 2³² bytes or more.
public struct CacheableList<Element: CacheableValue>: CacheableValue {
    /// The elements, oldest first where that means something.
    public var elements: [Element]

    /// A list of some elements.
    public init(_ elements: [Element]) { self.elements = elements }

    /// Decodes the elements.
    ///
    /// - Throws: `CacheableValueError` for bytes that are no list, or what an element throws.
    public init(cacheBytes: [UInt8]) throws {
        guard let parts = ListBytes.split(cacheBytes) else {
            throw CacheableValueError.notRepresentable(type: "\(Self.self)")
        }
        elements = try parts.map { try Element(cacheBytes: Array(cacheBytes[$0])) }
    }

    /// Encodes the elements.
    ///
    /// - Throws: What an element throws, or `CacheableValueError` for one that is too long.
    public func cacheBytes() throws -> [UInt8] {
        var bytes: [UInt8] = []
        for element in elements { try ListBytes.append(try element.cacheBytes(), to: &bytes) }
        return bytes
    }

    /// The sum of the elements' costs.
    public var cacheCost: Int { elements.reduce(0) { $0 + max(0, $1.cacheCost) + MemoryLayout<Element>.stride } }
}

extension CacheableList: Equatable where Element: Equatable {}
extension CacheableList: Hashable where Element: Hashable {}

/// The bytes of a list, without knowing what its elements are.
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

    /// One more element at the end, and those dropped at the beginning that are then too many.
    package static func appending(
        _ element: [UInt8], to bytes: [UInt8], maximumCount: Int?
    ) throws(CacheableValueError) -> [UInt8] {
        guard let parts = split(bytes) else { throw .notRepresentable(type: "list") }
        var result = bytes
        if let maximumCount, parts.count >= maximumCount {
            guard maximumCount > 0 else { return [] }
            let dropped = parts.count + 1 - maximumCount
            result.removeFirst(dropped < parts.count ? parts[dropped].lowerBound - 4 : bytes.count)
        }
        try append(element, to: &result)
        return result
    }
}
