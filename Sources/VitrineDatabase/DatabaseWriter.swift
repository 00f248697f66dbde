import CVitrineSQLite
internal import VitrineCore

/// Writes for everyone: one connection, one thread, and one commit for all who wait (group commit).
///
/// Jobs may be submitted from any thread or task. They run in the order of submission; what was submitted while a
/// transaction ran goes into the next one together, so that with many callers the price of a commit is shared.
///
/// ```swift
/// let writer = DatabaseWriter(try Database(path: path))
/// try await writer.write { database in
///     let insert = try database.cachedStatement("INSERT INTO word(text) VALUES(?)")
///     insert.bind("lake", at: 1)
///     try insert.run()
/// }
/// ```
///
/// - A job that throws is undone, and the others of its transaction are not.
/// - Nobody hears of success before the commit.
/// - **A job may be run again** after all it did to the database was undone: when a neighbour took the transaction
///   down (a full disk does), every other job gets a transaction of its own. So a job should change the database only.
/// - A commit that fails is reported to every job in it.
public final class DatabaseWriter: Sendable {
    /// What a writer has done so far.
    public struct Statistics: Sendable, Equatable {
        /// Jobs that were run to their end, whether they succeeded or not.
        public var jobs = 0
        /// Transactions that were committed.
        public var commits = 0
    }

    private struct Queue {
        var jobs: [any WriterJobRunning] = []
        var isDraining = false
        var statistics = Statistics()
    }

    private let queue = Locked(Queue())
    /// nil until it can be opened.
    private let database: Locked<Database?>
    private let open: (@Sendable () throws -> sending Database)?
    private let lock: ProcessLock?
    private let thread: BlockingExecutor
    /// Jobs in one transaction at most: others, in this process and beyond, wait meanwhile.
    private static let maximumJobs = 1024

    /// A writer over a connection that nobody else uses from now on.
    public convenience init(_ database: sending Database) {
        self.init(database, lock: nil)
    }

    /// A writer over a connection that nobody else uses from now on.
    ///
    /// - Parameter lock: Taken around each transaction, so that processes take turns; nil leaves waiting to SQLite.
    package init(_ database: sending Database, lock: ProcessLock?) {
        self.database = Locked(database)
        self.lock = lock
        open = nil
        thread = BlockingExecutor(threads: 1, name: "vitrine-writer")
    }

    /// A writer over a file that cannot be opened for writing now, for lack of room or permission.
    ///
    /// - Parameters:
    ///   - lock: As above.
    ///   - open: Called before each transaction until it succeeds; what it throws becomes of the jobs.
    package init(lock: ProcessLock? = nil, opening open: @escaping @Sendable () throws -> sending Database) {
        database = Locked(nil)
        self.lock = lock
        self.open = open
        thread = BlockingExecutor(threads: 1, name: "vitrine-writer")
    }

    /// What the writer has done so far.
    public var statistics: Statistics { queue.withLock { $0.statistics } }

    // MARK: Writing

    /// Queues a job and goes on; the completion is called on the writer's thread, after the commit.
    ///
    /// - Parameters:
    ///   - job: Runs on the writer's thread inside a transaction. It must not keep the connection.
    ///   - completion: Gets what the job returned or threw, or why the transaction failed (``DatabaseError``, or
    ///     `FileError` from the lock). It must be short and must not wait for this writer.
    public func submit<Value: Sendable>(
        _ job: @escaping @Sendable (Database) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        let job = WriterJob(body: job, completion: completion)
        let mustStart = queue.withLock { queue in
            queue.jobs.append(job)
            defer { queue.isDraining = true }
            return !queue.isDraining
        }
        if mustStart { thread.submit { self.drain() } }
    }

