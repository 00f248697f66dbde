/// One change to a file system, as recorded.
package enum FileOperation: Sendable {
    case create(String)
    case makeDirectory(String)
    case rename(from: String, to: String)
    case link(from: String, to: String)
    case symbolicLink(String, target: String)
    case unlink(String)
    /// At an offset, or behind the last write without one.
    case write(String, offset: Int?, bytes: [UInt8])
    case truncate(String, size: Int)
    /// The file's contents, and every change of names before, are on the disk.
    case synchronize(String)
}
