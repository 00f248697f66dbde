/// How ``NetworkLoader/download(_:to:options:progress:)`` treats the file.
public struct DownloadOptions: Sendable {
    /// Whether a file at the destination is replaced. If not, one that is there is
    /// `FileError.alreadyExists`. Default: true.
    public var replacesFile = true
    /// Whether a download that broke off is gone on with, at this and a later call. Default: true.
    public var resumes = true
    /// Whether the call returns only when file and name are on the medium. Default: false.
    public var isDurable = false
    /// How many connections bring the file at once, each pieces of its own. More than one is of use where each is
    /// slow; it is only done where the server gives parts under a strong validator, for files of two megabytes and
    /// more. Default: 1.
    public var connections = 1
    /// What is being loaded, where the address does not say so for good, as with signed ones: what is there of a
    /// download is gone on with by a request of the same identity. Default: the request's URL.
    public var identity: String?

    public init() {}
}

/// A file that has been downloaded.
public struct DownloadedFile: Sendable, Hashable {
    /// Where it is, symbolic links resolved.
    public let path: String
    /// What the server said of the whole, also where it came in parts: status 200, the whole's length.
    public let head: HTTPResponseHead
    /// Its bytes.
    public let length: Int
    /// How many of them were there from an earlier call.
    public let resumedLength: Int
    /// How many times what was there had to be given up, as the source had changed.
    public let restarts: Int
}
