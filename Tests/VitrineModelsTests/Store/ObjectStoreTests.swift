import Foundation
import ModelsSamples
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase
import VitrineModels

@Suite struct ObjectStoreTests {
    private let directory: TemporaryDirectory
    private let store: ObjectStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try Self.store(directory)
    }

    /// A store as another process would have it, with types of its own.
    private static func store(
        _ directory: TemporaryDirectory, _ registry: TypeRegistry = TypeRegistry(),
        _ durability: Durability = .relaxed
    ) throws -> ObjectStore {
        try ObjectStore(
            at: directory.file("a.sqlite"),
            configuration: .init(durability: durability, coder: PersistentCoder(registry: registry)))
    }

    // MARK: Objects

    @Test func putsAreVisibleToOtherStores() async throws {
        let dog = Dog("Rex")
        dog.chip = "C"
        try await store.put(dog, for: "rex")
        try await store.put([Place("a")], for: "places", in: "x/y")
        try await store.put(7, for: "seven")
        let registry = TypeRegistry()
        try registry.register(Dog.self)
        let other = try Self.store(directory, registry)
        #expect(try other.object(Animal.self, for: "rex") == dog)
        #expect(try other.object([Place].self, for: "places", in: "x/y") == [Place("a")])
        #expect(try other.object(Int.self, for: "seven") == 7)
        #expect(try other.object(Int.self, for: "eight") == nil)
        #expect(try other.object(Int.self, for: "seven", in: "x") == nil)
    }

    @Test func keysMayBeAnything() async throws {
        let keys = ["../up", "a/b", ".", "ö", "nul\u{0}l", "%_*"]
        for (index, key) in keys.enumerated() { try await store.put(index, for: key, in: "g") }
        #expect(try store.keys(in: "g") == keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        for (index, key) in keys.enumerated() { #expect(try store.object(Int.self, for: key, in: "g") == index) }
        await #expect(throws: PersistenceError.self) { try await store.put(1, for: "") }
    }

    @Test func removingKnowsGroups() async throws {
        for group in ["", "a", "a/b", "a0", "ab"] as [GroupPath] { try await store.put(1, for: "k", in: group) }
        try await store.remove("k", in: "ab")
        #expect(try store.object(Int.self, for: "k") == 1)
        #expect(try store.count(in: "ab") == 0)
        #expect(try store.groups() == ["a", "a/b", "a0"])
        try await store.removeGroup("a")
        #expect(try store.groups() == ["a0"])
        #expect(try store.groups(below: "a") == [])
        #expect(try store.object(Int.self, for: "k", in: "a/b") == nil)
        try await store.removeGroup(.standard)
        #expect(try store.keys().isEmpty)
        #expect(try store.groups() == ["a0"])
        try await store.removeAll()
        #expect(try store.groups().isEmpty)
        #expect(try store.keys().isEmpty)
    }

    /// The same names as in a key-value store: no name is special, and what is not named is apart.
    @Test func groupsMayBeAnything() async throws {
        let groups: [GroupPath] = [
            .standard, .reserve, .standard.appending("a"), .reserve.appending("r"), "a/b", "a.b.c", "%2F", "d", "r",
        ] + ["v1.2", "x/y", "..", "ö\0"].map { GroupPath("a").appending($0) }
        for (index, group) in groups.enumerated() { try await store.put(index, for: "k", in: group) }
        for (index, group) in groups.enumerated() {
            #expect(try store.object(Int.self, for: "k", in: group) == index, "\(group)")
            #expect(GroupPath(path: group.path) == group)
        }
        #expect(try Set(store.groups()) == Set(groups.dropFirst()))
        #expect(try store.object(Int.self, for: "k", in: "a//b") == groups.firstIndex(of: "a/b"))
        #expect(try Set(store.groups(below: "a")) == Set(groups.filter { $0.description.hasPrefix("a/") }))
        #expect(try store.groups(below: .standard) == [.standard.appending("a")])
        #expect(try store.groups(below: .reserve) == [.reserve.appending("r")])
        try await store.removeAll()
        #expect(try store.groups() == [.reserve, .reserve.appending("r")])
        try await store.removeGroup(.reserve)
        #expect(try store.groups() == [])
        try await store.put(1, for: "k", in: .reserve)
        try await store.removeAll(keepingReserve: false)
        #expect(try store.groups() == [])
    }

    @Test func keysAreSortedAndLimited() async throws {
        try await store.transaction { batch throws(PersistenceError) in
            for key in ["b1", "a", "b2", "c"] { try batch.put(1, for: key) }
        }
        #expect(try store.keys() == ["a", "b1", "b2", "c"])
        #expect(try store.keys(prefix: "b", descending: true) == ["b2", "b1"])
        #expect(try store.keys(descending: true, limit: 1) == ["c"])
        for key in ["b\u{0}x", "b\u{0}y", "ö", "öö"] { try await store.put(1, for: key) }
        #expect(try store.keys(prefix: "b\u{0}") == ["b\u{0}x", "b\u{0}y"])
        #expect(try store.keys(prefix: "ö", limit: 3) == ["ö", "öö"])
    }

    @Test func transactionsAreAllOrNothing() async throws {
        await #expect(throws: PersistenceError.self) {
            try await store.transaction { batch throws(PersistenceError) in
                try batch.put(1, for: "a")
                try batch.put(1, for: "")
            }
        }
        #expect(try store.keys().isEmpty)
        try await store.put(1, for: "old")
        try await store.transaction { batch throws(PersistenceError) in
            try batch.put(2, for: "new")
            batch.remove("old")
        }
        #expect(try store.keys() == ["new"])
    }

    @Test @MainActor func objectsStayInTheirIsolation() async throws {
        // Animal is not Sendable: this compiles as only bytes travel.
        let animal = Animal("Tom")
        try await store.put(animal, for: "tom")
        animal.name = "Tim"
        #expect(try store.object(Animal.self, for: "tom")?.name == "Tom")
    }

    @Test func manyAtOnceShareCommits() async throws {
        let store = try Self.store(directory, TypeRegistry(), .full)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<200 { group.addTask { try await store.put(index, for: "\(index)", in: "many") } }
            try await group.waitForAll()
        }
        #expect(try store.count(in: "many") == 200)
    }

    // MARK: Schemas

    @Test func dataIsReadWithoutItsCode() async throws {
        try await store.put(Dog("Rex"), for: "rex")
        guard case .record(let data)? = try Self.store(directory).tree(for: "rex") else {
            Issue.record("no record")
            return
        }
        #expect(data.typeName == "Dog")
        #expect(data.tree("name") == .string("Rex"))
    }

    @Test func schemasOfLaterWritersAreFound() async throws {
        let reader = try Self.store(directory)
        try await store.put(Dog("Rex"), for: "rex")
        #expect(try reader.tree(for: "rex")?.persistentDescription.contains("Rex") == true)
    }

    @Test func changedTypeWithoutVersionIsRefusedAtTheFirstPut() async throws {
        try await store.put(Dated<TwoNumbers>([1, 2]), for: "a")
        let other = try Self.store(directory)
        await #expect(
            throws: PersistenceError.changedWithoutVersion(
                type: "Dated", version: "1", differences: ["b was removed"])
        ) { try await other.put(Dated<Shrunk>([1]), for: "b") }
        #expect(try store.keys() == ["a"])
        #expect(try store.object(Dated<TwoNumbers>.self, for: "a")?.values == [1, 2])
    }

    // MARK: Migration

    @Test func oldObjectsAreStoredInTheirNewFormWhenRead() async throws {
        try await store.put(Dated<TwoNumbers>([1, 2]), for: "a")
        let later = try Self.store(directory)
        #expect(try later.object(Dated<TheirSum>.self, for: "a")?.values == [3])
        // A write of the same store comes after what reading it stored.
        try await later.put(1, for: "b")
        guard case .record(let data)? = try Self.store(directory).tree(for: "a") else {
            Issue.record("no record")
            return
        }
        #expect(data.version == "2")
        #expect(data.names == ["sum"])
    }

    @Test func groupsAreMigratedWithRehearsalAndReports() async throws {
        try await store.transaction { batch throws(PersistenceError) in
            for index in 0..<2500 { try batch.put(Dated<TwoNumbers>([index, 1]), for: "\(index)", in: "g") }
            try batch.put(Dated<TwoNumbers>([-1, 1]), for: "bad", in: "g")
            try batch.put(Dated<TwoNumbers>([5, 5]), for: "other")
        }
        let later = try Self.store(directory)
        func events(dryRun: Bool) async throws -> [ObjectMigrationEvent] {
            var events: [ObjectMigrationEvent] = []
            for try await event in later.migrate(Dated<TheirSum>.self, in: "g", dryRun: dryRun) { events.append(event) }
            return events
        }
        for dryRun in [true, false] {
            let events = try await events(dryRun: dryRun)
            #expect(events.last == .progress(done: 2501, total: 2501))
            #expect(events.count == 4)
            guard case .failed("bad", .migrationFailed)? = events.dropLast().last else {
                Issue.record("\(events)")
                return
            }
        }
        // Only what failed is left.
        #expect(try await events(dryRun: true).last == .progress(done: 1, total: 1))
        #expect(try later.object(Dated<TheirSum>.self, for: "7", in: "g")?.values == [8])
        #expect(try store.object(Dated<TwoNumbers>.self, for: "other")?.values == [5, 5])
    }

    @Test func aMigrationThatAnotherProcessFinishesComesToItsEnd() async throws {
        try await store.transaction { batch throws(PersistenceError) in
            for index in 0..<2500 { try batch.put(Dated<TwoNumbers>([index, 1]), for: "\(index)", in: "g") }
        }
        let one = try Self.store(directory), other = try Self.store(directory)
        var events = one.migrate(Dated<TheirSum>.self, in: "g").makeAsyncIterator()
        #expect(try await events.next() == .progress(done: 1000, total: 2500))
        for try await _ in other.migrate(Dated<TheirSum>.self, in: "g") {}
        var last: ObjectMigrationEvent?
        while let event = try await events.next() { last = event }
        #expect(last == .progress(done: 2500, total: 2500))
    }

    // MARK: Changes

    @Test func changesAreReported() async throws {
        var changes = store.changes(in: "a").makeAsyncIterator()
        try await store.put(1, for: "x")
        try await store.put(1, for: "k", in: "a/b")
        try await store.remove("k", in: "a/b")
        try await store.removeGroup(.standard)
        try await store.removeGroup("a/b")
        try await store.removeAll()
        #expect(await changes.next() == .put(key: "k", group: "a/b"))
        #expect(await changes.next() == .removed(key: "k", group: "a/b"))
        #expect(await changes.next() == .removedGroup("a/b"))
        #expect(await changes.next() == .removedAll)
    }

    @Test func changesByOthersAreNoticed() async throws {
        let other = try Self.store(directory)
        var changes = store.changes(interval: .milliseconds(5)).makeAsyncIterator()
        try await other.put(1, for: "x")
        #expect(await changes.next() == .elsewhere)
    }

    // MARK: Files

    @Test func otherFilesAreLeftAlone() throws {
        try directory.write("no database, but a text of some length", to: "text")
        #expect(throws: PersistenceError.self) { try ObjectStore(at: directory.file("text")) }
        #expect(directory.read("text") == "no database, but a text of some length")
        let database = try Database(path: directory.file("other"))
        try database.execute("CREATE TABLE t(a)")
        let error = #expect(throws: PersistenceError.self) { try ObjectStore(at: directory.file("other")) }
        #expect(error?.code == "not-a-store")
        #expect(throws: PersistenceError.self) { try ObjectStore(at: directory.path) }
        #expect(throws: PersistenceError.self) { try ObjectStore(at: directory.file("none/a.sqlite")) }
    }

    @Test func schemaThatCannotBeReadCostsItsOwnObjectsOnly() async throws {
        try await store.put(Place("x"), for: "place")
        try await store.put(Dog("Rex"), for: "dog")
        let database = try Database(path: directory.file("a.sqlite"))
        try database.execute("UPDATE schema SET record=x'0102' WHERE type='Dog'")
        let other = try Self.store(directory)
        #expect(try other.object(Place.self, for: "place") == Place("x"))
        // Its type's code is enough while it has not changed.
        let registry = TypeRegistry()
        try registry.register(Dog.self)
        #expect(try Self.store(directory, registry).object(Animal.self, for: "dog") is Dog)
        #expect(try Self.store(directory).keys() == ["dog", "place"])
    }
}

private enum Shrunk: DatedBuild {
    static var version: SchemaVersion { "1" }
    static var properties: [DatedProperty] { [DatedProperty(name: "a")] }
}
