#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

extension PartialFile {
    private static let suffix = ".vitrine-part", headSuffix = ".vitrine-head", nextSuffix = ".vitrine-next"

    /// Where the part file for a destination is: beside it.
    package static func path(for destination: String) -> String {
        let directory = FilePath.parent(of: destination)
        let name = FilePath.name(of: destination)
        let isShort = name.utf8.count + suffix.utf8.count <= FileName.maximumLength
        return FilePath.join(directory, (isShort ? name : FileName.sha256(name)) + suffix)
    }

    /// Whether a name is one of those that part files and what lies beside them have.
    package static func isName(_ name: String) -> Bool {
        [suffix, headSuffix, nextSuffix].contains { name.hasSuffix($0) }
    }

    /// Where what is known of its body is.
    package static func headPath(_ path: String) -> String {
        path.hasSuffix(suffix) ? path.dropLast(suffix.count) + headSuffix : path + headSuffix
    }

    /// Where it is written before it replaces what was known.
    static func nextHeadPath(_ path: String) -> String {
        path.hasSuffix(suffix) ? path.dropLast(suffix.count) + nextSuffix : path + nextSuffix
    }

    /// Opens or makes a part file, with what is there and still counts.
    ///
    /// - Parameters:
    ///   - path: Where; its directory must exist. ``path(for:)`` names one.
    ///   - identity: What the body is of. A file with the body of something else is emptied.
    ///   - interval: How much time's work a crash of the machine may cost at most.
    ///   - overlap: How many of the last bytes to compare with what comes, where the source has no strong validator; 0
    ///     to go on only under one.
    /// - Returns: nil if somebody has it open, in this process or another.
    /// - Throws: ``FileError/untrusted(path:reason:)`` if it is not the user's own or no regular file, and others.
    package static func open(
        _ path: String, identity: String, synchronizingEvery interval: Duration = .seconds(10),
        comparing overlap: Int = 0
    ) throws(FileError) -> PartialFile? {
        guard let file = try lock(path, flags: O_RDWR | O_CREAT) else { return nil }
        return try read(file, identity: identity, interval: interval, overlap: overlap)
    }

    /// Opens a file that somebody else has brought and of which nothing is missing.
    ///
    /// - Returns: nil if somebody has it open, in this process or another.
    /// - Throws: ``FileError/notFound(path:)`` if there is none, and as ``open(_:identity:synchronizingEvery:comparing:)``.
    package static func openWhole(_ path: String, identity: String) throws(FileError) -> PartialFile? {
        guard let file = try lock(path, flags: O_RDWR) else { return nil }
        let length = Int(try file.status().st_size)
        return PartialFile(
            file, identity: identity, length: length, head: nil, interval: .zero, overlap: 0, isWhole: true)
    }

    private static func lock(_ path: String, flags: Int32) throws(FileError) -> FileDescriptor? {
        // Between opening and locking, the one who had it may have renamed or removed it.
        for _ in 0..<100 {
            let file = try FileDescriptor(opening: path, flags: flags | O_NOFOLLOW | O_NONBLOCK)
            guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else {
                if errno == EWOULDBLOCK { return nil }
                throw FileError(operation: "flock", path: path, code: errno)
            }
            let status = try file.status()
            guard isAt(path, status) else { continue }
            guard isOwn(status) else { throw .untrusted(path: path, reason: "it is not this user's own file") }
            return file
        }
        return nil
    }

    private static func read(
        _ file: consuming FileDescriptor, identity: String, interval: Duration, overlap: Int
    ) throws(FileError) -> PartialFile {
        let size = Int(try file.status().st_size)
        var head = head(for: file.path)
        if let known = head, known.identity != identity { head = nil }
        if let known = head, !known.durablePieces.isEmpty {
            if let pieces = try pieces(of: file, known) {
                let result = PartialFile(
                    file, identity: identity, length: 0, pieces: pieces, head: known, interval: interval,
                    overlap: overlap)
                try result.note(pieces)
                try result.takeIntoSession()
                return result
            }
            head = nil
        }
        let length = head?.trustedLength(ofFileWith: size) ?? 0
        if length < size, ftruncate(file.number, off_t(length)) != 0 {
            throw FileError(operation: "ftruncate", path: file.path, code: errno)
        }
        guard lseek(file.number, off_t(length), SEEK_SET) == off_t(length) else {
            throw FileError(operation: "lseek", path: file.path, code: errno)
        }
        // What is there does not fit its head: nothing can be said about it.
        if let known = head, length > 0,
            ResumableDownload(length: length, of: known.response, comparing: overlap) == nil
        {
            head = nil
        }
        let result = PartialFile(
            file, identity: identity, length: length, head: head, interval: interval, overlap: overlap)
        if head == nil { try result.empty() } else { try result.takeIntoSession() }
        return result
    }

    /// What lies beside a part file, if it is one's own and whole.
    private static func head(for path: String) -> PartialHead? {
        let path = headPath(path)
        guard let file = try? FileDescriptor(opening: path, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK),
            let status = try? file.status(), isOwn(status), (1...largestHead).contains(Int(status.st_size))
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = bytes.withUnsafeMutableBytes { buffer in (try? file.read(into: buffer)) ?? 0 }
        return count == bytes.count ? PartialHead(bytes: bytes) : nil
    }

    private static let largestHead = 1 << 20

    /// A file that another user could have made must not become the beginning of what this one loads.
    private static func isOwn(_ status: stat) -> Bool {
        status.st_mode & S_IFMT == S_IFREG && status.st_uid == geteuid() && status.st_nlink <= 1
    }

    private static func isAt(_ path: String, _ status: stat) -> Bool {
        var found = stat()
        return lstat(path, &found) == 0 && found.st_dev == status.st_dev && found.st_ino == status.st_ino
    }

    /// Removes part files of a directory that nobody has gone on with for a while. Those that are open are not touched.
    ///
    /// - Returns: How many were removed.
    @discardableResult
    package static func removeAbandoned(in directory: String, olderThan age: Duration) throws(FileError) -> Int {
        let limit = Int((WallClock.system.now - age).components.seconds)
        var removed = 0
        for name in try Directory.names(ofFilesIn: directory) where name.hasSuffix(suffix) {
            let path = FilePath.join(directory, name)
            guard let file = try? FileDescriptor(opening: path, flags: O_RDWR | O_NOFOLLOW | O_NONBLOCK),
                let status = try? file.status(), isOwn(status), Int(status.modified.tv_sec) <= limit,
                flock(file.number, LOCK_EX | LOCK_NB) == 0, isAt(path, status)
            else { continue }
            unlink(headPath(path))
            unlink(nextHeadPath(path))
            if unlink(path) == 0 { removed += 1 }
        }
        return removed
    }
}
