#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension FileDescriptor {
    /// Gives the file the permissions of one it is to replace, and its owner as far as the process may set it.
    ///
    /// - Parameters:
    ///   - replaced: What the system knows of the other file.
    ///   - path: What errors say the file is.
    package func takeOver(_ replaced: stat, named path: String) throws(FileError) {
        let own = try status()
        if own.st_uid != replaced.st_uid || own.st_gid != replaced.st_gid {
            // Only root may give files away. Where it is refused the file is the writer's, as with any editor.
            if fchown(number, replaced.st_uid, replaced.st_gid) != 0 { _ = errno }
        }
        let mode = replaced.st_mode & 0o7777
        guard own.st_mode & 0o7777 != mode || own.st_uid != replaced.st_uid else { return }
        guard fchmod(number, mode) == 0 else { throw FileError(operation: "fchmod", path: path, code: errno) }
    }
}
