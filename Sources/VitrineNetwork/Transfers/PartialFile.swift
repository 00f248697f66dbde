#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// A file that the body of a response is brought to, and that waits for the rest of it when that breaks off: also when
/// the process is killed.
///
/// Beside it lies what is needed to ask for the rest (``PartialHead``), if that can be asked for. One at a time, of all
/// processes, has the file open: it holds a lock. After a crash of the machine what was surely on the medium counts
/// only, so the file is synchronized from time to time.
///
/// All calls block. Not for use from several threads at once, but for bodies in pieces.
package final class PartialFile: Sendable {
    struct State {
        /// Of a body that comes from beginning to end.
        var length: Int
        /// Of one that comes in pieces; nil for others.
        var pieces: PieceTable?
        /// nil if the rest of what is there cannot be asked for.
        var head: PartialHead?
        /// When to synchronize; nil while that is done.
        var nextCheckpoint: ContinuousClock.Instant?

        /// Whether it is time to synchronize, which is then the caller's.
        mutating func takesCheckpoint() -> Bool {
            guard head != nil, let time = nextCheckpoint, time <= .now else { return false }
            nextCheckpoint = nil
            return true
        }
    }

    /// Where the file is.
    package let path: String
    /// What its body is of, in the words of who loads it.
    package let identity: String
    let file: FileDescriptor
    let interval: Duration
    /// How many bytes to compare where there is no strong validator.
    private let overlap: Int
    /// Whether nothing is missing, so that it is of use without a head.
    private let isWhole: Bool
    let state: Locked<State>

    init(
        _ file: consuming FileDescriptor, identity: String, length: Int, pieces: PieceTable? = nil,
        head: PartialHead?, interval: Duration, overlap: Int, isWhole: Bool = false
    ) {
        path = file.path
        self.identity = identity
        self.file = file
        self.interval = interval
        self.overlap = overlap
        self.isWhole = isWhole
        state = Locked(State(length: length, pieces: pieces, head: head, nextCheckpoint: .now + interval))
    }

    /// How many bytes are there.
    package var length: Int { state.withLock { $0.pieces?.length ?? $0.length } }

    /// How to ask for the rest of what is there; nil if it has to be loaded from the beginning, or comes in pieces.
    package var continuation: ResumableDownload? { continuation(comparingAlways: 0) }

    /// The same, comparing this many of the last bytes, or all there are, also under a strong validator.
    func continuation(comparingAlways always: Int) -> ResumableDownload? {
        state.withLock { state in
            guard state.pieces == nil else { return nil }
            return state.head.flatMap {
                ResumableDownload(length: state.length, of: $0.response, comparing: overlap, always: always)
            }
        }
    }

    /// What is kept beside it.
    package var head: PartialHead? { state.withLock { $0.head } }

    // MARK: Writing

    /// Begins anew: what is appended from now on is the body of this response.
    ///
    /// - Parameters:
    ///   - response: Its head.
    ///   - source: Where it came from in the end, see ``PartialHead/source``.
    ///   - isWhole: Whether the bytes are those the server counts: false for a body that is decoded.
    package func begin(_ response: StoredResponse, from source: String, isWhole: Bool) throws(FileError) {
        try empty()
        guard isWhole, canContinue(response) else { return }
        let head = PartialHead(identity: identity, source: source, response: response)
        try write(head, isDurable: false)
        state.withLock { state in
            state.head = head
            state.nextCheckpoint = .now + interval
        }
    }

    /// Appends bytes.
    package func append(_ bytes: UnsafeRawBufferPointer) throws(FileError) {
        try file.write(bytes)
        let isDue = state.withLock { state in
            state.length += bytes.count
            return state.takesCheckpoint()
        }
        if isDue { try synchronize() }
    }

    /// Whether these bytes are there at an offset.
    func matches(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileError) -> Bool {
        guard let wanted = bytes.baseAddress else { return true }
        return try withUnsafeTemporaryAllocation(byteCount: bytes.count, alignment: 1) { buffer throws(FileError) in
            guard let base = buffer.baseAddress else { return false }
            var count = 0
            while count < bytes.count {
                let next = pread(file.number, base + count, bytes.count - count, off_t(offset + count))
                if next < 0, errno == EINTR { continue }
                guard next >= 0 else { throw FileError(operation: "pread", path: path, code: errno) }
                guard next > 0 else { return false }
                count += next
            }
            return memcmp(base, wanted, count) == 0
        }
    }

    /// Forgets what is there.
    package func empty() throws(FileError) {
        let (isEmpty, head) = state.withLock { state in
            defer {
                state.head = nil
                state.pieces = nil
                state.length = 0
            }
            return (state.length == 0 && state.pieces == nil, state.head)
        }
        // First, and for good, so that nothing of another body is ever taken for what this described.
        removeHead()
        if let head, head.isDurable { try synchronizeDirectory() }
        guard !isEmpty else { return }
        guard ftruncate(file.number, 0) == 0, lseek(file.number, 0, SEEK_SET) == 0 else {
            throw FileError(operation: "ftruncate", path: path, code: errno)
        }
    }

    /// Brings what is there to the medium, and notes that.
    package func synchronize() throws(FileError) {
        let (length, pieces) = state.withLock { ($0.length, $0.pieces) }
        try file.synchronize()
        let head = state.withLock { state -> PartialHead? in
            state.head?.durableLength = length
            state.head?.durablePieces = pieces?.lengths ?? []
            state.nextCheckpoint = .now + interval
            return state.head
        }
        if let head { try write(head, isDurable: true) }
    }

    /// Makes what an earlier session left, as far as it is trusted, a beginning that this one goes on with.
    func takeIntoSession() throws(FileError) {
        guard var head, let session = BootSession.identifier, head.session != session else { return }
        head.session = session
        try write(head, isDurable: false)
        state.withLock { [head] in $0.head = head }
    }

    /// Whether the rest of a body could be asked for.
    private func canContinue(_ response: StoredResponse) -> Bool {
        guard let rest = ResumableDownload(length: max(0, overlap) &+ 1, of: response, comparing: overlap) else { return false }
        // A date does not tell the variants of a resource from each other.
        return rest.overlap > 0 || response.entityTag != nil || !response.headers.contains("Vary")
    }

    // MARK: The end

    /// The numbers of the file itself, which it keeps under every name.
    package func numbers() throws(FileError) -> (device: UInt64, inode: UInt64) {
        let status = try file.status()
        return (UInt64(truncatingIfNeeded: status.st_dev), UInt64(truncatingIfNeeded: status.st_ino))
    }

    /// The bytes that are there.
    package func contents() throws(FileError) -> [UInt8] { try FileContents.read(path) }

    /// Makes the file appear at another path of the same file system, and gives it up.
    ///
    /// - Parameters:
    ///   - target: The path. A file that is replaced passes its permissions on.
    ///   - replaces: Whether there may be something; else ``FileError/alreadyExists(path:)``.
    ///   - isDurable: Whether to return only when file and name are on the medium.
    package func place(at target: String, replaces: Bool = true, isDurable: Bool = false) throws(FileError) {
        var replaced = stat()
        if replaces, stat(target, &replaced) == 0 {
            guard replaced.st_mode & S_IFMT != S_IFDIR else {
                throw .system(operation: "rename", path: target, code: EISDIR)
            }
            // What came over a network does not become another user's program.
            replaced.st_mode &= ~mode_t(0o7000)
            try file.takeOver(replaced, named: target)
        }
        if isDurable { try file.synchronize() }
        try FileRename.move(path, to: target, replaces: replaces)
        removeHead()
        unlock()
        if isDurable { try synchronizeDirectory() }
    }

    /// Gives the file up: it stays if the rest can be asked for later, or nothing is missing.
    package func release() {
        if !isWhole, continuation == nil, pieces == nil {
            discard()
        } else {
            unlock()
        }
    }

    /// Removes the file.
    package func discard() {
        removeHead()
        unlink(path)
        unlock()
    }

    /// Not left to the descriptor's end, which comes whenever the last reference goes.
    private func unlock() { flock(file.number, LOCK_UN) }

    private func removeHead() {
        unlink(Self.headPath(path))
        unlink(Self.nextHeadPath(path))
    }

    private func synchronizeDirectory() throws(FileError) {
        try FileDescriptor(opening: FilePath.parent(of: path), flags: O_RDONLY | O_DIRECTORY).synchronize()
    }

    /// Puts what is known of the body beside it, in one step.
    ///
    /// Not by `AtomicFile`, whose temporary files have names by chance: one that a killed process leaves would stay. As
    /// this file is locked nobody else writes under the one name.
    func write(_ head: PartialHead, isDurable: Bool) throws(FileError) {
        let next = Self.nextHeadPath(path)
        unlink(next)
        do throws(FileError) {
            // For its owner only, as fields of a response may be secrets.
            let file = try FileDescriptor(
                opening: next, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
            let bytes = head.bytes()
            try bytes.withUnsafeBytes { bytes in Result { () throws(FileError) in try file.write(bytes) } }.get()
            if isDurable { try file.synchronize() }
            try FileRename.move(next, to: Self.headPath(path), replaces: true)
        } catch {
            unlink(next)
            throw error
        }
        if isDurable { try synchronizeDirectory() }
    }
}

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
