import CVitrineSQLite
internal import VitrineCore

/// A writer with one connection and one thread, which commits the jobs of many callers together (group commit).
///
/// Jobs may be submitted from any thread or task and run in the order of submission. Jobs submitted during a
/// transaction run together in the next one, so that callers share the cost of a commit.
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
/// - A job that throws is undone; the other jobs of its transaction are not.
/// - Success is reported after the commit.
/// - **A job may run again** after all its changes were undone: if another job rolled the transaction back, for example
///   on a full disk, every other job gets its own transaction. So a job should change only the database.
/// - A failed commit is reported to all jobs in it.
/// - If the writer can open the file by itself, it opens it again after a failure of the system, and if the file was
///   deleted or replaced. A job that failed because the file was gone before it began runs in the new file.
package final class DatabaseWriter: Sendable {
    /// The counters of a writer.
    package struct Statistics: Sendable, Equatable {
        /// Jobs that were run to their end, whether they succeeded or not.
        package var jobs = 0
        /// Transactions that were committed.
        package var commits = 0
    }

    private struct Queue {
        var jobs: [any WriterJobRunning] = []
        var isDraining = false
        var statistics = Statistics()
    }

    /// The connection, and how many there were before it.
    private struct Link {
        /// nil until it can be opened.
        var database: Database?
        var number = 0
    }

    private let queue = Locked(Queue())
    private let link: Locked<Link>
    private let open: (@Sendable () throws -> sending Database)?
    private let lock: ProcessLock?
    private let thread: BlockingExecutor
    /// Jobs in one transaction at most: others, in this process and beyond, wait meanwhile.
    private static let maximumJobs = 1024

    /// Creates a writer that owns a connection.
    ///
    /// - Parameters:
    ///   - database: The connection.
    ///   - lock: Held during each transaction, so that processes take turns. Default nil: SQLite's lock only.
    ///   - reopen: Opens the file again. Default nil: the connection stays.
    package init(
        _ database: sending Database, lock: ProcessLock? = nil,
        reopening reopen: (@Sendable () throws -> sending Database)? = nil
    ) {
        link = Locked(Link(database: database))
        self.lock = lock
        open = reopen
        thread = BlockingExecutor(threads: 1, name: "vitrine-writer")
    }

    /// Creates a writer for a file that cannot be opened for writing now, because of missing space or permission.
    ///
    /// - Parameters:
    ///   - lock: Held during each transaction.
    ///   - open: Called before each transaction until it succeeds. The jobs fail with its error.
    package init(lock: ProcessLock? = nil, opening open: @escaping @Sendable () throws -> sending Database) {
        link = Locked(Link())
        self.lock = lock
        self.open = open
        thread = BlockingExecutor(threads: 1, name: "vitrine-writer")
    }

    /// The counters since the creation of the writer.
    package var statistics: Statistics { queue.withLock { $0.statistics } }

    // MARK: Writing

    /// Queues a job. The completion is called on the writer's thread after the commit.
    ///
    /// - Parameters:
    ///   - job: Runs on the writer's thread inside a transaction. It must not keep the connection.
    ///   - completion: Receives the result of the job, or the error of the transaction (``DatabaseError``, or
    ///     `FileError` from the lock). It must be short and must not wait for this writer.
    package func submit<Value: Sendable>(
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

    /// Runs a job and returns when it is committed. The job runs even if the calling task is cancelled.
    ///
    /// - Throws: The error of the job or of the transaction.
    package func write<Value: Sendable>(_ job: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            submit(job) { continuation.resume(with: $0) }
        }
    }

    /// ``write(_:)`` for threads that may block. Never from a job: it would wait for itself.
    package func writeBlocking<Value: Sendable>(_ job: @escaping @Sendable (Database) throws -> Value) throws -> Value {
        let promise = AsyncPromise<Result<Value, any Error>>()
        submit(job) { promise.fulfill($0) }
        return try promise.wait().get()
    }

    /// A state of the file as far as others change it. Two states that are equal are the same.
    package struct ForeignState: Sendable, Equatable {
        fileprivate let connection: Int
        fileprivate let changes: Int64
    }

    /// The state of the file as far as other connections change it. Opens the file again after a failure. Blocks.
    ///
    /// - Returns: nil if a transaction was running.
    /// - Throws: If the file cannot be opened for writing or read: nothing is known of it then.
    package func foreignState() throws -> ForeignState? {
        try link.withLockIfAvailable { link throws -> ForeignState in
            let database = try link.database ?? usable(&link)
            try database.checkIndex()
            return ForeignState(connection: link.number, changes: try database.changesOfOthers())
        }
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
        return link.withLock { link in
            let database: Database
            do {
                database = try usable(&link)
            } catch {
                for job in batch { job.fail(error) }
                return 0
            }
            // A state that a failure has set in SQLite ends with its connection.
            defer { if open != nil, batch.contains(where: \.hasFailedBySystem) { link.database = nil } }
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

    /// The connection, opened again if its file is gone or cannot be used.
    private func usable(_ link: inout Link) throws -> Database {
        if let database = link.database {
            guard open != nil else {
                try database.checkLog()
                return database
            }
            do throws(DatabaseError) {
                try database.checkLog()
                if database.isCurrent { return database }
                Log.logger("database").notice(
                    "A database was deleted or replaced while it was open", metadata: ["path": "\(database.path)"])
            } catch {
                Log.logger("database").notice("A database is opened again", metadata: ["error": "\(error)"])
            }
            link.database = nil
        }
        guard let open else {
            throw DatabaseError(code: SQLITE_CANTOPEN, message: "there is no connection", path: "")
        }
        let opened = try open()
        link.database = opened
        link.number += 1
        return opened
    }

    private enum Attempt {
        case committed
        /// All jobs have their error.
        case failed
        /// The transaction was rolled back by the job with this index, or by an unknown job for nil.
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

/// A job of a ``DatabaseWriter`` with any result type.
protocol WriterJobRunning: Sendable {
    /// Runs the job and stores its result, replacing an earlier one.
    ///
    /// - Throws: The error of the job.
    func run(_ database: Database) throws
    /// Makes an error the outcome, unless the job has failed by itself.
    func fail(_ error: any Error)
    /// Whether it has failed in a way that a new connection may not.
    var hasFailedBySystem: Bool { get }
    /// Tells the outcome.
    func finish()
}

/// One job of a ``DatabaseWriter`` with its outcome so far.
final class WriterJob<Value: Sendable>: WriterJobRunning {
    private let body: @Sendable (Database) throws -> Value
    private let completion: @Sendable (Result<Value, any Error>) -> Void
    private let outcome = Locked<Result<Value, any Error>?>(nil)

    init(
        body: @escaping @Sendable (Database) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        self.body = body
        self.completion = completion
    }

    func run(_ database: Database) throws {
        let result = Result { try body(database) }
        outcome.withLock { $0 = result }
        _ = try result.get()
    }

    func fail(_ error: any Error) {
        outcome.withLock { outcome in
            if case .failure = outcome { return }
            outcome = .failure(error)
        }
    }

    var hasFailedBySystem: Bool {
        guard case .failure(let error as DatabaseError) = outcome.withLock({ $0 }) else { return false }
        return error.mayEndWithConnection
    }

    func finish() {
        if let result = outcome.withLock({ $0 }) { completion(result) }
    }
}
