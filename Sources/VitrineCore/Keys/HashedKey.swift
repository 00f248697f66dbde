/// A key that brings its 64-bit hash along, so that looking it up hashes nothing.
///
/// ``CacheKey`` does. Any `Hashable` type conforms by saying so and then pays for its own hash at every lookup:
///
/// ```swift
/// extension Page.ID: HashedKey {}
/// ```
public protocol HashedKey: Equatable, Sendable {
    /// The same for equal keys. Different keys may share one: they are told apart by `==`, only slower.
    var hash64: UInt64 { get }
}

extension HashedKey where Self: Hashable {
    /// The type's `hashValue`.
    @inlinable
    public var hash64: UInt64 { UInt64(bitPattern: Int64(hashValue)) }
}

extension CacheKey: HashedKey {
    /// The hash computed when the key was made.
    @inlinable
    public var hash64: UInt64 { hash }
}

extension String: HashedKey {}
extension Int: HashedKey {}
