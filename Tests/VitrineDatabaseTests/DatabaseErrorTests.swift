import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase

@Suite struct DatabaseErrorTests {
    let directory: TemporaryDirectory
    var path: String { directory.file("a.sqlite") }

    init() throws { directory = try TemporaryDirectory() }

    private func reason(_ body: () throws -> Void) -> DatabaseError.Reason? {
        do {
            try body()
            return nil
        } catch {
            return (error as? DatabaseError)?.reason
        }
    }

    @Test func aFileThatIsNoDatabaseIsCorrupt() throws {
        try directory.write(String(repeating: "no database ", count: 500), to: "a.sqlite")
        #expect(reason { _ = try Database(path: path) } == .corrupt)
        var options = Database.Options()
        options.isReadOnly = true
        #expect(reason { _ = try Database(path: path, options: options) } == .corrupt)
    }

    @Test func aTruncatedFileIsCorrupt() throws {
        do {
            let database = try Database(path: path)
            try database.execute("CREATE TABLE t(a)")
            let insert = try database.prepare("INSERT INTO t VALUES(?)")
            for _ in 0..<100 {
                insert.bind([UInt8](repeating: 7, count: 3000), at: 1)
                try insert.run()
            }
            try database.checkpoint(.truncating)
        }
        let handle = try #require(FileHandle(forWritingAtPath: path))
        try handle.truncate(atOffset: 40_000)
        try handle.close()
        let found = reason {
            let database = try Database(path: path)
            _ = try database.integer("SELECT sum(length(a)) FROM t")
        }
        #expect(found == .corrupt)
    }

    @Test func namesThatNoFileHasCannotBeOpened() {
        #expect(reason { _ = try Database(path: "") } == .cannotOpen)
        #expect(reason { _ = try Database(path: path + "\0b") } == .cannotOpen)
        #expect(reason { _ = try Database(path: directory.file("missing/a")) } == .cannotOpen)
    }

    @Test func readOnlyConnectionsDoNotWrite() throws {
        let writer = try Database(path: path)
        try writer.execute("CREATE TABLE t(a); INSERT INTO t VALUES(1)")
        var options = Database.Options()
        options.isReadOnly = true
        let database = try Database(path: path, options: options)
        #expect(try database.integer("SELECT a FROM t") == 1)
        #expect(reason { try database.execute("INSERT INTO t VALUES(2)") } == .readOnly)
    }

    @Test func anImmutableFileIsReadWithoutItsLog() throws {
        do {
            let writer = try Database(path: directory.file("a #?%é.sqlite"))
            try writer.execute("CREATE TABLE t(a); INSERT INTO t VALUES(1)")
        }
        #expect(directory.names == ["a #?%é.sqlite"], "a connection that goes takes its log along")
        var options = Database.Options()
        options.isReadOnly = true
        options.isImmutable = true
        let database = try Database(path: directory.file("a #?%é.sqlite"), options: options)
        #expect(try database.integer("SELECT a FROM t") == 1)
        #expect(directory.names == ["a #?%é.sqlite"])
    }

    @Test func aSecondWriterIsBusy() throws {
        let one = try Database(path: path)
        try one.execute("CREATE TABLE t(a)")
        var options = Database.Options()
        options.busyMilliseconds = 1
        let two = try Database(path: path, options: options)
        try one.beginTransaction()
        #expect(reason { try two.beginTransaction() } == .busy)
        one.rollbackTransaction()
        #expect(reason { try two.transaction { try two.execute("INSERT INTO t VALUES(1)") } } == nil)
    }

    @Test func aDatabaseAtItsMaximumIsFull() throws {
        let database = try Database(path: path)
        try database.execute("CREATE TABLE t(a); PRAGMA max_page_count=10")
        let insert = try database.prepare("INSERT INTO t VALUES(?)")
        insert.bind([UInt8](repeating: 1, count: 100_000), at: 1)
        #expect(reason { try insert.run() } == .full)
        insert.bind([1], at: 1)
        try insert.run()
        #expect(try database.integer("SELECT count(*) FROM t") == 1)
    }

    @Test func constraintsAndMistakesAreToldApart() throws {
        let database = try Database(path: path)
        try database.execute("CREATE TABLE t(a UNIQUE)")
        let insert = try database.prepare("INSERT INTO t VALUES(?)")
        insert.bind(1, at: 1)
        try insert.run()
        #expect(reason { try insert.run() } == .constraint)
        insert.bind(2, at: 1)
        try insert.run()
        #expect(reason { _ = try database.prepare("SELEC 1") } == .other)
        #expect(reason { _ = try database.prepare("SELECT 1; SELECT 2") } == .other)
        #expect(reason { _ = try database.prepare("SELECT 1; ") } == nil)
        #expect(reason { _ = try database.prepare("") } == .other)
        let error = #expect(throws: DatabaseError.self) { try database.execute("INSERT INTO t VALUES(1)") }
        #expect(error?.description.contains("INSERT") == true)
        #expect(error?.path == path)
    }

    @Test func aParameterThatIsNotThereIsAnError() throws {
        let database = try Database(path: path)
        let select = try database.prepare("SELECT ?")
        select.bind(1, at: 2)
        #expect(throws: DatabaseError.self) { _ = try select.step() }
        select.bind(1, at: 1)
        #expect(try select.step())
    }
}
