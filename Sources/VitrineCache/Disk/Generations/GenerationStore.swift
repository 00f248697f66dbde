import Logging
import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The generation of a directory that is in use, with its connections and the lock among processes.
///
/// Opening, replacing or changing a generation requires `locking`, which also holds the lock among processes. `state` is
/// locked after it, never before.
final class GenerationStore: Sendable {
    struct State {
        var generation: Generation?
        var writer: DiskWriter?
        /// The lock among processes while a thread of this one has it.
        var lock: ProcessLock?
        /// When the link was last looked at, in coarse nanoseconds.
        var checked: Int64 = 0
        /// Whether the system has refused the last attempt to write. See ``isReadOnly``.
        var isRefused = false
    }

    /// The link is looked at so often by reads, in nanoseconds: another process may have removed everything.
    private static let checkInterval: Int64 = 100_000_000
    /// How often anything is tried when the files are deleted or replaced under it.
    static let attempts = 8

    /// Its capacity and time to live are those of formats.
    let configuration: DiskCache.Configuration
    let layout: DiskLayout
    let formats: FormatRegistry
    let log: Logger
    /// Whether the directory had one for each format in the layout before.
    let hadFormatDirectories: Bool
    let state = Locked(State())
    private let locking = Locked<ProcessLock?>(nil)

    init(
        _ layout: DiskLayout, configuration: DiskCache.Configuration, formats: FormatRegistry,
        hadFormatDirectories: Bool, log: Logger
    ) {
        self.layout = layout
        self.configuration = configuration
        self.formats = formats
        self.hadFormatDirectories = hadFormatDirectories
        self.log = log
    }

    deinit {
        state.withLock { $0.generation }?.retire()
    }

    /// The generation that is open; nil if there is none.
    var current: Generation? { state.withLock { $0.generation } }

    /// The writer of that generation; nil if there is none.
    var writer: DiskWriter? { state.withLock { $0.writer } }

    /// Whether the generation in use is the directory's. It is not if the directory was deleted.
    var isInPlace: Bool { current.map(isCurrent) == true }

    /// Whether nothing may be written: the configuration says so, or the system has refused the last attempt and the
    /// permissions are still missing. A file system that is read-only for a moment is written again afterwards.
    var isReadOnly: Bool {
        if configuration.isReadOnly { return true }
        guard state.withLock({ $0.isRefused }) else { return false }
        guard layout.mayBeWritten else { return true }
        state.withLock { $0.isRefused = false }
        return false
    }

    /// Notes that the system has refused to write.
    func noteRefusal() { state.withLock { $0.isRefused = true } }

    // MARK: Reading

    /// The generation in use for reading; nil if there is none and none may be made.
    func generation() throws(CacheError) -> Generation? {
        let time = CoarseClock.now
        let (known, isDue) = state.withLock { ($0.generation, time &- $0.checked >= Self.checkInterval) }
        if let known {
            guard isDue else { return known }
            if isCurrent(known) {
                state.withLock { $0.checked = time }
                return known
            }
            abandon(known)
        }
        return try open()
    }

    /// Whether a generation is the one that the link names.
    func isCurrent(_ generation: Generation) -> Bool {
        do throws(FileError) { return try layout.currentGeneration() == generation.name } catch { return false }
    }

    /// Gives a generation up; the next use opens the one in its place.
    func abandon(_ generation: Generation) {
        let writer = state.withLock { state -> DiskWriter? in
            guard state.generation === generation else { return nil }
            defer { state.writer = nil }
            state.generation = nil
            return state.writer
        }
        generation.retire()
        withExtendedLifetime(writer) {}
    }

    /// Runs a body with a connection that does not wait; nil if there is none or if it would have to wait.
    func withPromptReader<Result>(
        _ body: (DiskReader) throws(DatabaseError) -> Result
    ) -> Result? {
        guard let generation = knownGeneration(), generation.watch.check() == .intact,
            let reader = generation.takePromptReader()
        else { return nil }
        do throws(DatabaseError) {
            let result = try body(reader)
            generation.giveBack(reader)
            return result
        } catch {
            if error.reason == .wouldWait { generation.giveBack(reader) } else { generation.close(prompt: reader) }
            return nil
        }
    }

