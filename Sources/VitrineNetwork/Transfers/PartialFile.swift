#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// A file that receives the body of a response and can be resumed, also after the process was killed.
///
/// A ``PartialHead`` beside the file contains the data for a resumption, and ``PartChecksums`` tell the received bytes
/// from others: bytes that changed meanwhile, and all bytes after them, are received again. A lock ensures that one
/// process at a time opens the file. After a crash of the system, only synchronized bytes are trusted, so the file is
/// synchronized regularly.
///
/// All calls block. Several threads may use a file only for a body in pieces.
package final class PartialFile: Sendable {
    struct State {
        /// The received bytes of an undivided body.
        var length: Int
        /// The pieces of a divided body.
        var pieces: PieceTable?
        /// The metadata; nil if the body cannot be resumed.
        var head: PartialHead?
        /// The checksums of the received bytes; nil if the body cannot be resumed.
        var checksums: PartChecksums?
        /// The time of the next synchronization; nil while one is running.
        var nextCheckpoint: ContinuousClock.Instant?

        /// Returns whether the caller has to synchronize now.
        mutating func takesCheckpoint() -> Bool {
            guard head != nil, let time = nextCheckpoint, time <= .now else { return false }
            nextCheckpoint = nil
            return true
        }
    }

    /// The path of the file.
    package let path: String
    /// The identity of the body, as the caller defines it.
    package let identity: String
    let file: FileDescriptor
    private let interval: Duration
    /// The number of bytes to compare without a strong validator.
    private let overlap: Int
    /// Whether the file is complete, so that it needs no head.
    private let isWhole: Bool
    let state: Locked<State>

    init(
        _ file: consuming FileDescriptor, identity: String, state: State, interval: Duration, overlap: Int,
        isWhole: Bool = false
    ) {
        path = file.path
        self.identity = identity
        self.file = file
        self.interval = interval
        self.overlap = overlap
        self.isWhole = isWhole
        var state = state
        state.nextCheckpoint = .now + interval
        self.state = Locked(state)
    }

    /// The number of received bytes.
    package var length: Int { state.withLock { $0.pieces?.length ?? $0.length } }

    /// The continuation of the download; nil if it must start over, or if the body is divided.
    package var continuation: ResumableDownload? { continuation(comparingAlways: 0) }

    /// Returns the continuation that compares up to this number of bytes also under a strong validator.
    func continuation(comparingAlways always: Int) -> ResumableDownload? {
        state.withLock { state in
            guard state.pieces == nil else { return nil }
            return state.head.flatMap {
                ResumableDownload(length: state.length, of: $0.response, comparing: overlap, always: always)
            }
        }
    }

    /// Whether the received bytes are of use to a later request.
    package var isResumable: Bool { continuation != nil || pieces != nil }

    var checksums: PartChecksums? { state.withLock { $0.checksums } }

    /// The metadata beside the file.
    package var head: PartialHead? { state.withLock { $0.head } }

    // MARK: Writing

    /// Empties the file for the body of a response.
    ///
    /// - Parameters:
    ///   - response: The head of the response.
    ///   - source: The final URL.
    ///   - isWhole: Whether the bytes are those that the server counts: false for a body that is decoded.
    package func begin(_ response: StoredResponse, from source: PartSource, isWhole: Bool) throws(FileError) {
        try empty()
        guard isWhole, canContinue(response) else { return }
        let head = PartialHead(identity: identity, source: source, response: response)
        let checksums = try PartChecksums.create(Self.checksumsPath(path))
        try write(head, isDurable: false)
        state.withLock { state in
            (state.head, state.checksums) = (head, checksums)
            state.nextCheckpoint = .now + interval
        }
    }

    /// Appends bytes.
    package func append(_ bytes: UnsafeRawBufferPointer) throws(FileError) {
        try file.write(bytes)
        let (length, checksums) = state.withLock { ($0.length, $0.checksums) }
        // After the bytes, so that a killed process at worst receives them again.
        try checksums?.add(bytes, at: length, inRun: 0, from: 0)
        let isDue = state.withLock { state in
            state.length += bytes.count
            return state.takesCheckpoint()
        }
        if isDue { try synchronize() }
    }

    /// Returns whether the file contains these bytes at an offset.
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

    /// Removes the received bytes.
    package func empty() throws(FileError) {
        let (isEmpty, head) = state.withLock { state in
            defer {
                state.head = nil
                state.checksums = nil
                state.pieces = nil
                state.length = 0
            }
            return (state.length == 0 && state.pieces == nil, state.head)
        }
        // Remove the head first and durably, so that it never describes another body.
        removeHead()
        if let head, head.isDurable { try synchronizeDirectory() }
        guard !isEmpty else { return }
        guard ftruncate(file.number, 0) == 0, lseek(file.number, 0, SEEK_SET) == 0 else {
            throw FileError(operation: "ftruncate", path: path, code: errno)
        }
    }

    /// Synchronizes the received bytes and records their number.
    package func synchronize() throws(FileError) {
        let (length, pieces, checksums) = state.withLock { ($0.length, $0.pieces, $0.checksums) }
        let sums = checksums?.lastSums(ofRuns: pieces?.count ?? 1) ?? []
        try file.synchronize()
        try checksums?.synchronize()
        let head = state.withLock { state -> PartialHead? in
            state.head?.durableLength = length
            state.head?.durablePieces = pieces?.lengths ?? []
            state.head?.durableSums = sums
            state.nextCheckpoint = .now + interval
            return state.head
        }
        if let head { try write(head, isDurable: true) }
    }

    /// Takes over the trusted bytes of an earlier session.
    private func takeIntoSession() throws(FileError) {
        guard var head, let session = BootSession.identifier, head.session != session else { return }
        head.session = session
        try write(head, isDurable: false)
        state.withLock { [head] in $0.head = head }
    }

    /// Returns whether a body can be resumed.
    private func canContinue(_ response: StoredResponse) -> Bool {
        let length = max(0, overlap) &+ 1
        guard let rest = ResumableDownload(length: length, of: response, comparing: overlap) else { return false }
        // A date does not distinguish the variants of a resource.
        return rest.overlap > 0 || response.entityTag != nil || !response.headers.contains("Vary")
    }

    // MARK: The end

    /// Returns device and inode of the file, which do not depend on its name.
    package func numbers() throws(FileError) -> (device: UInt64, inode: UInt64) {
        let status = try file.status()
        return (UInt64(truncatingIfNeeded: status.st_dev), UInt64(truncatingIfNeeded: status.st_ino))
    }

    /// Returns the received bytes.
    package func contents() throws(FileError) -> [UInt8] { try FileContents.read(path) }

    /// Moves the file to another path of the same file system and releases it.
    ///
    /// - Parameters:
    ///   - target: The path. A replaced file passes on its permissions.
    ///   - replaces: Whether a file may be replaced; otherwise it is ``FileError/alreadyExists(path:)``.
    ///   - isDurable: Whether to return only after file and name have been synchronized.
    package func place(at target: String, replaces: Bool = true, isDurable: Bool = false) throws(FileError) {
        let change = { () throws(FileError) in
            try self.move(to: target, replaces: replaces, isDurable: isDurable)
            self.removeHead()
            self.unlock()
        }
        guard isDurable else { return try change() }
        try FileRename.durably(at: target, change)
    }

    private func move(to target: String, replaces: Bool, isDurable: Bool) throws(FileError) {
        switch replaces ? try ReplacedItem.at(target) : .nothing(target) {
        case .file(target, var replaced):
            // A download does not inherit setuid, setgid or the sticky bit.
            replaced.st_mode &= ~mode_t(0o7000)
            try file.takeOver(replaced, named: target)
            try rename(to: target, replaces: true, isDurable: isDurable)
        case .nothing(target): try rename(to: target, replaces: replaces, isDurable: isDurable)
        case .file, .nothing, .stream:
            // Behind a link, perhaps on another file system, or into a FIFO or device.
            let writer = try AtomicFileWriter(path: target, options: isDurable ? .durable : [])
            try writer.append(contentsOf: path)
            try writer.commit()
            unlink(path)
        }
    }

    private func rename(to target: String, replaces: Bool, isDurable: Bool) throws(FileError) {
        if isDurable { try file.synchronize() }
        try FileRename.move(path, to: target, replaces: replaces)
    }

    /// Releases the file. It is kept if it can be resumed or is complete, and removed otherwise.
    package func release() {
        if !isWhole, !isResumable {
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

    /// Unlocks explicitly, because the descriptor is closed only with its last reference.
    private func unlock() { flock(file.number, LOCK_UN) }

    private func removeHead() {
        unlink(Self.headPath(path))
        unlink(Self.nextHeadPath(path))
        unlink(Self.checksumsPath(path))
    }

    private func synchronizeDirectory() throws(FileError) {
        try FileDescriptor(opening: FilePath.parent(of: path), flags: O_RDONLY | O_DIRECTORY).synchronize()
    }

    /// Writes the metadata atomically.
    ///
    /// The temporary file has a fixed name, so that a killed process leaves at most one. The lock of this file protects
    /// it.
    func write(_ head: PartialHead, isDurable: Bool) throws(FileError) {
        let next = Self.nextHeadPath(path)
        unlink(next)
        do throws(FileError) {
            // For its owner only, because header fields may be secrets.
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
    private static let suffix = ".vitrine-part", headSuffix = ".vitrine-head", nextSuffix = ".vitrine-next",
        checksumsSuffix = ".vitrine-sums"

    /// Returns the path of the part file beside a destination.
    package static func path(for destination: String) -> String {
        let directory = FilePath.parent(of: destination)
        let name = FilePath.name(of: destination)
        let isShort = name.utf8.count + suffix.utf8.count <= FileName.maximumLength
        return FilePath.join(directory, (isShort ? name : FileName.sha256(name)) + suffix)
    }

    /// Returns whether a name is that of a part file or its metadata.
    package static func isName(_ name: String) -> Bool {
        [suffix, headSuffix, nextSuffix, checksumsSuffix].contains { name.hasSuffix($0) }
    }

    /// Returns the path of the metadata of a part file.
    package static func headPath(_ path: String) -> String {
        path.hasSuffix(suffix) ? path.dropLast(suffix.count) + headSuffix : path + headSuffix
    }

    /// Returns the path of the temporary file of the metadata.
    private static func nextHeadPath(_ path: String) -> String {
        path.hasSuffix(suffix) ? path.dropLast(suffix.count) + nextSuffix : path + nextSuffix
    }

    /// Returns the path of the checksums of a part file.
    static func checksumsPath(_ path: String) -> String {
        path.hasSuffix(suffix) ? path.dropLast(suffix.count) + checksumsSuffix : path + checksumsSuffix
    }

    /// Opens or creates a part file with the bytes that can be resumed.
    ///
    /// - Parameters:
    ///   - path: The path, whose directory must exist. ``path(for:)`` returns one.
    ///   - identity: The identity of the body. A file with another identity is emptied.
    ///   - interval: The time between synchronizations.
    ///   - overlap: The number of bytes to compare without a strong validator, or 0 to require a validator.
    /// - Returns: nil if the file is open in this or another process.
    /// - Throws: ``FileError/untrusted(path:reason:)`` if the file belongs to another user or is not a regular file,
    ///   and other errors.
    package static func open(
        _ path: String, identity: String, synchronizingEvery interval: Duration = .seconds(10),
        comparing overlap: Int = 0
    ) throws(FileError) -> PartialFile? {
        guard let file = try lock(path, flags: O_RDWR | O_CREAT) else { return nil }
        return try read(file, identity: identity, interval: interval, overlap: overlap)
    }

    /// Opens a complete file that another program has written.
    ///
    /// - Returns: nil if the file is open in this or another process.
    /// - Throws: ``FileError/notFound(path:)`` if the file does not exist, and the errors of
    ///   ``open(_:identity:synchronizingEvery:comparing:)``.
    package static func openWhole(_ path: String, identity: String) throws(FileError) -> PartialFile? {
        guard let file = try lock(path, flags: O_RDWR) else { return nil }
        let length = Int(try file.status().st_size)
        return PartialFile(
            file, identity: identity, state: State(length: length), interval: .zero, overlap: 0, isWhole: true)
    }

    private static func lock(_ path: String, flags: Int32) throws(FileError) -> FileDescriptor? {
        // Between opening and locking, its former owner may have renamed or removed it.
        for _ in 0..<100 {
            let file = try FileDescriptor(opening: path, flags: flags | O_NOFOLLOW | O_NONBLOCK)
            guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else {
                if errno == EWOULDBLOCK { return nil }
                throw FileError(operation: "flock", path: path, code: errno)
            }
            let status = try file.status()
            guard isAt(path, status) else { continue }
            guard isOwn(status) else { throw .untrusted(path: path, reason: "it does not belong to this user alone") }
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
        // Bytes without checksums cannot be told from damaged ones.
        let checksums = head.flatMap { _ in try? PartChecksums.open(checksumsPath(file.path)) }
        if checksums?.isTrusted(isOwn) != true { head = nil }
        if let known = head, let checksums, !known.durablePieces.isEmpty {
            if let pieces = try intactPieces(of: file, known, checksums) {
                let result = PartialFile(
                    file, identity: identity,
                    state: State(length: 0, pieces: pieces, head: known, checksums: checksums), interval: interval,
                    overlap: overlap)
                try result.note(pieces)
                try result.takeIntoSession()
                return result
            }
            head = nil
        }
        let length = try head.map { known throws(FileError) in
            try intactLength(of: file, known, checksums, size: size)
        } ?? 0
        if length < size, ftruncate(file.number, off_t(length)) != 0 {
            throw FileError(operation: "ftruncate", path: file.path, code: errno)
        }
        guard lseek(file.number, off_t(length), SEEK_SET) == off_t(length) else {
            throw FileError(operation: "lseek", path: file.path, code: errno)
        }
        // The bytes do not match the head and cannot be trusted.
        if let known = head, length > 0,
            ResumableDownload(length: length, of: known.response, comparing: overlap) == nil
        {
            head = nil
        }
        let result = PartialFile(
            file, identity: identity,
            state: State(length: length, head: head, checksums: head == nil ? nil : checksums), interval: interval,
            overlap: overlap)
        if head == nil { try result.empty() } else { try result.takeIntoSession() }
        return result
    }

    /// Returns the bytes of an undivided body that are as they were received.
    private static func intactLength(
        of file: borrowing FileDescriptor, _ head: PartialHead, _ checksums: PartChecksums?, size: Int
    ) throws(FileError) -> Int {
        guard let checksums else { return 0 }
        if head.joinedPieces > 0 {
            return try intactLength(ofJoined: head.joinedPieces, in: file, head, checksums)
        }
        return try checksums.intactLength(
            of: file, upTo: head.trustedLength(ofFileWith: size),
            tail: head.isOfThisSession ? nil : head.durableSums.first, inRun: 0, from: 0)
    }

    /// Returns the metadata of a part file, if it belongs to the user and is complete.
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

    /// Returns whether a file is trusted. A file of another user must not become part of a download.
    private static func isOwn(_ status: stat) -> Bool {
        status.st_mode & S_IFMT == S_IFREG && status.st_uid == geteuid() && status.st_nlink <= 1
    }

    private static func isAt(_ path: String, _ status: stat) -> Bool {
        var found = stat()
        return lstat(path, &found) == 0 && found.st_dev == status.st_dev && found.st_ino == status.st_ino
    }

    /// Removes old part files of a directory that are not open.
    ///
    /// - Returns: The number of removed files.
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
            unlink(checksumsPath(path))
            if unlink(path) == 0 { removed += 1 }
        }
        return removed
    }
}
