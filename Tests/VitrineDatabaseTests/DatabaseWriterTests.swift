import Dispatch
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase

@Suite struct DatabaseWriterTests {
    struct Stop: Error {}

    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func writer(
        lock: ProcessLock? = nil, setup: String = "CREATE TABLE t(a INTEGER)"
    ) throws -> DatabaseWriter {
        let database = try Database(path: directory.file("a.sqlite"))
        try database.execute(setup)
        return DatabaseWriter(database, lock: lock)
    }

    private static func insert(_ number: Int, _ database: Database) throws {
        let insert = try database.cachedStatement("INSERT INTO t VALUES(?)")
        insert.bind(number, at: 1)
        try insert.run()
    }

    private func sum() throws -> Int64? {
        try Database(path: directory.file("a.sqlite")).integer("SELECT sum(a) FROM t")
    }

    /// Jobs that all go into one transaction: they are queued while the writer is held up by a first one.
    private func together(_ writer: DatabaseWriter, _ submit: () -> Void) throws {
        let started = AsyncPromise<Void>(), go = AsyncPromise<Void>()
        writer.submit { _ in
            started.fulfill(())
            go.wait()
        } completion: { _ in }
        started.wait()
        submit()
        go.fulfill(())
        try writer.writeBlocking { _ in }
    }

    @Test func manyCallersShareCommits() async throws {
        let writer = try writer(lock: try ProcessLock(directory: directory.path))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<64 {
                group.addTask {
                    for _ in 0..<20 { try await writer.write { try Self.insert(caller, $0) } }
                }
            }
            try await group.waitForAll()
        }
        #expect(try sum() == 20 * 63 * 64 / 2)
        #expect(writer.statistics.jobs == 64 * 20)
    }

    @Test func whatWaitsSharesACommit() throws {
        let writer = try writer(lock: try ProcessLock(directory: directory.path))
        try together(writer) {
            DispatchQueue.concurrentPerform(iterations: 64) { caller in
                for _ in 0..<20 { writer.submit { try Self.insert(caller, $0) } completion: { _ in } }
            }
        }
        #expect(try sum() == 20 * 63 * 64 / 2)
        #expect(writer.statistics.commits <= 4, "the first, two of at most 1,024 jobs, and the last")
    }

    @Test func successIsToldAfterTheCommit() async throws {
        let writer = try writer()
        try await writer.write { try Self.insert(1, $0) }
        #expect(try sum() == 1)
        try writer.writeBlocking { try Self.insert(2, $0) }
        #expect(try sum() == 3)
    }

    @Test func jobsRunInTheirOrder() throws {
        let writer = try writer()
        let recorder = Recorder<Int>()
        for number in 0..<3000 { writer.submit { _ in number } completion: { _ in recorder.add(number) } }
        try writer.writeBlocking { _ in }
        #expect(recorder.all == Array(0..<3000))
    }

    @Test func aFailingJobIsUndoneAlone() throws {
        let writer = try writer()
        let failures = Recorder<Int>()
        try together(writer) {
            for number in 1...10 {
                writer.submit { database in
                    try Self.insert(number, database)
                    if number == 5 { throw Stop() }
                } completion: { result in
                    if case .failure = result { failures.add(number) }
                }
            }
        }
        #expect(failures.all == [5])
        #expect(try sum() == 50)
        // The first job's, that of the ten, and perhaps one for the last, which only waits.
        #expect((2...3).contains(writer.statistics.commits))
    }

    @Test func aJobThatFillsTheFileDoesNotTakeOthersAlong() throws {
        let writer = try writer(setup: "CREATE TABLE t(a); PRAGMA max_page_count=20")
        let failures = Recorder<Int>()
        try together(writer) {
            for number in 1...10 {
                writer.submit { database in
                    try Self.insert(number, database)
                    guard number == 5 else { return }
                    let insert = try database.cachedStatement("INSERT INTO t VALUES(?)")
                    insert.bind([UInt8](repeating: 0, count: 1 << 20), at: 1)
                    try insert.run()
                } completion: { result in
                    if case .failure(let error) = result, (error as? DatabaseError)?.reason == .full {
                        failures.add(number)
                    }
                }
            }
        }
        #expect(failures.all == [5])
        #expect(try sum() == 50)
    }

    @Test func aConstraintThatTheCommitFindsFailsItsJobAlone() throws {
        let writer = try writer(
            setup: "CREATE TABLE p(a PRIMARY KEY); CREATE TABLE t(a REFERENCES p DEFERRABLE INITIALLY DEFERRED);"
                + "INSERT INTO p VALUES(1),(2)")
        let failures = Recorder<Int>()
        try together(writer) {
            for number in 1...3 {
                writer.submit { try Self.insert(number, $0) } completion: { result in
                    if case .failure(let error) = result, (error as? DatabaseError)?.reason == .constraint {
                        failures.add(number)
                    }
                }
            }
        }
        #expect(failures.all == [3])
        #expect(try sum() == 3)
    }

    @Test func aTransactionThatCannotBeginFailsAllItsJobs() throws {
        var options = Database.Options()
        options.busyMilliseconds = 1
        let database = try Database(path: directory.file("a.sqlite"), options: options)
        try database.execute("CREATE TABLE t(a)")
        let writer = DatabaseWriter(database)
        let other = try Database(path: directory.file("a.sqlite"))
        let reasons = Recorder<DatabaseError.Reason?>()
        try other.beginTransaction()
        for number in 0..<5 {
            writer.submit { try Self.insert(number, $0) } completion: { result in
                if case .failure(let error) = result { reasons.add((error as? DatabaseError)?.reason) }
            }
        }
        #expect(throws: DatabaseError.self) { try writer.writeBlocking { _ in } }
        #expect(reasons.all == Array(repeating: .busy, count: 5))
        other.rollbackTransaction()
        try writer.writeBlocking { try Self.insert(7, $0) }
        #expect(try sum() == 7)
    }

    @Test func whatWasSubmittedIsWrittenAfterTheWriterIsLetGo() throws {
        let done = AsyncPromise<Void>()
        do {
            let writer = try writer()
            for _ in 0..<100 { writer.submit { try Self.insert(1, $0) } completion: { _ in } }
            writer.submit { _ in } completion: { _ in done.fulfill(()) }
        }
        done.wait()
        #expect(try sum() == 100)
    }
}
