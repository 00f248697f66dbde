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
package struct DownloadRecord: Sendable, Codable {
    let id: String
    /// Its directory is named from the root.
    package var request: DownloadRequest
    package var status: DownloadStatus
    /// Its place in the line; lower ones come first.
    var position: Double
    /// Which of the addresses is tried: 0 for the first, then the mirrors.
    var source = 0
    /// Later changes of the list have higher ones.
    var revision: Int
    /// Set before the whole file gets its name, so that the next run of the program knows whether it did.
    var placing: Placing?

    /// A file that is about to get a name.
    package struct Placing: Sendable, Codable {
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
    package var url: URL {
        request.mirrors.indices.contains(source &- 1) ? request.mirrors[source &- 1] : request.url
    }

    /// The host that is asked.
    var host: String { url.host()?.lowercased() ?? "" }

    /// Whether an identifier is one: it is part of the name of a file.
    static func isIdentifier(_ id: String) -> Bool {
        (1...64).contains(id.utf8.count)
            && id.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == UInt8(ascii: "-")
            }
    }

    /// The record with numbers that can be computed with, whatever the journal holds.
    func tamed() -> DownloadRecord {
        var record = self
        record.position = position.isFinite ? min(max(-1e12, position), 1e12) : 0
        record.source = (0...request.mirrors.count).contains(source) ? source : 0
        record.revision = (0...Self.highestRevision).contains(revision) ? revision : 0
        return record
    }

    /// Far more changes than a list will ever have.
    static let highestRevision = 1 << 52

    /// Where its file goes.
    var directory: String { request.directory ?? "/" }

    /// Where what is there of it lies: beside its file, hidden.
    package var partPath: String { PartialFile.path(for: FilePath.join(directory, "." + id)) }
}
