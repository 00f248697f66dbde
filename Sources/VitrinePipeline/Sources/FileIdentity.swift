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
    /// How an identity is found out.
    package enum Lookup: Sendable {
        /// By a look at the file, or at all bytes.
        case verified
        /// Without one: as it was at the last look, of any source in this process.
        case remembered
    }

    private struct Memory {
        var recent: [String: CacheKey] = [:]
        var older: [String: CacheKey] = [:]
    }

    /// Files that are remembered before the older half is forgotten.
    private static let capacity = 8_192
    private static let memory = Locked(Memory())

    private static func remember(_ key: CacheKey?, of path: String) {
        memory.withLock { memory in
            memory.older[path] = nil
            memory.recent[path] = key
            if memory.recent.count >= capacity { (memory.older, memory.recent) = (memory.recent, [:]) }
        }
    }

    /// The key of the file at `path`: its path, with the home directory as `~`, size, time of change and inode.
    ///
    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)`` when there is no such file, or none is remembered.
    package static func key(of path: String, _ lookup: Lookup = .verified) throws(ImagePipelineError) -> CacheKey {
        if lookup == .remembered {
            guard let key = memory.withLock({ $0.recent[path] ?? $0.older[path] }) else {
                throw .unreadable(source: path, reason: "it has not been read before")
            }
            return key
        }
        do throws(ImagePipelineError) {
            let key = try currentKey(of: path)
            remember(key, of: path)
            return key
        } catch {
            remember(nil, of: path)
            throw error
        }
    }

    private static func currentKey(of path: String) throws(ImagePipelineError) -> CacheKey {
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

    /// - Throws: As ``FileIdentity/key(of:_:)``.
    func key(_ lookup: FileIdentity.Lookup) throws(ImagePipelineError) -> CacheKey {
        switch input {
        case .file(let path): try FileIdentity.key(of: path, lookup)
        case .bytes(let bytes, _): try (digest ?? ContentDigest(bytes)).key(lookup)
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

    /// - Throws: ``ImagePipelineError/unreadable(source:reason:)`` if it is to be remembered and was not computed.
    func key(_ lookup: FileIdentity.Lookup) throws(ImagePipelineError) -> CacheKey {
        let digest = known.withLock { known -> String? in
            if lookup == .remembered { return known }
            let digest = known ?? Hexadecimal.text(SHA256Digest.digest(of: bytes))
            known = digest
            return digest
        }
        guard let digest else { throw .unreadable(source: "bytes", reason: "they have not been read before") }
        return CacheKey("bytes", digest)
    }
}

/// A source whose identity takes a look at a file, or at all bytes.
package protocol FileBackedSource: IdentifiableSource {
    /// Returns the identity of the source, with all options that change the result.
    func identity(_ lookup: FileIdentity.Lookup) throws(ImagePipelineError) -> CacheKey
}

extension FileBackedSource {
    package func identity() throws(ImagePipelineError) -> CacheKey { try identity(.verified) }
}
