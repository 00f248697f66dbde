import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// One open generation: its database's connections for reading, and the watch over its files.
final class Generation: Sendable {
    let name: String
    let path: String
    let isReadOnly: Bool
    /// Whether it is read for one lookup while there is no room on the disk, and then opened again.
    let isTemporary: Bool
    /// See ``DiskCache/Configuration/mapsDatabase``.
    let mapsDatabase: Bool
    let watch: FileWatch
    let blocks: BlockFile
    let purgeOrigin: PurgeOrigin
    private let readers = Locked<[DiskReader]>([])
    private let prompt = Locked(PromptReaders())
    /// Connections for reading that are kept open.
    private static let readerLimit = 8

    /// The connections that do not wait.
    private struct PromptReaders {
        var idle: [DiskReader] = []
        /// With those in use.
        var count = 0
        var isOpening = false
        /// When one may be opened, in coarse nanoseconds.
        var openable = Int64.min
        var isRetired = false
    }

    var databasePath: String { path + "/" + DiskLayout.databaseName }

    init(
        name: String, path: String, isReadOnly: Bool, isTemporary: Bool = false, mapsDatabase: Bool = true
    ) throws(FileError) {
        self.mapsDatabase = mapsDatabase
        self.name = name
        self.path = path
        self.isReadOnly = isReadOnly
        self.isTemporary = isTemporary
        purgeOrigin = PurgeOrigin(generation: StableHash.hash(name))
        blocks = BlockFile(database: path + "/" + DiskLayout.databaseName)
        watch = try FileWatch(path: path + "/" + DiskLayout.databaseName, isReadOnly: isReadOnly)
    }

    /// Where a large body lies.
    func bodyPath(_ id: Int64) -> String { path + "/files/" + DiskLayout.fileName(id) }

    /// Opens the database for reading.
    func openForReading(_ options: Database.Options) throws(DatabaseError) -> Database {
        do throws(DatabaseError) {
            return try Database(path: databasePath, options: options)
        } catch {
            // Without permission or room for the index beside the database, SQLite can read it only if nothing else
            // writes: without an index there is nobody.
            guard isReadOnly, error.mayBeReadAlone, !FilePath.exists(databasePath + "-shm") || isTemporary else {
                throw error
            }
            var options = options
            options.mappedBytes = 0
            var log = stat()
            if stat(databasePath + "-wal", &log) == 0, log.st_size > 0 {
                // A killed process has left it; it is read as far as it was committed.
                options.sharing = .unlocked
            } else {
                options.isImmutable = true
            }
            return try Database(path: databasePath, options: options)
        }
    }

    /// Takes a reader out of the pool, or makes one.
    func takeReader() throws(DatabaseError) -> DiskReader {
        if let reader = readers.withLock({ $0.popLast() }) { return reader }
        return try DiskReader(generation: self)
    }

    /// Takes a reader that does not wait; nil if there is none. Another thread then opens one for later.
    func takePromptReader() -> DiskReader? {
        let (reader, opens) = prompt.withLock { prompt -> (DiskReader?, Bool) in
            if let reader = prompt.idle.popLast() { return (reader, false) }
            guard !prompt.isOpening, !prompt.isRetired, prompt.count < Self.readerLimit,
                prompt.openable <= CoarseClock.now
            else { return (nil, false) }
            prompt.isOpening = true
            return (nil, true)
        }
        if opens { BlockingExecutor.shared.submit { self.openPromptReader() } }
        return reader
    }

    private func openPromptReader() {
        var reader: DiskReader?
        var openable = CoarseClock.now &+ 1_000_000_000
        do throws(DatabaseError) {
            if watch.check() == .intact { reader = try DiskReader(generation: self, waits: false) }
        } catch {
            if error.reason == .wouldWait { openable = .max }
        }
        let surplus = prompt.withLock { prompt -> DiskReader? in
            prompt.isOpening = false
            guard let reader else {
                prompt.openable = openable
                return nil
            }
            guard !prompt.isRetired else { return reader }
            prompt.count += 1
            prompt.idle.append(reader)
            return nil
        }
        withExtendedLifetime(surplus) {}
    }

    /// Closes a reader that does not wait and has failed.
    func close(prompt reader: consuming DiskReader) {
        prompt.withLock { prompt in
            prompt.count -= 1
            prompt.openable = CoarseClock.now &+ 1_000_000_000
        }
    }

    private func keep(_ reader: DiskReader) -> DiskReader? {
        guard reader.waits else {
            return prompt.withLock { prompt in
                guard !prompt.isRetired else { return reader }
                prompt.idle.append(reader)
                return nil
            }
        }
        return readers.withLock { readers -> DiskReader? in
            guard readers.count < Self.readerLimit else { return reader }
            readers.append(reader)
            return nil
        }
    }

    /// Gives a reader back.
    func giveBack(_ reader: DiskReader) {
        let surplus = keep(reader)
        // Closed outside the lock.
        withExtendedLifetime(surplus) {}
    }

    /// Closes the idle readers. They reference the generation, which would otherwise never be deallocated.
    func retire() {
        let idle = readers.withLock { readers in
            defer { readers = [] }
            return readers
        }
        let promptOnes = prompt.withLock { prompt in
            prompt.isRetired = true
            defer { prompt.idle = [] }
            return prompt.idle
        }
        withExtendedLifetime((idle, promptOnes)) {}
    }
}

/// Checks for logs without writes at intervals. One thread serves all caches of the process, and sleeps while there is
/// nothing to check.
enum IdleMonitor {
    /// Given the time in coarse nanoseconds; returns whether to look again.
    typealias Check = @Sendable (Int64) -> Bool

    /// Time from one look to the next, in nanoseconds.
    static let interval: Int64 = 10_000_000
    private static let checks = Locked<[Check]>([])
    private static let executor = BlockingExecutor(threads: 1, name: "vitrine-idle")

    /// Calls a check repeatedly until it returns false. The check must be short.
    static func watch(_ check: @escaping Check) {
        let isFirst = checks.withLock { checks in
            checks.append(check)
            return checks.count == 1
        }
        if isFirst { executor.submit { run() } }
    }

    private static func run() {
        var isDone = false
        while !isDone {
            // Woken early by a signal it only looks early.
            var pause = timespec(tv_sec: 0, tv_nsec: Int(interval))
            nanosleep(&pause, nil)
            let time = CoarseClock.now
            let known = checks.withLock { $0 }
            let kept = known.filter { $0(time) }
            isDone = checks.withLock { checks in
                checks = kept + checks.dropFirst(known.count)
                return checks.isEmpty
            }
        }
    }
}
