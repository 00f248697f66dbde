import Synchronization
import VitrineCore
import VitrineNetwork

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A directory whose files are sources. Its own path may contain links, paths below it may not.
struct LocalRoot: Sendable {
    struct File: Sendable {
        let bytes: [UInt8]
        let version: String
        let lastModified: String
    }

    let path: String
    /// Whether other machines see the same files, whose versions then have no numbers of this machine.
    let isShared: Bool

    init(path: String, isShared: Bool) { (self.path, self.isShared) = (path, isShared) }

    func version(of names: [String]) throws(RequestError) -> String {
        let descriptor = try open(names)
        defer { close(descriptor) }
        return version(of: try Self.status(descriptor))
    }

    enum Reading: Sendable {
        case file(File)
        /// The bytes of the file that were not available.
        case refused(Int)
    }

    /// Returns a regular file.
    ///
    /// - Parameter reserve: Returns whether its bytes may be read.
    /// - Throws: ``RequestError`` 404 if there is none, 413 above the limit.
    func read(
        _ names: [String], upTo limit: ByteCount, _ reserve: (Int) -> Bool
    ) throws(RequestError) -> Reading {
        let descriptor = try open(names)
        defer { close(descriptor) }
        let status = try Self.status(descriptor)
        guard Int(status.st_size) <= limit.bytes else { throw .sourceTooLarge(limit) }
        guard reserve(Int(status.st_size)) else { return .refused(Int(status.st_size)) }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var count = 0
        while count < bytes.count {
            let read = bytes.withUnsafeMutableBytes { buffer in
                pread(descriptor, buffer.baseAddress! + count, buffer.count - count, off_t(count))
            }
            if read > 0 {
                count += read
            } else if read == 0 || errno != EINTR {
                throw RequestError(502, code: "source-failed", reason: "the source could not be read")
            }
        }
        return .file(
            File(bytes: bytes, version: version(of: status), lastModified: Self.lastModified(status)))
    }

    /// Opens a file name by name, without following a link, so that no name leads out of the root.
    func open(_ names: [String]) throws(RequestError) -> Int32 {
        var directory = openDirectory(path)
        guard directory >= 0 else { throw .sourceNotFound }
        for (index, name) in names.enumerated() {
            let isLast = index == names.count - 1
            // O_NONBLOCK: opening a FIFO without a writer must not wait for ever.
            let flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (isLast ? O_NONBLOCK : O_DIRECTORY)
            // Bytes that are not UTF-8 are private-use characters in the text.
            let bytes = FileName.bytes(of: name).map { CChar(truncatingIfNeeded: $0) } + [0]
            var next: Int32
            repeat { next = openat(directory, bytes, flags) } while next < 0 && errno == EINTR
            close(directory)
            guard next >= 0 else { throw .sourceNotFound }
            directory = next
        }
        return directory
    }

    private func openDirectory(_ path: String) -> Int32 {
        var descriptor: Int32
        let flags = O_RDONLY | O_CLOEXEC | O_DIRECTORY
        repeat { descriptor = openFile(path, flags) } while descriptor < 0 && errno == EINTR
        return descriptor
    }

    static func status(_ descriptor: Int32) throws(RequestError) -> stat {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { throw .sourceNotFound }
        return status
    }

    static func lastModified(_ status: stat) -> String { HTTPDate.text(Int64(status.modificationTime.tv_sec)) }

    func version(of status: stat) -> String {
        let time = status.modificationTime
        if isShared { return "shared:\(status.st_size).\(time.tv_sec).\(time.tv_nsec)" }
        return "file:\(status.st_dev).\(status.st_ino).\(status.st_size).\(time.tv_sec).\(time.tv_nsec)"
    }
}

/// `open(2)`, whose name the methods above hide.
private func openFile(_ path: String, _ flags: Int32) -> Int32 { open(path, flags) }

extension stat {
    fileprivate var modificationTime: timespec {
        #if canImport(Darwin)
        st_mtimespec
        #else
        st_mtim
        #endif
    }
}

/// The versions of local sources that were looked at lately.
final class LocalVersions: Sendable {
    private struct Known {
        let version: String
        let looked: Duration
        let end: Duration
    }

    private static let limit = 4_096
    private let known = Mutex<[CacheKey: Known]>([:])

    func add(_ version: String, of key: CacheKey, at looked: Duration, until end: Duration) {
        known.withLock { known in
            if known.count >= Self.limit, known[key] == nil {
                known = known.filter { $0.value.end > looked }
                if known.count >= Self.limit { known = [:] }
            }
            // A look that began later may have ended earlier.
            if let last = known[key], last.looked > looked, last.looked <= end { return }
            known[key] = Known(version: version, looked: looked, end: end)
        }
    }

    /// Until when the source counts as unchanged; nil if that has passed, or if it had another version.
    func end(of version: String, of key: CacheKey, now: Duration) -> Duration? {
        known.withLock { known in
            // Also not after the clock was set back.
            guard let last = known[key], last.end > now, last.looked <= now, last.version == version else { return nil }
            return last.end
        }
    }
}
