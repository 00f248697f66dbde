import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

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
