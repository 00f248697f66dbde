#if os(Linux)
import Foundation
import Glibc
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase

/// Failures of the system that begin and end while a database is open, and files that other programs change.
@Suite struct SystemFaultTests {
    let directory: TemporaryDirectory
    var path: String { directory.file("a.sqlite") }

    init() throws { directory = try TemporaryDirectory() }

    private static let schema = "CREATE TABLE IF NOT EXISTS t(a INTEGER, b BLOB)"

    private func reason(_ body: () throws -> Void) -> DatabaseError.Reason? {
        do {
            try body()
            return nil
        } catch {
            return (error as? DatabaseError)?.reason
        }
    }

    private func open() throws -> sending Database {
        let database = try Database(path: path)
        try database.execute(Self.schema)
        return database
    }

    private func write(_ number: Int, _ writer: DatabaseWriter) throws {
        try writer.writeBlocking { database in
            let insert = try database.cachedStatement("INSERT INTO t VALUES(?, zeroblob(3000))")
            insert.bind(number, at: 1)
            try insert.run()
        }
    }

    private func writer() throws -> DatabaseWriter {
        let path = path
        return DatabaseWriter(try open()) { () throws -> sending Database in
            let database = try Database(path: path)
            try database.execute(Self.schema)
            return database
        }
    }

    private func reader() throws -> DatabaseReader {
        let path = path
        return try DatabaseReader(path: path) { () throws(DatabaseError) in try Database(path: path) }
    }

    private func numbers(_ reader: DatabaseReader) throws -> [Int64] {
        try reader.read { database throws(DatabaseError) in
            let select = try database.cachedStatement("SELECT a FROM t ORDER BY a")
            defer { select.reset() }
            var found: [Int64] = []
            while try select.step() { found.append(select.integer(at: 0)) }
            return found
        }
    }

    /// What a process that opens the file now finds.
    private func stored() throws -> [Int64] {
        let damage = try Database(path: path).findDamage()
        #expect(damage.isEmpty, "\(damage)")
        return try numbers(try reader())
    }

    private func isDamaged() throws -> Bool {
        try Database.isDamaged(path: path) { database throws(DatabaseError) in try database.execute(Self.schema) }
    }

    @Test func aFailedReadIsNoDamage() throws {
        do {
            let database = try open()
            try database.execute("INSERT INTO t VALUES(1, zeroblob(100000))")
            try database.checkpoint(.truncating)
        }
        var options = Database.Options()
        options.cacheBytes = 4096
        let database = try Database(path: path, options: options)
        let fault = DatabaseFault(.read, at: directory.path + "/", code: EIO)
        #expect(reason { _ = try database.prepare("SELECT b FROM t").step() } == .inputOutput)
        #expect(reason { _ = try isDamaged() } == .inputOutput)
        fault.end()
        #expect(try database.integer("SELECT length(b) FROM t") == 100_000)
        #expect(try !isDamaged())
    }

    @Test func aReaderPassesOverOneFailedRead() throws {
        let writer = try writer()
        try write(1, writer)
        let reader = try reader()
        #expect(try numbers(reader) == [1])
        try write(2, writer)
        let fault = DatabaseFault(.read, at: directory.path + "/", code: EIO, times: 1)
        #expect(try numbers(reader) == [1, 2])
        fault.end()
    }

    @Test(arguments: ["", "-wal", "-shm"], [EMFILE, EACCES, EROFS, EIO])
    func whatCannotBeOpenedForWritingIsNotOpenedForReading(suffix: String, code: Int32) throws {
        // A killed process has left all three files.
        let held = try open()
        try held.execute("INSERT INTO t VALUES(1, x'')")
        for end in ["", "-wal", "-shm"] {
            try FileManager.default.copyItem(atPath: path + end, toPath: directory.file("b.sqlite" + end))
        }
        let copy = directory.file("b.sqlite")
        let fault = DatabaseFault(.openForWriting, at: copy + suffix, code: code, times: 1)
        #expect([.cannotOpen, .readOnly].contains(reason { _ = try Database(path: copy) }))
        let database = try Database(path: copy)
        try database.execute("INSERT INTO t VALUES(2, x'')")
        #expect(try database.integer("SELECT count(*) FROM t") == 2)
        fault.end()
    }

    /// SQLite opens again without creating what it could not create, and returns the error of that.
    @Test(arguments: ["", "-wal", "-shm"]) func aFileThatOnceCouldNotBeCreatedIsCreated(suffix: String) throws {
        let fault = DatabaseFault(.openForWriting, at: path + suffix, code: EMFILE, times: 1)
        #expect(try open().integer("SELECT count(*) FROM t") == 0)
        fault.end()
    }

