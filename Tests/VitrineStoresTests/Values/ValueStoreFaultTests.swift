#if os(Linux)
import Foundation
import Glibc
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase
import VitrineStores

/// Values after failures of the system and in files that are damaged.
@Suite struct ValueStoreFaultTests {
    let directory: TemporaryDirectory
    private var path: String { directory.file("values-1.sqlite") }
    private static let text = String(repeating: "a value of some length, ", count: 20)

    init() throws { directory = try TemporaryDirectory() }

    /// A store that reads from its file.
    private func store() throws -> KeyValueStore {
        var configuration = KeyValueStore.Configuration()
        configuration.memoryThreshold = .zero
        return try KeyValueStore(directory: directory.path, configuration: configuration)
    }

    private func value(_ store: KeyValueStore, _ key: String) throws -> String? { try store.value(forKey: key) }

    /// Fills many pages, so that damage in one of them is not met by chance.
    private func fill(_ count: Int = 400) throws {
        let store = try store()
        for number in 0..<count { store.set(Self.text + "\(number)", forKey: "key \(number)") }
        try store.blocking.flush()
    }

    private func moveLogIntoFile() throws { try Database(path: path).checkpoint(.truncating) }

    @Test func aPassingReadErrorCostsNothing() throws {
        try fill()
        try moveLogIntoFile()
        let one = try store(), other = try store()
        #expect(try value(other, "key 7") == Self.text + "7")
        let fault = DatabaseFault(.read, at: directory.path + "/", code: EIO)
        for number in stride(from: 0, to: 400, by: 13) {
            // A page in memory is read nevertheless.
            if let found = try? value(one, "key \(number)") { #expect(found == Self.text + "\(number)") }
        }
        #expect(throws: StoreError.self) { try one.set("new", forKey: "key 399").waitUntilCommitted() }
        fault.end()
        for store in [one, other] {
            for number in 0..<399 { #expect(try value(store, "key \(number)") == Self.text + "\(number)") }
            #expect(store.damagedFiles == [])
        }
        try one.set("new", forKey: "key 399").waitUntilCommitted()
        #expect(try value(try store(), "key 399") == "new")
        #expect(!directory.names.contains { $0.contains("damaged") })
    }

    /// An empty table in its place would look like a store without values.
    @Test(arguments: ["entry", "meta"], [false, true])
    func aTableThatAnotherProgramHasDroppedIsDamage(table: String, isOpen: Bool) throws {
        try fill(3)
        let opened = isOpen ? try store() : nil
        try Database(path: path).execute("DROP TABLE \(table)")
        let store = try opened ?? store()
        if isOpen, table == "meta" {
            // Values are read without it, until the file is opened again.
            #expect(try value(store, "key 2") == Self.text + "2")
        } else {
            #expect(try value(store, "key 2") == nil)
            #expect(store.damagedFiles.count == 1)
            #expect(directory.names.contains { $0.contains("damaged") })
        }
        try store.set("new", forKey: "key 1").waitUntilCommitted()
        #expect(try value(store, "key 1") == "new")
    }

    @Test func oneFailedOpenIsNotRemembered() throws {
        try fill(3)
        for (suffix, code) in [("", EMFILE), ("-wal", EIO), ("-shm", EMFILE), ("", EROFS)] {
            let fault = DatabaseFault(.openForWriting, at: path + suffix, code: code, times: 1)
            let opened = try? store()
            fault.end()
            let store = try opened ?? store()
            try store.set("after \(suffix)", forKey: "key 1").waitUntilCommitted()
            #expect(try value(store, "key 1") == "after \(suffix)")
            #expect(try value(store, "key 2") == Self.text + "2")
        }
    }

    @Test func aDamagedFileStaysWhileSomebodyUsesIt() throws {
        try fill()
        try moveLogIntoFile()
        var user: KeyValueStore? = try store()
        #expect(try user?.value(String.self, forKey: "key 3") == Self.text + "3")
        // The pages in the middle, which the user does not have in memory.
        let handle = try #require(FileHandle(forWritingAtPath: path))
        let size = try handle.seekToEnd()
        try handle.seek(toOffset: 8 * 4096)
        try handle.write(contentsOf: [UInt8](repeating: 0xA5, count: Int(size) - 8 * 4096))
        try handle.close()
        let finder = try store()
        for _ in 0..<2 {
            let lost = (0..<400).contains { number in (try? value(finder, "key \(number)")) == nil }
            #expect(lost)
            #expect(finder.damagedFiles == [])
            #expect(throws: StoreError.self) { try finder.set("new", forKey: "new").waitUntilCommitted() }
        }
        user = nil
        _ = user
        try finder.set("new", forKey: "new").waitUntilCommitted()
        #expect(finder.damagedFiles.count == 1)
        #expect(try value(try store(), "new") == "new")
    }

    @Test func changedBytesAreNeverReturned() throws {
        try fill(40)
        try moveLogIntoFile()
        let intact = try #require(FileManager.default.contents(atPath: path))
        var found = 0, refused = 0
        for place in stride(from: 2 * 4096 + 7, to: intact.count, by: 131) {
            let damaged = directory.file("\(place)")
            try FileManager.default.createDirectory(atPath: damaged, withIntermediateDirectories: false)
            var bytes = intact
            bytes[place] ^= 1 << UInt8(place % 8)
            try bytes.write(to: URL(filePath: damaged + "/values-1.sqlite"))
            let store = try KeyValueStore(directory: damaged)
            for number in 0..<40 {
                do throws(StoreError) {
                    guard let value = try store.value(String.self, forKey: "key \(number)") else { continue }
                    #expect(value == Self.text + "\(number)", "byte \(place)")
                    found += 1
                } catch {
                    refused += 1
                }
            }
            try FileManager.default.removeItem(atPath: damaged)
        }
        #expect(found > 1000 && refused > 50, "\(found), \(refused)")
    }

    @Test func aChangedValueIsToldAndCanBeReplaced() throws {
        try fill(3)
        try Database(path: path).execute("UPDATE entry SET value=replace(value, 'some', 'same') WHERE key='key 1'")
        let store = try store()
        let error = #expect(throws: StoreError.self) { try value(store, "key 1") }
        #expect(error?.description.contains("key 1") == true && error?.description.contains("checksum") == true)
        #expect(try value(store, "key 0") == Self.text + "0")
        #expect(store.damagedFiles == [])
        try store.set("new", forKey: "key 1").waitUntilCommitted()
        #expect(try value(store, "key 1") == "new")
    }

    @Test func valuesOfTheFirstFormatAreAdopted() throws {
        let schema = """
            CREATE TABLE IF NOT EXISTS item(
                id INTEGER PRIMARY KEY, path TEXT NOT NULL, key TEXT NOT NULL, kind INTEGER NOT NULL,
                value BLOB NOT NULL, UNIQUE(path, key));
            CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL)
            """
        func writeAsBefore(_ value: String, _ key: String) throws {
            let database = try Database(path: path)
            try database.execute(schema)
            let insert = try database.prepare(
                """
                INSERT INTO item(path, key, kind, value) VALUES(?,?,1,?)
                ON CONFLICT(path, key) DO UPDATE SET kind=excluded.kind, value=excluded.value
                """)
            insert.bind(GroupPath.standard.storedText, at: 1)
            insert.bind(key, at: 2)
            insert.bind(Array(value.utf8), at: 3)
            try insert.run()
        }
        for number in 0..<300 { try writeAsBefore("old \(number)", "key \(number)") }
        do {
            let store = try store()
            for number in 0..<300 { #expect(try value(store, "key \(number)") == "old \(number)") }
            try store.set("new", forKey: "key 1").waitUntilCommitted()
        }
        // The program of before runs once more.
        try writeAsBefore("later", "key 2")
        let store = try store()
        #expect(try value(store, "key 0") == "old 0")
        #expect(try value(store, "key 1") == "new")
        #expect(try value(store, "key 2") == "later")
    }

    @Test func anInterruptedAdoptionLosesNothing() throws {
        let database = try Database(path: path)
        try database.execute(
            """
            CREATE TABLE item(id INTEGER PRIMARY KEY, path TEXT NOT NULL, key TEXT NOT NULL, kind INTEGER NOT NULL,
                value BLOB NOT NULL, UNIQUE(path, key));
            INSERT INTO item(path, key, kind, value) VALUES('\(GroupPath.standard.storedText)', 'a', 1, x'41')
            """)
        // Another process holds the lock for longer than anybody waits, which ends the adoption.
        try database.beginTransaction()
        let fault = DatabaseFault(.read, at: directory.path + "/", code: EIO)
        #expect(throws: StoreError.self) { try store() }
        fault.end()
        database.rollbackTransaction()
        #expect(try value(try store(), "a") == "A")
    }
}
#endif
