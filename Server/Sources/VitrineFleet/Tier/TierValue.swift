import Crypto
import Foundation
package import NIOCore

/// The name of a value that nodes share.
///
/// The tier sees only digests: no URL, no secret in one, and no name of any length becomes a key of Redis.
public struct RemoteKey: Sendable, Hashable {
    /// The digest of the group: 32 hexadecimal digits, the first half of the SHA-256 digest of its UTF-8 bytes.
    public let group: String
    /// The digest of the name within the group, made in the same way.
    public let name: String

    /// Creates the key of a value in a group, whose values are purged together.
    ///
    /// - Parameters:
    ///   - group: The origin of the value, for example the address of a source.
    ///   - name: The name in the group, for example the options of a render. It need not contain the group.
    public init(group: String, name: String) {
        self.init(groupDigest: Self.digest(of: group), nameDigest: Self.digest(of: name))
    }

    /// Creates the key of a value that is its own group.
    public init(_ name: String) { self.init(group: name, name: name) }

    package init(groupDigest: String, nameDigest: String) { (group, name) = (groupDigest, nameDigest) }

    /// Returns the digest of a group, as in ``group`` and ``RemoteTier/Invalidation/group(_:)``.
    public static func digest(of text: String) -> String {
        SHA256.hash(data: Data(text.utf8)).prefix(16).hexadecimal
    }

    static func isDigest(_ text: some StringProtocol) -> Bool {
        text.utf8.count == 32 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }
}

/// A value with its header, as it is stored.
///
/// | Offset | Bytes | Content |
/// | --- | --- | --- |
/// | 0 | 3 | `VFT` |
/// | 3 | 1 | the version of the format, 1, or 2 for a value with a secret; 0x80 more for a mark that it is not shared |
/// | 4 | 16 | the generation of the group, hexadecimal |
/// | 20 | 8 | when it was stored, in milliseconds since 1970 by the clock of the server |
/// | 28 | 8 | until when it is fresh |
/// | 36 | 2 | the length of the media type |
/// | 38 | 4 | the length of the contents |
/// | 42 | 16 | half of the SHA-256 digest, or HMAC with a secret, of the key, the bytes before, and those after |
/// | 58 | | the media type, then the contents |
///
/// Numbers are big-endian.
package struct TierValue: Sendable, Equatable {
    package static let headerSize = 58
    private static let magic: UInt32 = 0x5646_5400
    private static let unsharedBit: UInt32 = 0x80
    private static let checksumOffset = 42

    package var generation: String
    /// Since 1970, by the clock of the server.
    package var created: Duration
    package var freshUntil: Duration
    package var contentType = ""
    package var contents = ByteBuffer()
    /// Whether the value exists but is too large for the tier.
    package var isUnshared = false

    package init(generation: String, created: Duration, freshUntil: Duration) {
        (self.generation, self.created, self.freshUntil) = (generation, created, freshUntil)
    }

    /// Why stored bytes are not a value.
    package enum Damage: Error, Equatable {
        /// The bytes are not those of a value.
        case foreign
        /// The value was written by another version.
        case version(UInt8)
        /// A length or the checksum is wrong.
        case damaged
        /// The value was made before its group was purged.
        case outdated
    }

    private static func version(isKeyed: Bool) -> UInt32 { isKeyed ? 2 : 1 }

    /// The bytes as they are stored.
    ///
    /// - Parameter secret: Authenticates the value; nil for a checksum.
    package func encoded(key: RemoteKey, secret: [UInt8]? = nil) -> ByteBuffer {
        let type = Array(contentType.utf8.prefix(Int(UInt16.max)))
        var buffer = ByteBufferAllocator().buffer(capacity: Self.headerSize + type.count + contents.readableBytes)
        let magic = Self.magic | Self.version(isKeyed: secret != nil)
        buffer.writeInteger(isUnshared ? magic | Self.unsharedBit : magic)
        buffer.writeString(generation)
        buffer.writeInteger(created.wholeMilliseconds)
        buffer.writeInteger(freshUntil.wholeMilliseconds)
        buffer.writeInteger(UInt16(type.count))
        buffer.writeInteger(UInt32(contents.readableBytes))
        buffer.writeRepeatingByte(0, count: 16)
        buffer.writeBytes(type)
        buffer.writeImmutableBuffer(contents)
        buffer.setBytes(Self.checksum(of: buffer, key, secret), at: Self.checksumOffset)
        return buffer
    }

    /// Reads stored bytes.
    ///
    /// - Parameter secrets: One of them has to have authenticated the value. Empty for a value with a checksum.
    package init(
        stored: ByteBuffer, key: RemoteKey, generation expected: String?, secrets: [[UInt8]] = []
    ) throws(Damage) {
        var buffer = stored
        guard let magic = buffer.readInteger(as: UInt32.self), magic >> 8 == Self.magic >> 8 else { throw .foreign }
        guard magic & ~Self.unsharedBit == Self.magic | Self.version(isKeyed: !secrets.isEmpty) else {
            throw .version(UInt8(truncatingIfNeeded: magic))
        }
        guard let generation = buffer.readString(length: 16), let created = buffer.readInteger(as: Int64.self),
            let freshUntil = buffer.readInteger(as: Int64.self), let typeLength = buffer.readInteger(as: UInt16.self),
            let length = buffer.readInteger(as: UInt32.self), let checksum = buffer.readBytes(length: 16),
            buffer.readableBytes == Int(typeLength) + Int(length),
            let type = buffer.readString(length: Int(typeLength)),
            Self.isValid(checksum, of: stored, key: key, secrets: secrets)
        else { throw .damaged }
        guard generation == expected else { throw .outdated }
        self.init(
            generation: generation, created: .milliseconds(created), freshUntil: .milliseconds(freshUntil))
        (contentType, contents, isUnshared) = (type, buffer, magic & Self.unsharedBit != 0)
    }

    private static func isValid(
        _ checksum: [UInt8], of buffer: ByteBuffer, key: RemoteKey, secrets: [[UInt8]]
    ) -> Bool {
        guard !secrets.isEmpty else { return checksum == Self.checksum(of: buffer, key, nil) }
        // In a time that does not depend on the bytes.
        return secrets.contains { secret in
            zip(checksum, Self.checksum(of: buffer, key, secret)).reduce(UInt8(0)) { $0 | $1.0 ^ $1.1 } == 0
        }
    }

    private static func checksum(of buffer: ByteBuffer, _ key: RemoteKey, _ secret: [UInt8]?) -> [UInt8] {
        let name = Array((key.group + key.name).utf8)
        return buffer.withUnsafeReadableBytes { bytes in
            let parts = [bytes[..<checksumOffset], bytes[headerSize...]].map { UnsafeRawBufferPointer(rebasing: $0) }
            guard let secret else {
                var hash = SHA256()
                hash.update(data: name)
                for part in parts { hash.update(bufferPointer: part) }
                return Array(hash.finalize().prefix(16))
            }
            var code = HMAC<SHA256>(key: SymmetricKey(data: secret))
            code.update(data: name)
            for part in parts { code.update(data: part) }
            return Array(code.finalize().prefix(16))
        }
    }
}

extension Duration {
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (result, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        return overflow ? (seconds < 0 ? .min : .max) : result &+ attoseconds / 1_000_000_000_000_000
    }
}