    @Test func aWriterOpensAgainWhatItCouldNotOpen() throws {
        let writer = try writer()
        try write(1, writer)
        try FileManager.default.removeItem(atPath: path)
        let fault = DatabaseFault(.openForWriting, at: directory.path + "/", code: EMFILE)
        #expect(throws: DatabaseError.self) { try write(2, writer) }
        fault.end()
        try write(3, writer)
        #expect(try stored() == [3])
    }

    @Test(arguments: ["removed", "replaced"])
    func aWriterNoticesThatItsFileIsGone(how: String) throws {
        let writer = try writer(), reader = try reader()
        try write(1, writer)
        #expect(try numbers(reader) == [1])
        for end in ["", "-wal", "-shm"] { try FileManager.default.removeItem(atPath: path + end) }
        if how == "replaced" {
            try Database(path: directory.file("other")).execute(Self.schema)
            #expect(rename(directory.file("other"), path) == 0)
        }
        try write(2, writer)
        #expect(try stored() == [2])
    }

    /// Its connection ends with the failure. What is in memory would be taken for the state of the file until the next
    /// write.
    @Test func aWriterThatFailedSeesChangesOfOthers() throws {
        let writer = try writer()
        try write(1, writer)
        let before = try #require(try writer.foreignState())
        #expect(throws: DatabaseError.self) {
            // SQLITE_IOERR
            try writer.writeBlocking { database in throw DatabaseError(code: 10, message: "", path: database.path) }
        }
        let after = try #require(try writer.foreignState())
        #expect(after != before)
        try Database(path: path).execute("INSERT INTO t(a) VALUES(2)")
        #expect(try writer.foreignState() != after)
        let fault = DatabaseFault(.openForWriting, at: directory.path + "/", code: EMFILE)
        #expect(throws: DatabaseError.self) {
            try writer.writeBlocking { database in throw DatabaseError(code: 10, message: "", path: database.path) }
        }
        #expect(throws: DatabaseError.self) { try writer.foreignState() }
        fault.end()
        #expect(try writer.foreignState() != nil)
    }

    @Test(arguments: [0, 1, 4096]) func anIndexThatIsCutEndsNoProcess(size: Int) throws {
        let writer = try writer(), reader = try reader()
        try write(1, writer)
        #expect(try numbers(reader) == [1])
        #expect(truncate(path + "-shm", size) == 0)
        #expect(try numbers(reader) == [1])
        #expect(truncate(path + "-shm", size) == 0)
        try write(2, writer)
        #expect(truncate(path + "-shm", size) == 0)
        #expect(try writer.foreignState() != nil)
        #expect(try numbers(reader) == [1, 2])
        #expect(try stored() == [1, 2])
    }

    @Test(arguments: [0, 40, 5000, 30_000], [false, true])
    func changesBehindACutLogAreNotLost(size: Int, isMoved: Bool) throws {
        let writer = try writer()
        for number in 1...5 { try write(number, writer) }
        if isMoved {
            // A reader keeps the log from beginning anew.
            let held = try Database(path: path)
            try held.beginTransaction(.deferred)
            #expect(try held.integer("SELECT count(*) FROM t") == 5)
            try write(6, writer)
            try writer.writeBlocking { _ in }
            try Database(path: path).checkpoint()
            held.rollbackTransaction()
        }
        #expect(truncate(path + "-wal", size) == 0)
        try write(7, writer)
        try write(8, writer)
        let found = try stored()
        #expect(found.suffix(2) == [7, 8], "\(found)")
        // What is left is a state that was there.
        let written: [Int64] = [1, 2, 3, 4, 5, 6]
        #expect(found.dropLast(2) == written.prefix(found.count - 2))
        withExtendedLifetime(writer) {}
    }

    @Test func nothingIsCreatedBehindADanglingLink() throws {
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: directory.file("elsewhere"))
        let error = #expect(throws: DatabaseError.self) { try Database(path: path) }
        #expect(error?.reason == .cannotOpen && error?.description.contains("link") == true)
        #expect(directory.names == ["a.sqlite"])
        // A link to a file is followed.
        do { _ = try Database(path: directory.file("elsewhere")) }
        #expect(try Database(path: path).integer("SELECT 1") == 1)
    }

    @Test func aDeletedLogLosesNothing() throws {
        let writer = try writer(), reader = try reader()
        for number in 1...3 { try write(number, writer) }
        #expect(try numbers(reader) == [1, 2, 3])
        try FileManager.default.removeItem(atPath: path + "-wal")
        try write(4, writer)
        #expect(try stored() == [1, 2, 3, 4])
    }
}
#endif
