import TestSupport
import Testing
import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

@Suite struct DatabaseTests {
    struct Stop: Error {}

    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func open(_ name: String = "a.sqlite") throws -> Database { try Database(path: directory.file(name)) }

    @Test func storesAndReadsBackEveryKindOfValue() throws {
        let database = try open()
        try database.execute("CREATE TABLE t(a, b, c, d, e, f, g)")
        let insert = try database.prepare("INSERT INTO t VALUES(?,?,?,?,?,?,?)")
        let blob = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        insert.bind(Int64.min, at: 1)
        insert.bind(0.1, at: 2)
        insert.bind("", at: 3)
        insert.bind([], at: 4)
        insert.bindNull(at: 5)
        insert.bind("a\0b\u{1F4A7}", at: 6)
        insert.bind(blob, at: 7)
        try insert.run()
        let select = try database.prepare("SELECT a,b,c,d,e,f,g FROM t")
        #expect(try select.step())
        #expect(select.integer(at: 0) == .min)
        #expect(select.double(at: 1) == 0.1)
        #expect(!select.isNull(at: 2) && select.text(at: 2).isEmpty)
        #expect(!select.isNull(at: 3) && select.bytes(at: 3).isEmpty)
        #expect(select.isNull(at: 4) && select.integerIfPresent(at: 4) == nil && select.text(at: 4) == "")
        #expect(select.text(at: 5) == "a\0b\u{1F4A7}")
        #expect(select.bytes(at: 6) == blob)
        #expect(try !select.step())
    }

    #if os(Linux)
    @Test func aWriteBehindACutLogFailsAndIsNotVisible() throws {
        let writer = try open(), reader = try open()
        try writer.execute("CREATE TABLE t(a);INSERT INTO t VALUES(1)")
        let log = directory.file("a.sqlite-wal")
        var status = stat()
        #expect(stat(log, &status) == 0)
        let size = Int(status.st_size)
        // In the middle of the last frame, of 24 bytes and a page.
        #expect(truncate(log, off_t(size - 4000)) == 0)
        let error = #expect(throws: DatabaseError.self) { try writer.execute("INSERT INTO t VALUES(2)") }
        #expect(error?.reason == .corrupt)
        #expect(stat(log, &status) == 0 && Int(status.st_size) == size - 4000)
        #expect((try? reader.integer("SELECT count(*) FROM t WHERE a=2")) ?? 0 == 0)
    }
    #endif

    @Test func borrowedBytesAreStoredAndThenForgotten() throws {
        let database = try open()
        try database.execute("CREATE TABLE t(a)")
        let insert = try database.prepare("INSERT INTO t VALUES(?)")
        try insert.binding([1, 2, 3], at: 1) { () throws(DatabaseError) in try insert.run() }
        try insert.binding([], at: 1) { () throws(DatabaseError) in try insert.run() }
        try insert.run()
        #expect(try database.integer("SELECT count(*) FROM t WHERE a IS NULL") == 1)
        #expect(try database.integer("SELECT count(*) FROM t WHERE a=x'010203'") == 1)
    }

    @Test func bindingEndsTheRunBefore() throws {
        let database = try open()
        let select = try database.prepare("SELECT ? UNION ALL SELECT 9")
        select.bind(1, at: 1)
        #expect(try select.step())
        select.bind(2, at: 1)
        #expect(try select.step())
        #expect(select.integer(at: 0) == 2)
    }

    @Test func aConnectionEndsWithItsUsers() throws {
        weak var database: Database?
        do {
            let opened = try open()
            try opened.transaction { try opened.execute("CREATE TABLE t(a)") }
            _ = try opened.integer("SELECT count(*) FROM t")
            database = opened
        }
        #expect(database == nil)
        #expect(directory.names == ["a.sqlite"], "the log is moved into the file at the end")
    }

    @Test func aThrowingTransactionChangesNothing() throws {
        let database = try open()
        try database.execute("CREATE TABLE t(a)")
        #expect(throws: Stop.self) {
            try database.transaction {
                try database.execute("INSERT INTO t VALUES(1)")
                throw Stop()
            }
        }
        #expect(!database.isInTransaction)
        #expect(try database.integer("SELECT count(*) FROM t") == 0)
    }

    @Test func anInnerTransactionIsUndoneAlone() throws {
        let database = try open()
        try database.execute("CREATE TABLE t(a)")
        try database.transaction {
            try database.execute("INSERT INTO t VALUES(1)")
            #expect(throws: Stop.self) {
                try database.transaction {
                    try database.execute("INSERT INTO t VALUES(2)")
                    throw Stop()
                }
            }
            try database.transaction { try database.execute("INSERT INTO t VALUES(4)") }
        }
        #expect(try database.integer("SELECT sum(a) FROM t") == 5)
    }

    @Test func keptStatementsAreReadyAtEachCall() throws {
        let database = try open()
        let first = try database.cachedStatement("SELECT 1 UNION ALL SELECT 2")
        #expect(try first.step())
        let second = try database.cachedStatement("SELECT 1 UNION ALL SELECT 2")
        #expect(first === second)
        #expect(try second.step())
        #expect(second.integer(at: 0) == 1)
    }

    @Test func onlyOthersChangesCount() throws {
        let one = try open(), two = try open()
        try one.execute("CREATE TABLE t(a)")
        let before = try one.changesOfOthers()
        try one.execute("INSERT INTO t VALUES(1)")
        #expect(try one.changesOfOthers() == before)
        try two.execute("INSERT INTO t VALUES(1)")
        #expect(try one.changesOfOthers() != before)
    }

    @Test func manyConnectionsOpenANewFileAtOnce() async throws {
        let directory = directory
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { try Database(path: directory.file("new")).execute("CREATE TABLE IF NOT EXISTS t(a)") }
            }
            try await group.waitForAll()
        }
    }

    @Test func damageIsFoundByLooking() throws {
        let database = try open()
        try database.execute("CREATE TABLE t(a)")
        #expect(try database.findDamage().isEmpty)
        try database.execute("VACUUM")
    }
}
