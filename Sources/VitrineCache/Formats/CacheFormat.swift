public import VitrineCore

/// A named representation of values, with its own transform, encoder, and entries in memory and on disk.
///
/// ```swift
/// let cache = ValueCache<PixelImage>(name: "pictures")
/// var small = CacheFormat<PixelImage>("small") { image in try ImageResizer.fit(100).resize(image) }
/// small.diskCapacity = .megabytes(50)
/// cache.register(small)
/// let thumbnail = try await cache.value(fromFile: "lake.jpg", format: "small")
/// ```
///
/// The transformed value is stored and returned. It is not transformed again. Closures may run on any thread of the
/// cache's executor, several at a time for different keys.
public struct CacheFormat<Value: CacheableValue>: Sendable {
    /// The name of the format in this process and on disk.
    public let name: FormatName
    /// The limit of the format on disk. Default nil: ``CacheConfiguration/diskCapacity``. 0 stores nothing on disk.
    public var diskCapacity: ByteCount?
    /// How much the format may keep in memory, apart from the others; nil to share the cache's capacity. 0 keeps
    /// nothing there.
    public var memoryCapacity: ByteCount?
    /// How long an entry is fresh; nil for ``CacheConfiguration/timeToLive``.
    public var timeToLive: Duration?
    /// Makes a value of the format from an original one, or from one of a larger format of its family. nil leaves
    /// values as they are.
    ///
    /// It holds a place of the cache's queue while it runs: it must not wait for this cache's own formats.
    public var transform: (@Sendable (Value) async throws -> Value)?
    /// Makes a value of the format straight from the original's bytes, which is cheaper where decoding can reduce
    /// at once. Preferred to ``transform`` where the bytes are at hand.
    public var derive: (@Sendable (_ original: [UInt8]) async throws -> Value)?
    /// Encodes a value; nil for `CacheableValue.cacheBytes()`. The writing thread of the cache runs it, so it must not
    /// wait for the cache.
    public var encode: (@Sendable (Value) throws -> [UInt8])?
    /// The inverse of ``encode``; nil for `CacheableValue.init(cacheBytes:)`.
    public var decode: (@Sendable ([UInt8]) throws -> Value)?
    /// Which other formats' entries this one can be made from; nil for the original only.
    package var derivation: Derivation?
    private let isDecodedImmediately = Value.self is any ImmediatelyDecodedValue.Type || Value.self == [UInt8].self

    /// A format that leaves values as they are unless given a transform.
    public init(
        _ name: FormatName, diskCapacity: ByteCount? = nil, memoryCapacity: ByteCount? = nil,
        transform: (@Sendable (Value) async throws -> Value)? = nil
    ) {
        self.name = name
        self.diskCapacity = diskCapacity
        self.memoryCapacity = memoryCapacity
        self.transform = transform
    }

    /// The format "original", which stores values unchanged.
    public static var original: CacheFormat { CacheFormat(.original) }

    /// Whether values stay as they are.
    package var isIdentity: Bool { transform == nil && derive == nil }

    /// The value the bytes of an entry stand for.
    package func value(of bytes: [UInt8]) throws -> Value {
        if let decode { return try decode(bytes) }
        return try Value(cacheBytes: bytes)
    }

    /// Whether ``value(of:)`` need not be called on a thread that may block.
    package var decodesAtOnce: Bool { decode == nil && isDecodedImmediately }

    /// The bytes an entry gets for a value.
    package func bytes(of value: Value) throws -> [UInt8] {
        if let encode { return try encode(value) }
        return try value.cacheBytes()
    }
}

/// The name of a ``CacheFormat``: any text.
public struct FormatName: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The text.
    public let description: String

    /// Creates a name.
    public init(_ name: String) { description = name }

    /// Creates a name.
    public init(stringLiteral value: String) { description = value }

    /// The name of the format that stores values unchanged.
    public static let original: FormatName = "original"
}

/// The reduction of a format, so that smaller values can be made from larger stored ones instead of asking the source.
///
/// A format is derived from a stored entry of another format only if both have the same family and the other's magnitude
/// is at least twice its own. Otherwise the second reduction would be visible.
package struct Derivation: Sendable, Hashable {
    /// The kind of reduction. Formats are derived only from formats of the same family: those whose values are equal,
    /// up to rounding, whether or not the larger format is applied first.
    package var family: String
    /// How large the values are, in any unit the family shares: for images the longer side in pixels.
    package var magnitude: Int

    package init(family: String, magnitude: Int) {
        self.family = family
        self.magnitude = magnitude
    }

    /// Whether values of this derivation can be made from values of `other`.
    package func canDerive(from other: Derivation) -> Bool {
        guard family == other.family, magnitude > 0 else { return false }
        let (double, overflow) = magnitude.multipliedReportingOverflow(by: 2)
        return !overflow && other.magnitude >= double
    }
}