    /// The generation in use, if it was looked at lately: the link's file is in memory then.
    private func knownGeneration() -> Generation? {
        let time = CoarseClock.now
        let (known, checked) = state.withLock { ($0.generation, $0.checked) }
        guard let known, !known.isTemporary else { return nil }
        guard time &- checked >= Self.checkInterval else { return known }
        guard time &- checked < 20 * Self.checkInterval, isCurrent(known) else { return nil }
        state.withLock { $0.checked = time }
        return known
    }

    /// Runs a body with a connection; nil if there is no cache. Begins anew when the files are replaced meanwhile.
    func withReader<Result>(
        _ body: (DiskReader) throws(DatabaseError) -> Result
    ) throws(CacheError) -> Result? {
        var last: CacheError?
        var wasDamaged = false
        for _ in 0..<Self.attempts {
            guard let generation = try generation() else { return nil }
            switch generation.watch.check() {
            case .intact: break
            case .deleted:
                abandon(generation)
                continue
            case .cut:
                try recover(generation, because: "its database was cut")
                continue
            }
            do throws(DatabaseError) {
                let reader = try generation.takeReader()
                let result = try body(reader)
                generation.giveBack(reader)
                return result
            } catch {
                // The connection that failed is closed.
                last = .database(error)
                switch error.reason {
                case _ where error.isDamage:
                    // What a new connection finds as well is damaged.
                    if wasDamaged { try recover(generation, because: error.description) } else { abandon(generation) }
                    wasDamaged.toggle()
                case .cannotOpen, .inputOutput, .readOnly: abandon(generation)
                default: throw .database(error)
                }
            }
        }
        if let last { throw last }
        return nil
    }
}

/// The lock among processes.
extension GenerationStore {
    /// Runs a body while no other process, and no other thread of this one, opens or changes the cache.
    func withProcessLock<Result>(_ body: () throws(CacheError) -> Result) throws(CacheError) -> Result {
        // The lock lends a value that may be of any kind; the body's result is carried out beside it.
        var result: Swift.Result<Result, CacheError>?
        locking.withLock { held in
            do throws(FileError) {
                for _ in 0..<Self.attempts {
                    let lock = try acquire(&held)
                    state.withLock { $0.lock = lock }
                    result = Swift.Result { () throws(CacheError) in try body() }
                    state.withLock { $0.lock = nil }
                    lock.release()
                    guard case .failure(let error) = result, error.isMissingFiles, !lock.isCurrent else { return }
                }
            } catch {
                result = .failure(.file(error))
            }
        }
        guard let result else { throw .file(.notFound(path: layout.root)) }
        return try result.get()
    }

    /// Waits for the lock of the directory that is there now, making it if it is not. Blocks.
    private func acquire(_ held: inout ProcessLock?) throws(FileError) -> ProcessLock {
        var attempts = 0
        while true {
            attempts += 1
            do throws(FileError) {
                let lock: ProcessLock
                if let known = held, known.isCurrent {
                    lock = known
                } else {
                    held = nil
                    try Directory.create(layout.root)
                    lock = try ProcessLock(directory: layout.root)
                    held = lock
                }
                try lock.acquire()
                // The directory may have gone while this one waited: whoever made it anew holds another lock.
                if attempts >= Self.attempts || lock.isCurrent { return lock }
                lock.release()
            } catch {
                guard attempts < Self.attempts, case .notFound = error else { throw error }
            }
        }
    }

    /// Repeats opening or making a generation if its files are deleted meanwhile, which needs no lock. If the lock file
    /// is deleted as well, ``withProcessLock(_:)`` repeats.
    func retryingIfFilesAreDeleted<Result>(
        _ body: () throws(CacheError) -> Result
    ) throws(CacheError) -> Result {
        for _ in 1..<Self.attempts {
            do throws(CacheError) { return try body() } catch {
                guard error.isMissingFiles, isLocked else { throw error }
            }
        }
        return try body()
    }

    /// Whether this process has the lock of the directory that is there now.
    var isLocked: Bool { state.withLock { $0.lock }?.isCurrent == true }
}

/// The time for intervals: cheap to read, and precise to some milliseconds.
enum CoarseClock {
    /// The time in nanoseconds since an unknown moment.
    static var now: Int64 {
        var time = timespec()
        #if canImport(Darwin)
        clock_gettime(CLOCK_MONOTONIC_RAW_APPROX, &time)
        #else
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        #endif
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}
