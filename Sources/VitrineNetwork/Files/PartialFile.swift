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
/// All calls block. Not for use from several threads at once.
package final class PartialFile: Sendable {
    struct State {
        var length: Int
        /// nil if the rest of what is there cannot be asked for.
        var head: PartialHead?
        var nextCheckpoint: ContinuousClock.Instant
    }

    /// Where the file is.
    package let path: String
    /// What its body is of, in the words of who loads it.
    package let identity: String
    let file: FileDescriptor
    let interval: Duration
    let state: Locked<State>

    init(
        _ file: consuming FileDescriptor, identity: String, length: Int, head: PartialHead?, interval: Duration
    ) {
        path = file.path
        self.identity = identity
        self.file = file
        self.interval = interval
        state = Locked(State(length: length, head: head, nextCheckpoint: .now + interval))
    }

    /// How many bytes are there.
    package var length: Int { state.withLock { $0.length } }

    /// How to ask for the rest of what is there; nil if it has to be loaded from the beginning.
    package var continuation: PartialDownload? {
        state.withLock { state in
            state.head.flatMap { PartialDownload(length: state.length, of: $0.response) }
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
        guard isWhole, Self.canContinue(response) else { return }
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
            return state.head != nil && state.nextCheckpoint <= .now
        }
        if isDue { try synchronize() }
    }

    /// Forgets what is there.
    package func empty() throws(FileError) {
        let (length, head) = state.withLock { state in
            defer {
                state.head = nil
                state.length = 0
            }
            return (state.length, state.head)
        }
        // First, and for good, so that nothing of another body is ever taken for what this described.
        removeHead()
        if let head, head.durableLength > 0 { try synchronizeDirectory() }
        guard length > 0 else { return }
        guard ftruncate(file.number, 0) == 0, lseek(file.number, 0, SEEK_SET) == 0 else {
            throw FileError(operation: "ftruncate", path: path, code: errno)
        }
    }

    /// Brings what is there to the medium, and notes that.
    package func synchronize() throws(FileError) {
        try file.synchronize()
        let head = state.withLock { state -> PartialHead? in
            state.head?.durableLength = state.length
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
    private static func canContinue(_ response: StoredResponse) -> Bool {
        guard PartialDownload(length: 1, of: response) != nil else { return false }
        // A date does not tell the variants of a resource from each other.
        return response.entityTag != nil || !response.headers.contains("Vary")
    }

    // MARK: The end

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

    /// Gives the file up: it stays if the rest can be asked for later.
    package func release() {
        if continuation == nil {
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

    private func removeHead() { unlink(Self.headPath(path)) }

    private func synchronizeDirectory() throws(FileError) {
        try FileDescriptor(opening: FilePath.parent(of: path), flags: O_RDONLY | O_DIRECTORY).synchronize()
    }

    private func write(_ head: PartialHead, isDurable: Bool) throws(FileError) {
        // For its owner only, as fields of a response may be secrets.
        let writer = try AtomicFileWriter(
            path: Self.headPath(path), options: isDurable ? .durable : [], permissions: 0o600, followsLinks: false)
        try writer.write(head.bytes())
        try writer.commit()
    }
}
