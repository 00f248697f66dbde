#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The key of a cached value: a text and its 64-bit hash, which is computed once.
///
/// A key has one or more parts. Parts are delimited by their lengths and never joined, so different parts make
/// different keys, even if they contain delimiters:
///
/// ```swift
/// let original: CacheKey = "https://example.org/lake.jpg"
/// let small = original.appending("320x240")
/// CacheKey("a", "b") == CacheKey("ab")        // false
/// CacheKey("a", "b") == CacheKey("a").appending("b")  // true
/// ```
///
/// Two keys are equal if their identities have the same *bytes*. A collision of hashes costs time, but never returns
/// the value of another key. Hashing a key in a `Dictionary` uses the stored hash.
///
/// Identity and hash are the same in every process and release, so both may be written to disk.
public struct CacheKey: Sendable {
    /// The identity as text.
    ///
    /// A single part is its own identity. Several parts are U+001F, followed by each part as its length in UTF-8 bytes
    /// (decimal), `:`, and the part. A single part that begins with U+001F has the second form.
    package let identity: String
    /// The ``StableHash`` of the identity's UTF-8 bytes, which identifies the key's entry on disk.
    @usableFromInline package let hash: UInt64

    private static let marker: Unicode.Scalar = "\u{1F}"

    /// Creates a key with one part.
    ///
    /// - Parameter text: The part, for example a URL.
    public init(_ text: String) {
        if text.utf8.first == 0x1F {
            self.init(parts: CollectionOfOne(text))
        } else {
            self.init(identity: text)
        }
    }

    /// Creates a key with several parts.
    ///
    /// - Parameters:
    ///   - first: The first part.
    ///   - rest: The other parts.
    public init(_ first: String, _ rest: String...) {
        self.init(parts: [first] + rest)
    }

    /// Creates a key with any number of parts. One part makes the same key as ``init(_:)``, none a key of its own.
    ///
    /// - Parameter parts: The parts, in order.
    package init(parts: some Collection<String>) {
        if parts.count == 1, let only = parts.first, only.utf8.first != 0x1F {
            self.init(identity: only)
            return
        }
        var identity = String(Self.marker)
        for part in parts { identity = Self.joined(identity, first: part, second: nil) }
        self.init(identity: identity)
    }

    /// Creates the key with a given ``identity``, as read back from storage.
    ///
    /// - Parameter identity: The identity of another key.
    package init(identity: String) {
        var identity = identity
        identity.makeContiguousUTF8()
        hash = StableHash.hash(identity)
        self.identity = identity
    }

    /// Creates a key with a given hash, for tests of collisions.
    package init(identity: String, forcedHash hash: UInt64) {
        var identity = identity
        identity.makeContiguousUTF8()
        self.identity = identity
        self.hash = hash
    }

    /// Returns the key with one more part at its end.
    ///
    /// - Parameter part: The part to append.
    public func appending(_ part: String) -> CacheKey {
        CacheKey(identity: Self.joined(identity, first: part, second: nil))
    }

    /// Returns the key with two more parts at its end, at the cost of one.
    package func appending(_ first: String, _ second: String) -> CacheKey {
        CacheKey(identity: Self.joined(identity, first: first, second: second))
    }

    /// The parts of the key. An identity that no key produces counts as one part.
    package var parts: [String] {
        guard identity.utf8.first == 0x1F else { return [identity] }
        return Self.split(Array(identity.utf8.dropFirst())) ?? [identity]
    }

    /// Returns an identity with one or two more parts, in one piece of memory of the exact size.
    private static func joined(_ identity: String, first: String, second: String?) -> String {
        var (identity, first, second) = (identity, first, second)
        return identity.withUTF8 { identity in
            first.withUTF8 { first in
                guard second != nil else { return joined(identity, first: first, second: nil) }
                return second?.withUTF8 { joined(identity, first: first, second: $0) } ?? ""
            }
        }
    }

    private typealias Bytes = UnsafeBufferPointer<UInt8>

