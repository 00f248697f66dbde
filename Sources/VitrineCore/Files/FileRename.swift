import CVitrineFileSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Gives files another name.
package enum FileRename {
    /// Moves a file to another path of the same file system, in one step.
    ///
    /// - Parameter replaces: Whether there may be something at the path; else ``FileError/alreadyExists(path:)``.
    package static func move(_ path: String, to target: String, replaces: Bool) throws(FileError) {
        let code = replaces ? (rename(path, target) == 0 ? 0 : errno) : cfilesystem_rename_exclusive(path, target)
        guard code == 0 else { throw FileError(operation: "rename", path: target, code: code) }
    }
}
