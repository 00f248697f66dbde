#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore
import VitrineImaging

/// The identity of a file: its path and its version.
package enum FileIdentity {
    /// The key of the file at `path`: its path, with the home directory as `~`, size, time of change and inode.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)`` when there is no such file.
    package static func key(of path: String) throws(ImagePipelineError) -> CacheKey {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw .unreadable(source: path, reason: String(cString: strerror(errno)))
        }
        let changed = status.modified
        return CacheKey(
            "file", relativeToHome(path), "\(status.st_size)", "\(changed.tv_sec).\(changed.tv_nsec)",
            "\(status.st_ino)")
    }

    /// `path` with the home directory, when it lies below it, written as `~`.
    package static func relativeToHome(_ path: String, home: String? = getenv("HOME").map { PathText.text(cString: $0) })
        -> String
    {
        guard var home, home.hasPrefix("/"), home != "/" else { return path }
        while home.hasSuffix("/") { home.removeLast() }
        guard path.hasPrefix(home + "/") else { return path }
        return "~" + path.dropFirst(home.count)
    }
}

/// The identity of a file or of bytes, for sources that read either.
struct InputIdentity: Sendable {
    private let input: ImageInput
    private let digest: ContentDigest?

    init(_ input: ImageInput) {
        self.input = input
        if case .bytes(let bytes, _) = input { digest = ContentDigest(bytes) } else { digest = nil }
    }

    /// - Throws: As ``FileIdentity/key(of:)``.
    func key() throws(ImagePipelineError) -> CacheKey {
        switch input {
        case .file(let path): try FileIdentity.key(of: path)
        case .bytes(let bytes, _): (digest ?? ContentDigest(bytes)).key
        }
    }
}

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
