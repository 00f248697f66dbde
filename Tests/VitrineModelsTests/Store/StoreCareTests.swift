import Foundation
import ModelsSamples
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase
import VitrineModels

/// What a store tells of itself, and how it is looked after.
@Suite struct StoreCareTests {
    private let directory: TemporaryDirectory
    private let store: ObjectStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try Self.open(directory.file("a.sqlite"))
    }

    private static func open(
        _ path: String, _ change: (inout ObjectStore.Configuration) -> Void = { _ in }
    ) throws -> ObjectStore {
        var configuration = ObjectStore.Configuration(
            durability: .relaxed, coder: PersistentCoder(registry: TypeRegistry()))
        change(&configuration)
        return try ObjectStore(at: path, configuration: configuration)
    }

    // MARK: After failures

    #if os(Linux)
    @Test(arguments: ["removed", "replaced"]) func nothingIsStoredInADeletedFile(how: String) async throws {
        try await store.put(1, for: "a")
        #expect(try store.object(Int.self, for: "a") == 1)
        for end in ["", "-wal", "-shm"] { #expect(unlink(store.path + end) == 0) }
        if how == "replaced" {
            do { _ = try Self.open(directory.file("b.sqlite")) }
            #expect(rename(directory.file("b.sqlite"), store.path) == 0)
        }
        try await store.put(2, for: "b")
        let other = try Self.open(store.path)
        #expect(try other.object(Int.self, for: "b") == 2)
        #expect(try other.object(Int.self, for: "a") == nil)
        #expect(try store.object(Int.self, for: "b") == 2)
    }

    @Test(arguments: ["", "-wal", "-shm"]) func oneFailedOpenIsNotRemembered(suffix: String) async throws {
        try await store.put(1, for: "a")
        let copy = directory.file("b.sqlite")
        for end in ["", "-wal", "-shm"] {
            try FileManager.default.copyItem(atPath: store.path + end, toPath: copy + end)
        }
        let fault = DatabaseFault(.openForWriting, at: copy + suffix, code: EMFILE, times: 1)
        let opened = try? Self.open(copy)
        fault.end()
        let again = try opened ?? Self.open(copy)
        #expect(try again.object(Int.self, for: "a") == 1)
        try await again.put(2, for: "a")
        #expect(try Self.open(copy).object(Int.self, for: "a") == 2)
    }

    @Test func aFailedReadIsToldAndPasses() async throws {
        try await store.put([UInt8](repeating: 7, count: 60_000).map { Int($0) }, for: "a")
        try Database(path: store.path).checkpoint(.truncating)
        let other = try Self.open(store.path)
        let fault = DatabaseFault(.read, at: directory.path + "/", code: EIO)
        let error = #expect(throws: PersistenceError.self) { try other.object([Int].self, for: "a") }
        #expect(error?.description.contains("Input/output error") == true, "\(String(describing: error))")
        fault.end()
        #expect(try other.object([Int].self, for: "a")?.count == 60_000)
        try await other.put(1, for: "b")
        #expect(try store.object(Int.self, for: "b") == 1)
    }
    #endif

    // MARK: Looking

    @Test func plainValuesHaveDefaults() async throws {
        #expect(try store.object(for: "isOn") ?? true)
        #expect(try store.object(for: "number", in: "g") ?? 0.1 == 0.1)
        try await store.put(false, for: "isOn")
        try await store.put(0.1, for: "number", in: "g")
        #expect((try store.object(for: "isOn") ?? true) == false)
        #expect((try store.object(for: "number", in: "g") ?? 0.0) == 0.1)
    }

    @Test func entriesComeInPagesWithTypesAndSizes() async throws {
        for key in ["b", "a", "c"] { try await store.put(Place(key), for: key, in: "g") }
        try await store.put(1, for: "plain", in: "g")
        let first = try store.entries(in: "g", limit: 3)
        #expect(first.map(\.key) == ["a", "b", "c"])
        #expect(first.allSatisfy { $0.type == "Place" && $0.version == "1" && $0.group == "g" })
        #expect(first.allSatisfy { $0.modified > .seconds(1_700_000_000) })
        let second = try store.entries(in: "g", after: "c", limit: 3)
        #expect(second.map(\.key) == ["plain"])
        #expect(second[0].type == "Int" && second[0].version == "0")
        #expect(try store.size(in: "g") == (first + second).reduce(.zero) { $0 + $1.size })
        #expect(try store.size() == .zero)
        #expect(try store.storedVersions().map(\.type) == ["Int", "Place"])
        #expect(try store.storedVersions().map(\.count) == [1, 3])
    }

    // MARK: Care

    @Test func damageIsFoundWithItsKey() async throws {
        for key in ["a", "b", "c"] { try await store.put(Place(key), for: key, in: "g") }
        let intact = try await store.verify()
        #expect(intact.objects == 3 && intact.isIntact)
        try Database(path: store.path).execute("UPDATE object SET value=x'B501' || substr(value, 3, 20) WHERE key='b'")
        let found = try await store.verify()
        #expect(found.objects == 3 && !found.isIntact)
        #expect(found.damaged == [.unreadable(key: "b", group: "g", .damaged)])
    }

    @Test func backupIsTheStoreAtOneMomentWhileItIsUsed() async throws {
        let copy = directory.file("copy.sqlite")
        try directory.write("replaced", to: "copy.sqlite")
        try await store.transaction { batch throws(PersistenceError) in
            for number in 0..<2000 { try batch.put(0, for: "\(number)") }
        }
        let store = store
        let writing = Task {
            // All in one transaction each time: a copy has all of one round or none.
            var round = 0
            while !Task.isCancelled {
                round += 1
                let number = round
                try await store.transaction { batch throws(PersistenceError) in
                    for key in 0..<2000 { try batch.put(number, for: "\(key)") }
                }
            }
        }
        for _ in 0..<5 {
            try await store.backUp(to: copy)
            let other = try Self.open(copy) { $0.isReadOnly = true }
            let first = try other.object(Int.self, for: "0")
            #expect(try (0..<2000).allSatisfy { try other.object(Int.self, for: "\($0)") == first })
            #expect(try await other.verify().isIntact)
        }
        writing.cancel()
        try await writing.value
        // Nothing is left over, and the copy is a store like any other.
        #expect(directory.names.allSatisfy { !$0.hasPrefix(AtomicFile.temporaryPrefix) })
        let other = try Self.open(copy)
        try await other.put(Place("new"), for: "new")
        #expect(try other.count() == 2001)
    }

    @Test func openingRemovesTheCopiesOfKilledProcessesOnly() async throws {
        let living = try AtomicFileWriter(path: directory.file("copy"))
        let dead = AtomicFile.temporaryPrefix + "Ldead"
        try directory.write("x", to: dead)
        _ = try Self.open(directory.file("other"))
        let left = directory.names.filter { $0.hasPrefix(AtomicFile.temporaryPrefix) }
        #expect(left.count == 1 && !left.contains(dead))
        try living.commit()
        #expect(directory.names.contains("copy"))
    }

    @Test func failedBackupLeavesTheExistingFile() async throws {
        try await store.put(1, for: "k")
        await #expect(throws: PersistenceError.file(.notFound(path: directory.file("none/copy")))) {
            try await store.backUp(to: directory.file("none/copy"))
        }
        let error = await #expect(throws: PersistenceError.self) { try await store.backUp(to: directory.path) }
        #expect(error?.code == "file")
    }

    @Test func aVersionIsForgottenByName() async throws {
        for key in ["a", "b"] { try await store.put(Dated<TwoNumbers>([1, 2]), for: key, in: "g") }
        try await store.put(Place("x"), for: "place")
        let later = try Self.open(store.path)
        try await later.put(Dated<TheirSum>([3]), for: "c", in: "g")
        var changes = later.changes().makeAsyncIterator()
        #expect(try await later.forget("Dated", version: "1") == 2)
        #expect(await changes.next() == .removed(key: "a", group: "g"))
        #expect(try later.keys(in: "g") == ["c"])
        #expect(try later.keys() == ["place"])
        #expect(try await later.forget("Dated", version: "1") == 0)
    }

    // MARK: Versions of the program

    @Test func anotherVersionEmptiesAllButReservedGroups() async throws {
        let path = store.path
        func open(_ version: String?, _ compatible: [String] = []) throws -> ObjectStore {
            try Self.open(path) {
                $0.version = version
                $0.compatibleVersions = compatible
            }
        }
        try await store.put(0, for: "k")
        #expect(try open("1").keys() == ["k"])
        for group in ["", "g", "g/h", .reserve, .reserve.appending("below"), "r"] as [GroupPath] {
            try await store.put(1, for: "k", in: group)
        }
        #expect(try open("1").groups().count == 5)
        #expect(try open(nil).groups().count == 5)
        #expect(try open("2", ["1"]).groups().count == 5)
        #expect(try open("3", ["1"]).groups() == [.reserve, .reserve.appending("below")])
        #expect(try store.keys().isEmpty)
        // Schemas stay: what was reserved can be read.
        #expect(try open("3").object(Int.self, for: "k", in: .reserve.appending("below")) == 1)
    }

    @Test func readOnlyStoresReadAndRefuseToWrite() async throws {
        let absent = directory.file("absent.sqlite")
        #expect(throws: PersistenceError.self) { try Self.open(absent) { $0.isReadOnly = true } }
        #expect(!directory.names.contains("absent.sqlite"))
        try await store.put(Dated<TwoNumbers>([1, 2]), for: "k")
        let reader = try Self.open(store.path) { $0.isReadOnly = true }
        // Brought up to date for the reader, and left as it is in the file.
        #expect(try reader.object(Dated<TheirSum>.self, for: "k")?.values == [3])
        let error = await #expect(throws: PersistenceError.self) { try await reader.put(1, for: "k") }
        guard case .database(let failure)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(failure.reason == .readOnly)
        #expect(try store.object(Dated<TwoNumbers>.self, for: "k")?.values == [1, 2])
    }
}
