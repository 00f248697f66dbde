import VitrineCore
import VitrineDatabase

/// Moves the write-ahead log into the database on another thread and connection than the writer's, so that no batch
/// waits for the disk.
///
/// The log begins anew with the first batch after all of it was moved. During continuous writes that does not happen by
/// itself; the writer then moves the rest between two batches. SQLite reports the length of the log with each commit,
/// which includes the writes of other processes.
final class WALCheckpointer: Sendable {
    private struct State {
        var isMoving = false
        var isWatched = false
        /// The log after the last batch, and the part of it that this process knows to be moved.
        var log = Database.LogCounts()
        /// The last batch, in coarse nanoseconds.
        var written: Int64 = 0
    }

    /// So many bytes are moved while others are written, but no more than a fourth of the capacity. The more, the fewer
    /// pages: those of the tables and indexes are in the log many times, and moved once.
    private static let busyLimits = 4 << 20...16 << 20
    /// The length above which an idle log is moved. The log is not mapped, and slower to read.
    private static let idleLimit = 1 << 20
    /// The time without writes, in nanoseconds, after which the log is idle.
    private static let idleTime: Int64 = 30_000_000
    /// So long the log may be cut for while a cache is opened, in milliseconds.
    private static let openingPatience: Int32 = 200

    /// A frame is a header of 24 bytes and a page (https://www.sqlite.org/fileformat2.html, 4.1).
    private static let frameBytes = 24 + 4096

    private let generation: Generation
    private let state = Locked(State())
    private let database = Locked<Database?>(nil)

    init(generation: Generation) { self.generation = generation }

    private static func busyLimit(capacity: Int) -> Int {
        min(max(capacity / 4, busyLimits.lowerBound), busyLimits.upperBound)
    }

    /// The length from which on the log is too long, in bytes: 8 to 32 MiB.
    static func bound(capacity: Int) -> Int { 2 * busyLimit(capacity: capacity) }

    /// Bytes of the log that are beyond its bound and the largest batch: they count towards the capacity.
    func excess(capacity: Int) -> Int {
        max(0, generation.watch.logFileSize - Self.bound(capacity: capacity) - (8 << 20))
    }

    /// The generation was opened by a writer: cuts a log that others have left too long, and sees to it that a shorter
    /// one is moved. The caller holds the process lock.
    func begin(_ writer: Database, capacity: Int) {
        let bound = Self.bound(capacity: capacity)
        // A longer file is cut when the log begins anew.
        try? writer.setLogLimit(bytes: bound)
        // Half of it must be free: a killed process may have left a log to which one batch less than the bound fits.
        if generation.watch.logFileSize > bound / 2 {
            // Readers of other processes that do not end: tried again at the next opening, and by the batches.
            writer.setBusyTimeout(milliseconds: Self.openingPatience)
            generation.blocks.synchronize()
            _ = try? writer.checkpoint(.truncating)
            writer.setBusyTimeout(milliseconds: Database.Options().busyMilliseconds)
        }
        // The log is not longer than its file.
        _ = note(frames: generation.watch.logFileSize / Self.frameBytes, capacity: capacity)
    }

    /// A batch was written.
    ///
    /// - Parameter frames: The number of frames in the log.
    /// - Returns: Whether the writer is to move all of it now.
    func note(frames: Int, capacity: Int) -> Bool {
        let time = CoarseClock.now, isTooLong = frames * Self.frameBytes >= Self.bound(capacity: capacity)
        let (moves, watches) = state.withLock { state -> (Bool, Bool) in
            // A shorter log has begun anew.
            if frames < state.log.frames { state.log.moved = 0 }
            state.log.frames = frames
            state.written = time
            guard !isTooLong else { return (false, false) }
            let waiting = Self.waitingBytes(state.log)
            let moves = waiting >= Self.busyLimit(capacity: capacity) && !state.isMoving
            if moves { state.isMoving = true }
            let watches = !moves && waiting >= Self.idleLimit && !state.isWatched
            if watches { state.isWatched = true }
            return (moves, watches)
        }
        if moves { submit() }
        if watches { IdleMonitor.watch { [weak self] time in self?.look(time) ?? false } }
        return isTooLong
    }

    private static func waitingBytes(_ log: Database.LogCounts) -> Int {
        max(0, log.frames - log.moved) * frameBytes
    }

    private func look(_ time: Int64) -> Bool {
        let (again, moves) = state.withLock { state -> (Bool, Bool) in
            let isLong = Self.waitingBytes(state.log) >= Self.idleLimit
            guard isLong, time &- state.written >= Self.idleTime else {
                state.isWatched = isLong
                return (isLong, false)
            }
            guard !state.isMoving else { return (true, false) }
            state.isWatched = false
            state.isMoving = true
            return (false, true)
        }
        if moves { submit() }
        return again
    }

    private func submit() {
        BlockingExecutor.shared.submit { [weak self] in
            guard let self else { return }
            let log = move()
            state.withLock { state in
                state.isMoving = false
                // Otherwise the log has begun anew meanwhile.
                if let log, log.moved <= state.log.frames { state.log.moved = log.moved }
            }
        }
    }

    /// Moves the log. If another process is moving it or the disk is full, a later call moves the rest.
    private func move() -> Database.LogCounts? {
        guard generation.watch.check() == .intact else { return nil }
        generation.blocks.synchronize()
        return database.withLock { database in
            if database == nil { database = try? Database(path: generation.databasePath) }
            return try? database?.checkpoint()
        }
    }

    /// Moves the whole log with the writer's connection and lets it begin again. Waits for other moves and for readers,
    /// so it is called between two batches. The part that open readers hold back is moved with the next batch.
    func moveAll(_ writer: Database) {
        database.withLock { _ in
            generation.blocks.synchronize()
            _ = try? writer.checkpoint(.restarting)
        }
    }
}