    private static func joined(_ identity: Bytes, first: Bytes, second: Bytes?) -> String {
        let isMarked = identity.first == 0x1F
        let start = isMarked ? identity.count : 1 + size(identity)
        let count = start + size(first) + (second.map(size) ?? 0)
        return String(unsafeUninitializedCapacity: count) { target in
            var place = 0
            if isMarked {
                copy(identity, to: target, &place)
            } else {
                target[0] = 0x1F
                place = 1
                write(identity, to: target, &place)
            }
            write(first, to: target, &place)
            if let second { write(second, to: target, &place) }
            return place
        }
    }

    /// The bytes of a part with its length.
    private static func size(_ part: Bytes) -> Int {
        var (size, rest) = (part.count + 2, part.count)
        while rest > 9 {
            size += 1
            rest /= 10
        }
        return size
    }

    private static func write(_ part: Bytes, to target: UnsafeMutableBufferPointer<UInt8>, _ place: inout Int) {
        var (rest, digit) = (part.count, size(part) - part.count - 2)
        let colon = place + digit + 1
        repeat {
            target[place + digit] = UInt8(truncatingIfNeeded: 0x30 + rest % 10)
            rest /= 10
            digit -= 1
        } while digit >= 0
        target[colon] = 0x3A
        place = colon + 1
        copy(part, to: target, &place)
    }

    private static func copy(_ part: Bytes, to target: UnsafeMutableBufferPointer<UInt8>, _ place: inout Int) {
        guard let from = part.baseAddress, let to = target.baseAddress else { return }
        (to + place).update(from: from, count: part.count)
        place += part.count
    }

    private static func split(_ bytes: [UInt8]) -> [String]? {
        var parts: [String] = []
        var index = 0
        while index < bytes.count {
            var length = 0
            let start = index
            while index < bytes.count, (0x30...0x39).contains(bytes[index]) {
                guard length <= bytes.count else { return nil }
                length = length * 10 + Int(bytes[index] - 0x30)
                index += 1
            }
            guard index > start, index < bytes.count, bytes[index] == 0x3A else { return nil }
            index += 1
            guard length <= bytes.count - index else { return nil }
            parts.append(String(decoding: bytes[index..<index + length], as: UTF8.self))
            index += length
        }
        return parts
    }
}

extension CacheKey: Hashable {
    /// Returns whether the identities of two keys have the same bytes.
    public static func == (one: CacheKey, other: CacheKey) -> Bool {
        guard one.hash == other.hash else { return false }
        // String's own == also accepts canonically equivalent text, whose bytes and hash differ.
        return one.identity.utf8.withContiguousStorageIfAvailable { first in
            other.identity.utf8.withContiguousStorageIfAvailable { second in
                guard first.count == second.count else { return false }
                guard let a = first.baseAddress, let b = second.baseAddress else { return true }
                return a == b || memcmp(a, b, first.count) == 0
            }
        } == .some(.some(true))
    }

    /// Feeds the stored hash to a hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }
}

extension CacheKey: ExpressibleByStringLiteral {
    /// Creates a key with one part.
    public init(stringLiteral value: String) {
        self.init(value)
    }
}

extension CacheKey: CustomStringConvertible {
    /// The parts of the key with ` | ` between them, for people to read.
    public var description: String { parts.joined(separator: " | ") }
}

/// A key that has a stored 64-bit hash, so that a lookup does not compute one.
///
/// ``CacheKey`` stores its hash. Any other `Hashable` type can conform, and then computes its hash at every lookup:
///
/// ```swift
/// extension Page.ID: HashedKey {}
/// ```
public protocol HashedKey: Equatable, Sendable {
    /// A 64-bit hash that is the same for equal keys.
    ///
    /// Different keys may have the same hash. They are told apart by `==`, which is slower.
    var hash64: UInt64 { get }
}

extension HashedKey where Self: Hashable {
    /// The `hashValue` of the key.
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
