/// A value that caches and stores can hold: it converts to and from bytes and has a cost in memory.
///
/// A type conforms once; every cache, format and fetcher then accepts it.
///
/// ```swift
/// extension Palette: CacheableValue {
///     init(cacheBytes: [UInt8]) throws { self = try Palette(parsing: cacheBytes) }
///     func cacheBytes() throws -> [UInt8] { serialized() }
///     var cacheCost: Int { colors.count * 4 }
/// }
/// ```
public protocol CacheableValue: Sendable {
    /// Creates a value from the result of ``cacheBytes()``, possibly of an earlier release or another process.
    ///
    /// The integrity of the bytes has been checked, but not their meaning.
    ///
    /// - Parameter cacheBytes: The stored bytes.
    /// - Throws: Any error if the bytes do not represent a value. The entry then counts as a miss and is removed.
    init(cacheBytes: [UInt8]) throws

    /// Returns the value as bytes. It may block and run on any thread.
    ///
    /// - Throws: Any error if the value cannot be represented. It is then kept in memory only.
    func cacheBytes() throws -> [UInt8]

    /// The memory that the value occupies when decoded, in bytes. Never negative.
    var cacheCost: Int { get }

    /// A function that makes a weak reference to a value: a closure that returns the value while it is alive elsewhere.
    ///
    /// A value that was evicted from memory but is still in use, for example on the screen, then counts as a memory
    /// hit.
    ///
    /// For types whose contents live in an object. Default: nil. The function may also return nil for a single value
    /// that cannot be referred to weakly.
    static var weakReference: (@Sendable (Self) -> (@Sendable () -> Self?)?)? { get }
}

extension CacheableValue {
    /// None: evicted values are not found again.
    public static var weakReference: (@Sendable (Self) -> (@Sendable () -> Self?)?)? { nil }
}

/// A value whose bytes are decoded so fast that the reading thread may do it, which saves waking another one.
package protocol ImmediatelyDecodedValue: CacheableValue {}

extension String: CacheableValue {
    /// Creates a text from UTF-8.
    ///
    /// - Parameter cacheBytes: The stored bytes.
    /// - Throws: An error if the bytes are ill-formed. They are not repaired.
    public init(cacheBytes: [UInt8]) throws {
        guard let text = String(validating: cacheBytes, as: UTF8.self) else { throw CacheableValueError.notUTF8 }
        self = text
    }

    /// Returns the text as UTF-8.
    public func cacheBytes() -> [UInt8] { Array(utf8) }
    /// The number of bytes in UTF-8.
    public var cacheCost: Int { utf8.count }
}

/// Why bytes could not be decoded as a value.
package enum CacheableValueError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The bytes are not well-formed UTF-8. They may have been stored as another type; use another key or format.
    case notUTF8
    /// The bytes do not represent a value of the named type.
    case notRepresentable(type: String)

    package var description: String {
        switch self {
        case .notUTF8: "Cannot decode the bytes as UTF-8 text. They may have been stored as another type."
        case .notRepresentable(let type): "Cannot decode the bytes as a value of type \(type)."
        }
    }
}
