#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What a value is known by: an identity text and its 64-bit hash, computed once.
///
/// A key is made of one or more parts that are delimited by their lengths, never joined, so that different parts
/// are different keys whatever characters they contain:
///
/// ```swift
/// let original: CacheKey = "https://example.org/lake.jpg"
/// let small = original.appending("320x240")
/// CacheKey("a", "b") == CacheKey("ab")        // false
/// CacheKey("a", "b") == CacheKey("a").appending("b")  // true
/// ```
///
/// Two keys are equal when their identities are the same *bytes*; equal hashes alone never make keys equal, so a
/// collision can cost time but never show a wrong value. Hashing a key in a `Dictionary` uses the stored hash.
///
/// The identity and the hash are the same in every process and release: both may be written to disk.
public struct CacheKey: Sendable {
    /// The identity as text: the only part itself, or, for several parts, U+001F followed by each part as its
    /// length in UTF-8 bytes (decimal), `:`, and the part. A single part that begins with U+001F is written in the
    /// second form, which keeps the two apart.
    public let identity: String
    /// ``StableHash`` of the identity's UTF-8 bytes. The identifier of the key's entry on disk.
    public let hash: UInt64

    private static let marker: Unicode.Scalar = "\u{1F}"

    /// A key with one part.
    public init(_ text: String) {
        if text.utf8.first == 0x1F {
            self.init(parts: CollectionOfOne(text))
        } else {
            self.init(identity: text)
        }
    }

    /// A key with several parts.
    public init(_ first: String, _ second: String, _ rest: String...) {
        self.init(parts: [first, second] + rest)
    }

    /// A key with any number of parts. One part gives the same key as ``init(_:)``; none gives a key of its own.
    public init(parts: some Collection<String>) {
        if parts.count == 1, let only = parts.first, only.utf8.first != 0x1F {
            self.init(identity: only)
            return
        }
        var identity = String(Self.marker)
        for part in parts { Self.append(part, to: &identity) }
        self.init(identity: identity)
    }

    /// The key with exactly this ``identity``, as read back from where a key was stored.
    public init(identity: String) {
        var identity = identity
        identity.makeContiguousUTF8()
        hash = StableHash.hash(identity)
        self.identity = identity
    }

    /// A key with a hash that is not its own: for tests of what happens when two keys have the same.
    package init(identity: String, forcedHash hash: UInt64) {
        var identity = identity
        identity.makeContiguousUTF8()
        self.identity = identity
        self.hash = hash
    }

    /// The key with one more part at its end.
    public func appending(_ part: String) -> CacheKey {
        var identity: String
        if self.identity.utf8.first == 0x1F {
            identity = self.identity
        } else {
            identity = String(Self.marker)
            Self.append(self.identity, to: &identity)
        }
        Self.append(part, to: &identity)
        return CacheKey(identity: identity)
    }

    /// The parts the key was made of. An identity that no key produces counts as one part.
    public var parts: [String] {
        guard identity.utf8.first == 0x1F else { return [identity] }
        return Self.split(Array(identity.utf8.dropFirst())) ?? [identity]
    }

    private static func append(_ part: String, to identity: inout String) {
        identity += String(part.utf8.count)
        identity += ":"
        identity += part
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

    public func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }
}

extension CacheKey: ExpressibleByStringLiteral {
    /// A key with one part.
    public init(stringLiteral value: String) {
        self.init(value)
    }
}

extension CacheKey: CustomStringConvertible {
    /// The parts for reading, ` | ` between them. Not an identity.
    public var description: String { parts.joined(separator: " | ") }
}

extension CacheKey: Codable {
    public init(from decoder: any Decoder) throws {
        self.init(identity: try decoder.singleValueContainer().decode(String.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(identity)
    }
}
