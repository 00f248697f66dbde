public import VitrineCore

/// A named kind of derived value, with its own transform, encoder, and places in memory and on disk (R30).
///
/// ```swift
/// let cache = Cache<Image>(name: "pictures")
/// var small = Format<Image>("small") { image in try ImageResizer.fit(100).resize(image) }
/// small.diskCapacity = .megabytes(50)
/// cache.register(small)
/// let thumbnail = try await cache.value(fromFile: "lake.jpg", format: "small")
/// ```
///
/// What is stored and delivered in a format is always the transformed value; the transform never sees it again (R32).
/// Closures may run on any thread of the cache's executor, several at once for different keys.
public struct Format<Value: CacheableValue>: Sendable {
    /// Makes a value of the format from an original one.
    public typealias Transform = @Sendable (Value) async throws -> Value
    /// Makes a value of the format straight from an original's bytes.
    public typealias Derive = @Sendable (_ original: [UInt8]) async throws -> Value
    /// Makes bytes of a value of the format.
    public typealias Encode = @Sendable (Value) throws -> [UInt8]
    /// Makes a value of the format from bytes that its encoder made.
    public typealias Decode = @Sendable ([UInt8]) throws -> Value

    /// What the format is known by, in this process and on disk.
    public let name: FormatName
    /// How much the format may keep on disk; nil for the cache's default, ``CacheConfiguration/diskCapacity``.
    /// 0 keeps nothing there (R36).
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
    public var transform: Transform?
    /// Makes a value of the format straight from the original's bytes, which is cheaper where decoding can reduce
    /// at once. Preferred to ``transform`` where the bytes are at hand.
    public var derive: Derive?
    /// What is stored; nil for `CacheableValue.cacheBytes()`. The thread that writes for all formats of the cache waits
    /// for it: it must not wait for the cache.
    public var encode: Encode?
    /// The inverse of ``encode``; nil for `CacheableValue.init(cacheBytes:)`.
    public var decode: Decode?
    /// Which other formats' entries this one can be made from; nil for the original only.
    public var derivation: Derivation?

    /// A format that leaves values as they are unless given a transform.
    public init(
        _ name: FormatName, diskCapacity: ByteCount? = nil, memoryCapacity: ByteCount? = nil,
        transform: Transform? = nil
    ) {
        self.name = name
        self.diskCapacity = diskCapacity
        self.memoryCapacity = memoryCapacity
        self.transform = transform
    }

    /// The values as they came, under the name "original" (R31).
    public static var original: Format { Format(.original) }

    /// Whether values stay as they are.
    public var isIdentity: Bool { transform == nil && derive == nil }

    /// The value the bytes of an entry stand for.
    package func value(of bytes: [UInt8]) throws -> Value {
        if let decode { return try decode(bytes) }
        return try Value(cacheBytes: bytes)
    }

    /// Whether ``value(of:)`` need not be called on a thread that may block.
    package var decodesAtOnce: Bool { decode == nil && Value.isCacheDecodingImmediate }

    /// The bytes an entry gets for a value.
    package func bytes(of value: Value) throws -> [UInt8] {
        if let encode { return try encode(value) }
        return try value.cacheBytes()
    }
}
