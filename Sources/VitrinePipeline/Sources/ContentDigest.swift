import VitrineCore

/// The identity of bytes in memory: their SHA-256 digest, computed when it is first asked for.
final class ContentDigest: Sendable {
    private let bytes: [UInt8]
    private let known = Locked<String?>(nil)

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var key: CacheKey {
        let digest = known.withLock { known in
            let digest = known ?? Hexadecimal.text(SHA256Digest.digest(of: bytes))
            known = digest
            return digest
        }
        return CacheKey("bytes", digest)
    }
}
