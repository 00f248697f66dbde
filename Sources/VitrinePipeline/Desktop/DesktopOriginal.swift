import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A file as the desktop's thumbnail cache knows it: its address and the version of it that was found.
///
/// Take it **before** the file is decoded: a thumbnail is stored only while the file is still that version.
public struct DesktopOriginal: Sendable, Hashable {
    /// The path as it was given.
    public let path: String
    /// The address, which thumbnails are named after.
    public let uri: String
    /// When the content last changed, in seconds since 1970.
    public let modified: Int
    /// Bytes.
    public let count: Int
    private let nanoseconds: Int
    private let inode: UInt64

    /// A look at a file. Blocks.
    ///
    /// - Returns: nil unless it is a regular file that this user can read; neither thumbnails nor failures of other
    ///   files are looked up or kept (standard, "Permissions").
    public init?(path: String) {
        var status = stat()
        guard !path.isEmpty, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, access(path, R_OK) == 0,
            status.modified.tv_sec >= 0
        else { return nil }
        self.path = path
        uri = FileURI.text(of: path)
        modified = Int(status.modified.tv_sec)
        nanoseconds = Int(status.modified.tv_nsec)
        count = Int(status.st_size)
        inode = UInt64(status.st_ino)
    }

    /// The name of the file's thumbnails.
    var thumbnailName: String { Self.name(uri) }

    /// The names its thumbnails may have in a directory of shared ones.
    ///
    /// Programs read the standard in two ways: as the digest of the name, or of the name as a relative address.
    var sharedNames: [String] {
        let name = FilePath.name(of: FileURI.absolute(path))
        return [name, "./" + FileURI.escaped(name)].map(Self.name)
    }

    /// The values of `Thumb::URI` that are valid in a shared thumbnail.
    var sharedURIs: Set<String> {
        let name = FilePath.name(of: FileURI.absolute(path))
        let escaped = FileURI.escaped(name)
        return [name, escaped, "./" + name, "./" + escaped]
    }

    private static func name(_ text: String) -> String {
        Hexadecimal.text(MD5Digest.digest(of: PathText.bytes(of: text))) + ".png"
    }
}
