#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Follows symbolic links.
package enum SymbolicLink {
    /// What a path stands for after following links at its end, whether or not the last target exists.
    ///
    /// - Throws: `ELOOP` after 40 links, the kernel's own limit (path_resolution(7)).
    package static func target(of path: String) throws(FileError) -> String {
        var path = path
        for _ in 0..<40 {
            guard let next = try link(at: path) else { return path }
            path = FilePath.isAbsolute(next) ? next : FilePath.join(FilePath.parent(of: path), next)
        }
        throw .system(operation: "readlink", path: path, code: ELOOP)
    }

    /// What the link at the path says; nil if there is no link there.
    private static func link(at path: String) throws(FileError) -> String? {
        var code: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer, count in
            let result = buffer.withMemoryRebound(to: CChar.self) { text in
                text.baseAddress.map { readlink(path, $0, text.count) } ?? 0
            }
            if result < 0 { code = errno }
            count = max(0, result)
        }
        switch code {
        case 0: return PathText.text(of: bytes)
        case EINVAL, ENOENT: return nil
        default: throw FileError(operation: "readlink", path: path, code: code)
        }
    }
}
