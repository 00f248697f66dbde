import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension DesktopThumbnailCache {
    /// The directory of thumbnails that lie beside their files ("Shared Thumbnail Repositories").
    static let sharedDirectoryName = ".sh_thumbnails"

    /// Whether a file lies among thumbnails, also through symbolic links: such files never have thumbnails.
    func isThumbnail(_ path: String) -> Bool {
        let roots = [FileURI.absolute(directory), FilePath.resolved(directory)].compactMap(\.self)
        return [FileURI.absolute(path), FilePath.resolved(path)].compactMap(\.self).contains { path in
            path.split(separator: "/").contains { $0 == Self.sharedDirectoryName }
                || roots.contains { path.hasPrefix($0 + "/") }
        }
    }
}