    /// Runs a job and returns when it is committed. It is run also if the calling task is cancelled meanwhile.
    ///
    /// - Throws: What the job throws, or why the transaction failed.
    public func write<Value: Sendable>(_ job: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            submit(job) { continuation.resume(with: $0) }
        }
    }

    /// ``write(_:)`` for threads that may block. Never from a job: it would wait for itself.
    public func writeBlocking<Value: Sendable>(_ job: @escaping @Sendable (Database) throws -> Value) throws -> Value {
        let promise = Promise<Result<Value, any Error>>()
        submit(job) { promise.fulfill($0) }
        return try promise.wait().get()
    }

    /// Uses the connection on the calling thread between two transactions, or not at all while one runs. Blocks.
    ///
    /// - Returns: nil if a transaction was running, or if the file could not be opened for writing yet.
    public func betweenTransactions<Value>(
        _ body: (Database) throws(DatabaseError) -> sending Value
    ) throws(DatabaseError) -> sending Value? {
        let result = try database.withLockIfAvailable { database throws(DatabaseError) -> sending Value? in
            guard let database else { return nil }
            return try body(database)
        }
        return result ?? nil
    }

    // MARK: Batches

    private func drain() {
        while true {
            let batch = queue.withLock { queue in
                let batch = Array(queue.jobs.prefix(Self.maximumJobs))
                queue.jobs.removeFirst(batch.count)
                if batch.isEmpty { queue.isDraining = false }
                return batch
            }
            if batch.isEmpty { return }
            let commits = run(batch)
            // Before anyone is told, so that the numbers are never behind what is known.
            queue.withLock { queue in
                queue.statistics.jobs += batch.count
                queue.statistics.commits += commits
            }
            for job in batch { job.finish() }
        }
    }

    /// Runs jobs in one transaction or, if that comes to nothing through one of them, in one each.
    ///
    /// - Returns: How many commits it took.
    private func run(_ batch: [any WriterJobRunning]) -> Int {
        do {
            try lock?.acquire()
        } catch {
            for job in batch { job.fail(error) }
            return 0
        }
        defer { lock?.release() }
        return database.withLock { known in
            let database: Database
            do {
                database = try openedIfNeeded(&known)
            } catch {
                for job in batch { job.fail(error) }
                return 0
            }
            switch Self.attempt(batch[...], database) {
            case .committed: return 1
            case .failed: return 0
            case .brokenBy(let culprit):
                var commits = 0
                for index in batch.indices where index != culprit {
                    if case .committed = Self.attempt(batch[index...index], database) { commits += 1 }
                }
                return commits
            }
        }
    }

    private func openedIfNeeded(_ database: inout Database?) throws -> Database {
        if let database { return database }
        guard let open else {
            throw DatabaseError(code: SQLITE_CANTOPEN, message: "there is no connection", path: "")
        }
        let opened = try open()
        database = opened
        return opened
    }

    private enum Attempt {
        case committed
        /// All jobs have their error.
        case failed
        /// The transaction is gone; the job with this index has its error, or, for nil, it is not known who did it.
        case brokenBy(Int?)
    }

    private static func attempt(_ jobs: ArraySlice<any WriterJobRunning>, _ database: Database) -> Attempt {
        do {
            try database.beginTransaction()
            for index in jobs.indices {
                let job = jobs[index]
                // The job keeps its error; thrown again here, it makes the savepoint or the transaction roll back.
                do {
                    if jobs.count == 1 {
                        try job.run(database)
                    } else {
                        try database.savepoint { try job.run(database) }
                    }
                } catch where jobs.count == 1 {
                    database.rollbackTransaction()
                    return .failed
                } catch {}
                guard database.isInTransaction else {
                    job.fail(
                        DatabaseError(code: SQLITE_ABORT, message: "the transaction ended early", path: database.path))
                    return jobs.count == 1 ? .failed : .brokenBy(index)
                }
            }
            try database.commitTransaction()
            return .committed
        } catch {
            database.rollbackTransaction()
            // A constraint that is checked at the end, or a disk that only the largest job filled: the others deserve
            // their own chance.
            let reason = error.reason
            if jobs.count > 1, reason == .constraint || reason == .full { return .brokenBy(nil) }
            for job in jobs { job.fail(error) }
            return .failed
        }
    }
}
