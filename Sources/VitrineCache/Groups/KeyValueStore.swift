import Logging
public import VitrineCore
public import VitrineDatabase

/// Plain values under names in groups, on disk (R4, R23).
///
/// ```swift
/// let store = try KeyValueStore(named: "player")
/// store[Settings.volume] = 0.7                                   // a typed key, see ValueKey
/// try await store.set("Ada", forKey: "name", in: "user.profile").committed()
/// let name = try store.value(String.self, forKey: "name", in: "user.profile")
/// ```
///
/// - **Reads are synchronous**: from memory, else from the file, which takes about 5 µs for a small value.
/// - **Writes return at once** and reach the file in order, many in one transaction. A read after a write sees it
///   (R25). ``WriteTask`` tells when it is stored. If more than ``Configuration/queueCapacity`` waits, a write waits too.
/// - Values smaller than 1 MiB are also kept in memory, larger ones when asked (R24); memory is bounded.
/// - Several processes may share a directory; what memory holds is at most 0.1 s older than the file.
/// - A damaged file is moved aside, logged and listed in ``damagedFiles``; the store goes on with an empty one.
/// - A directory that is deleted or replaced while it is open is made anew (R45): a write notices at once, a read
///   within ``Configuration/sharingInterval``.
///
/// It is a store: nothing is evicted.
public final class KeyValueStore: Sendable {
    /// How a store behaves.
    public struct Configuration: Sendable {
        /// The program's version. When another one, not in ``compatibleVersions``, wrote last, everything but the
        /// reserve group is removed on opening (R49). Default nil: no check.
        public var version: String?
        /// Versions whose values this one understands.
        public var compatibleVersions: [String] = []
        /// Values of this size and more are kept in memory only when asked (R24). Default 1 MiB.
        public var memoryThreshold: ByteCount = .mebibytes(1)
        /// What memory holds at most, also of what was asked for. Default 8 MiB.
        public var memoryCapacity: ByteCount = .mebibytes(8)
        /// Bytes that may wait to be written before a write waits itself. Default 32 MiB.
        public var queueCapacity: ByteCount = .mebibytes(32)
        /// What a power cut may take. Default `Database.Options.Durability.full`: nothing that was committed.
        public var durability = Database.Options.Durability.full
        /// How often a read looks for other processes' changes, and whether the file is still there. Default 0.1 s.
        public var sharingInterval: Duration = .milliseconds(100)

        /// The defaults.
        public init() {}
    }

    private struct State {
        var session: ValueSession
        var damagedFiles: [String] = []
    }

    /// How this store behaves.
    public let configuration: Configuration
    private let state: Locked<State>

    /// Opens the values in a directory, making it if needed. Blocks for some milliseconds.
    ///
    /// - Throws: ``CacheError/file(_:)`` or ``CacheError/database(_:)``.
    public init(directory: String, configuration: Configuration = .init()) throws(CacheError) {
        self.configuration = configuration
        let (session, damaged) = try Self.open(directory, configuration, isDamaged: false)
        state = Locked(State(session: session, damagedFiles: damaged.map { [$0] } ?? []))
    }

    /// Opens the values of this name among the user's data (R44): `~/.local/share/NAME` on Linux. Blocks.
    ///
    /// - Parameters:
    ///   - name: One component, also with characters that no file name may have.
    ///   - directories: Where data belongs. Default that of the user.
    ///   - configuration: How the store behaves.
    public convenience init(
        named name: String, in directories: Directories = .current, configuration: Configuration = .init()
    ) throws(CacheError) {
        let path: String
        do throws(FileError) {
            path = try directories.dataDirectory(for: name)
        } catch {
            throw .file(error)
        }
        try self.init(directory: path, configuration: configuration)
    }

    private static func open(
        _ directory: String, _ configuration: Configuration, isDamaged: Bool
    ) throws(CacheError) -> (ValueSession, damaged: String?) {
        let files = ValueFiles(directory: directory)
        let damaged = try files.prepare(isDamaged: isDamaged)
        if let damaged {
            Log.logger("values").error("A damaged file was moved aside", metadata: ["path": "\(damaged)"])
        }
        return (try ValueSession(directory: directory, configuration: configuration, files: files), damaged)
    }

    // MARK: Directory

    /// Where the values are.
    public var directory: String { state.withLock { $0.session.directory } }

    /// Damaged files that were moved aside since this store was made. Nothing reads them any more.
    public var damagedFiles: [String] { state.withLock { $0.damagedFiles } }

    /// Goes on with the values of another directory (R44). Writes so far still reach the old one. Blocks.
    ///
    /// - Throws: Why the directory cannot be used; the store then stays where it is.
    public func changeDirectory(to directory: String) throws(CacheError) {
        let (session, damaged) = try Self.open(directory, configuration, isDamaged: false)
        state.withLock { state in
            state.session = session
            if let damaged { state.damagedFiles.append(damaged) }
        }
    }

    /// The session in use for reading; a new one if its file is damaged, or gone for a while.
    var session: ValueSession {
        get throws(CacheError) { try session(lookingNow: false) }
    }

    /// Changes something by the session in use, which is a new one if its file is damaged or gone.
    func writing(_ change: (ValueSession) -> WriteTask) -> WriteTask {
        do throws(CacheError) {
            return change(try session(lookingNow: true))
        } catch {
            state.withLock { $0.session }.report(error)
            return WriteTask(failed: error)
        }
    }

    private func session(lookingNow: Bool) throws(CacheError) -> ValueSession {
        try state.withLock { state throws(CacheError) in
            let isDamaged = state.session.isDamaged
            guard isDamaged || state.session.isLost(lookingNow: lookingNow) else { return state.session }
            let directory = state.session.directory
            if !isDamaged {
                Log.logger("values").notice("The values were deleted while open", metadata: ["path": "\(directory)"])
            }
            let opened = try Self.open(directory, configuration, isDamaged: isDamaged)
            state.session = opened.0
            if let damaged = opened.damaged { state.damagedFiles.append(damaged) }
            return state.session
        }
    }

    /// The names of the values that memory holds, sorted.
    package var memoryKeys: [String] { state.withLock { $0.session }.memoryKeys.sorted() }

    // MARK: Pending writes

    /// Returns when all writes so far are stored.
    ///
    /// - Throws: The first failure of a write since the last call, whether or not anyone heard of it.
    public func flush() async throws(CacheError) {
        let session = try session
        let result = await BlockingExecutor.shared.run { () -> Result<Void, CacheError> in
            session.waitForWrites()
            return session.takeFailure().map { .failure($0) } ?? .success(())
        }
        try result.get()
    }

    /// The calls that wait for the disk, for threads that may block.
    public var blocking: Blocking { Blocking(store: self) }
}
