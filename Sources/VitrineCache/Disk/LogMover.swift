import VitrineCore
import VitrineDatabase

/// Moves what the log holds into the database, on another thread and connection than the writer's, so that no batch
/// waits for the disk.
///
/// The log begins anew with the first batch that finds all of it moved. Under a storm of writes that never happens by
/// itself; then the writer moves the rest between two batches.
final class LogMover: Sendable {
    private struct State {
        /// About how many bytes were written to the log since it was last moved.
        var waiting = 0
        /// The same since the writer last knew all of it to be moved.
        var length = 0
        var isMoving = false
        var isWatched = false
        /// The last batch, in coarse nanoseconds.
        var written: Int64 = 0
    }

    /// So many bytes are moved while others are written, but no more than a fourth of the capacity. The more, the fewer
    /// pages: those of the tables and indexes are in the log many times, and moved once.
    private static let busyLimits = 4 << 20...32 << 20
    /// So many are moved once nobody writes: what is in the log is not mapped, and slower to read.
    private static let idleLimit = 1 << 20
    /// So long nobody writes then, in nanoseconds.
    private static let idleTime: Int64 = 30_000_000
    /// A log of so many times the limit is too long.
    private static let storm = 2

    private let generation: Generation
    private let state = Locked(State())
    private let database = Locked<Database?>(nil)

    init(generation: Generation) { self.generation = generation }

    /// A batch was written.
    ///
    /// - Returns: Whether the writer is to move all of it now.
    func note(bytes: Int, capacity: Int) -> Bool {
        let limit = min(max(capacity / 4, Self.busyLimits.lowerBound), Self.busyLimits.upperBound)
        let time = DiskEngine.coarseTime()
        let (moves, watches, isStorm) = state.withLock { state -> (Bool, Bool, Bool) in
            state.waiting += bytes
            state.length += bytes
            state.written = time
            guard state.length < Self.storm * limit else { return (false, false, true) }
            let moves = state.waiting >= limit && !state.isMoving
            if moves { Self.start(&state) }
            let watches = !moves && state.waiting >= Self.idleLimit && !state.isWatched
            if watches { state.isWatched = true }
            return (moves, watches, false)
        }
        if moves { submit() }
        if watches { Idleness.watch { [weak self] time in self?.look(time) ?? false } }
        return isStorm
    }

    private static func start(_ state: inout State) {
        state.isMoving = true
        state.waiting = 0
    }

    private func look(_ time: Int64) -> Bool {
        let (again, moves) = state.withLock { state -> (Bool, Bool) in
            guard state.waiting >= Self.idleLimit, time &- state.written >= Self.idleTime else {
                state.isWatched = state.waiting >= Self.idleLimit
                return (state.isWatched, false)
            }
            guard !state.isMoving else { return (true, false) }
            state.isWatched = false
            Self.start(&state)
            return (false, true)
        }
        if moves { submit() }
        return again
    }

    private func submit() {
        BlockingExecutor.shared.submit { [weak self] in
            guard let self else { return }
            move()
            state.withLock { $0.isMoving = false }
        }
    }

    /// What cannot be moved now is moved later: another process is at it, or the disk is full.
    private func move() {
        guard generation.watch.check() == .intact else { return }
        generation.release()
        database.withLock { database in
            if database == nil { database = try? Database(path: generation.databasePath) }
            try? database?.checkpoint()
        }
    }

    /// Moves all of it with the writer's connection, and lets the log begin anew. Waits for whoever is moving and for
    /// readers; between two batches only.
    func moveAll(_ writer: Database) {
        generation.release()
        let isDone = database.withLock { _ in
            do throws(DatabaseError) {
                try writer.checkpoint(.restarting)
                return true
            } catch {
                // Readers that do not end: what could be moved is moved. Tried again with the next batch.
                return false
            }
        }
        guard isDone else { return }
        state.withLock { state in
            state.length = 0
            state.waiting = 0
        }
    }
}
