#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// Deletes and lists directories with all that is in them.
enum FileTree {
    /// Deletes what is at a path and below it, as far as it can be. Links are deleted, not followed.
    static func remove(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            unlink(path)
            return
        }
        for name in (try? Directory.names(in: path)) ?? [] { remove(path + "/" + name) }
        rmdir(path)
    }

    /// When the file was last changed, in seconds since 1970; nil if there is none.
    static func changed(_ path: String) -> Int? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return Int(status.modified.tv_sec)
    }
}
