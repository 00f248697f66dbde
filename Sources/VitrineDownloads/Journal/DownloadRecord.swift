#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineNetwork

/// What is kept of a download.
struct DownloadRecord: Sendable, Codable {
    let id: String
    /// Its directory is named from the root.
    var request: DownloadRequest
    var status: DownloadStatus
    /// Its place in the line; lower ones come first.
    var position: Double
    /// Which of the addresses is tried: 0 for the first, then the mirrors.
    var source = 0
    /// Later changes of the list have higher ones.
    var revision: Int
    /// Set before the whole file gets its name, so that the next run of the program knows whether it did.
    var placing: Placing?

    /// A file that is about to get a name.
    struct Placing: Sendable, Codable {
        let path: String
        /// The file's own numbers, which it keeps under every name.
        let device: UInt64, inode: UInt64
        let length: Int

        /// Whether the file is there under that name. Blocks.
        var isDone: Bool {
            var status = stat()
            return lstat(path, &status) == 0 && UInt64(truncatingIfNeeded: status.st_dev) == device
                && UInt64(truncatingIfNeeded: status.st_ino) == inode && Int(status.st_size) == length
        }
    }

    /// The address that is tried.
    var url: URL {
        request.mirrors.indices.contains(source - 1) ? request.mirrors[source - 1] : request.url
    }

    /// The host that is asked.
    var host: String { url.host()?.lowercased() ?? "" }

    /// Where its file goes.
    var directory: String { request.directory ?? "/" }

    /// Where what is there of it lies: beside its file, hidden.
    var partPath: String { PartialFile.path(for: FilePath.join(directory, "." + id)) }
}
