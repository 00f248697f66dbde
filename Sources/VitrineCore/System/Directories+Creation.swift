#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension Directories {
    /// The first line of `CACHEDIR.TAG` (Cache Directory Tagging Specification 0.6): backup programs leave tagged
    /// directories out.
    static let cacheTagSignature = "Signature: 8a477f597d28d172789f06886806bc55"

    /// A directory of caches by this name, made if it is missing and tagged as one (R45). Blocks.
    ///
    /// - Parameter name: One component; ``FileName/escaped(_:)`` makes it safe.
    /// - Returns: Its path.
    public func cacheDirectory(for name: String) throws(FileError) -> String {
        let path = FilePath.join(caches, FileName.escaped(name))
        try Directory.create(path)
        try Self.tagCacheDirectory(path)
        return path
    }

    /// Writes `CACHEDIR.TAG` into a directory, unless there is one (R45). Blocks.
    public static func tagCacheDirectory(_ path: String) throws(FileError) {
        let tag = FilePath.join(path, "CACHEDIR.TAG")
        guard access(tag, F_OK) != 0 else { return }
        let text = """
            \(cacheTagSignature)
            # This directory holds a cache made by Vitrine. It can be deleted at any time.
            # About this file: https://bford.info/cachedir/

            """
        do throws(FileError) {
            try AtomicFile.write(Array(text.utf8), to: tag, options: .doNotReplace)
        } catch .alreadyExists {
            // Another process was quicker.
        }
    }

    /// A directory of durable files by this name, made if it is missing. Blocks.
    public func dataDirectory(for name: String) throws(FileError) -> String {
        let path = FilePath.join(data, FileName.escaped(name))
        try Directory.create(path, isDurable: true)
        return path
    }

    /// A directory by this name for sockets and locks, which only this user can enter. Blocks.
    ///
    /// Without ``runtime`` it lies in `<temporary>/vitrine-<user id>`. Since anyone can make directories there, what is
    /// found is used only if it is this user's, no link, and closed to others.
    ///
    /// - Throws: ``FileError/untrusted(path:reason:)`` if it is someone else's or open to others.
    public func runtimeDirectory(for name: String) throws(FileError) -> String {
        let parent: String
        if let runtime {
            parent = runtime
            try Directory.create(parent)
        } else {
            parent = FilePath.join(temporary, "vitrine-\(geteuid())")
            try Directory.create(parent)
            try Self.checkPrivate(parent)
        }
        let path = FilePath.join(parent, FileName.escaped(name))
        try Directory.create(path)
        try Self.checkPrivate(path)
        return path
    }

    /// Throws unless the path is a directory of this user that nobody else can enter.
    package static func checkPrivate(_ path: String) throws(FileError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw FileError(operation: "lstat", path: path, code: errno) }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw .untrusted(path: path, reason: "it is no directory") }
        guard status.st_uid == geteuid() else { throw .untrusted(path: path, reason: "it belongs to another user") }
        guard status.st_mode & 0o077 == 0 else { throw .untrusted(path: path, reason: "others can enter it") }
    }
}
