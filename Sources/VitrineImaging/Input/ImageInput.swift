#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Where the bytes of a picture come from.
public enum ImageInput: Sendable {
    /// A regular file. Opened when it is read, never kept open.
    case file(String)
    /// Bytes in memory, with the name that errors give them.
    case bytes([UInt8], name: String = "data")

    /// A file by URL. Traps unless it is a `file:` URL; VitrineNetwork loads others.
    public static func file(_ url: URL) -> ImageInput {
        precondition(url.isFileURL, "\(url) is not a file URL")
        return .file(url.path)
    }

    /// Bytes in memory, with the name that errors give them.
    public static func data(_ data: Data, name: String = "data") -> ImageInput { .bytes([UInt8](data), name: name) }

    /// The path, or the name given with the bytes: what errors call the input.
    public var name: String {
        switch self {
        case .file(let path): path
        case .bytes(_, let name): name
        }
    }
}
