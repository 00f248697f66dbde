/// A value that caches and stores can keep: made from bytes, turned into bytes, with a cost in memory.
///
/// Conform a type where it is defined; every cache, format and fetcher then takes it (R1).
///
/// ```swift
/// extension Palette: CacheableValue {
///     init(cacheBytes: [UInt8]) throws { self = try Palette(parsing: cacheBytes) }
///     func cacheBytes() throws -> [UInt8] { serialized() }
///     var cacheCost: Int { colors.count * 4 }
/// }
/// ```
public protocol CacheableValue: Sendable {
    /// Makes the value from what ``cacheBytes()`` gave, possibly in an earlier release or another process.
    ///
    /// The bytes' integrity has been checked, their meaning has not.
    ///
    /// - Throws: Any error if the bytes are no such value. The entry then counts as missing and is removed.
    init(cacheBytes: [UInt8]) throws

    /// The value as bytes. May block and run on any thread.
    ///
    /// - Throws: Any error if the value cannot be represented. It is then kept in memory only.
    func cacheBytes() throws -> [UInt8]

    /// What the value occupies in memory, in bytes: decoded, not as stored. Never negative.
    var cacheCost: Int { get }

    /// Whether ``init(cacheBytes:)`` takes next to no time, whatever the bytes: it is then called where they are, which
    /// saves waking another thread. False, the default, for all that parses or decodes.
    static var isCacheDecodingImmediate: Bool { get }

    /// Makes, from a value, a closure that gives it back while it is alive somewhere and does not itself keep it alive:
    /// a value that memory had to evict but that is still on the screen then counts as a memory hit (R20).
    ///
    /// For types whose contents live in an object, which the closure refers to weakly. nil, the default, for others;
    /// also what the outer closure gives for a single value that cannot be referred to so.
    static var weakReference: (@Sendable (Self) -> (@Sendable () -> Self?)?)? { get }
}

extension CacheableValue {
    public static var isCacheDecodingImmediate: Bool { false }
    public static var weakReference: (@Sendable (Self) -> (@Sendable () -> Self?)?)? { nil }
}
