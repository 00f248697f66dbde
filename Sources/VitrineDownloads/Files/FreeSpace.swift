#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// How much a file system has left.
enum FreeSpace {
    /// The bytes this user may still write below a directory; nil if the system does not tell.
    static func bytes(at directory: String) -> Int? {
        var status = statvfs()
        guard PathText.withSystemPath(directory, failure: -1, { statvfs($0, &status) }) == 0 else { return nil }
        let (bytes, isTooMany) = Int(clamping: UInt64(status.f_bavail)).multipliedReportingOverflow(
            by: Int(clamping: UInt64(status.f_frsize)))
        return isTooMany ? .max : bytes
    }
}
