import ModelsSamples
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase
import VitrineModels

/// Whatever is asked of a store or stands in its file: a typed error that says of which type, key and version, and
/// nothing is overwritten.
@Suite struct BadInputTests {
    private let directory: TemporaryDirectory
    private let store: ObjectStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try Self.open(directory.file("a.sqlite"))
    }

    private static func open(_ path: String) throws -> ObjectStore {
        try ObjectStore(
            at: path, configuration: .init(durability: .relaxed, coder: PersistentCoder(registry: TypeRegistry())))
    }

    /// The reason why a key cannot be read, whose object must be the same before and after.
    private func failure<Value: PersistentValue>(
        _ type: Value.Type, _ key: String, in store: ObjectStore? = nil
    ) throws -> PersistenceError? {
        let store = try store ?? Self.open(directory.file("a.sqlite"))
        let before = try bytes(key)
        let error = #expect(throws: PersistenceError.self) { try store.object(type, for: key, in: "g") }
        #expect(try bytes(key) == before)
        #expect(error?.description.contains("\"\(key)\" in g cannot be read: ") == true, "\(error?.description ?? "")")
        guard case .unreadable(key, "g", let reason)? = error else { return error }
        #expect(error?.code == reason.code && error?.hint == reason.hint)
        return reason
    }

    private func bytes(_ key: String) throws -> [UInt8] {
        let database = try Database(path: directory.file("a.sqlite"))
        let select = try database.prepare("SELECT value FROM object WHERE key=?")
        select.bind(key, at: 1)
        return try select.step() ? select.bytes(at: 0) : []
    }

    @Test func unknownTypesAreNamedAndNotMade() async throws {
        try await store.put(Dog("Rex"), for: "dog", in: "g")
        #expect(try failure(Animal.self, "dog") == .unregisteredType("Dog"))
    }

    @Test func anotherTypeIsNoticed() async throws {
        try await store.put(Place("x"), for: "k", in: "g")
        #expect(try failure(Int.self, "k") == .typeMismatch(path: "Int", expected: "Int", found: "Place"))
        #expect(try failure(Animal.self, "k", in: store)?.code == "type-mismatch")
        #expect(try failure(Animal.self, "k") == .unregisteredType("Place"))
        #expect(try failure(Dated<TwoNumbers>.self, "k")?.code == "type-mismatch")
    }

    @Test func newerDataIsRefusedWithBothVersions() async throws {
        try await store.put(Dated<TheirSum>([3]), for: "k", in: "g")
        #expect(try failure(Dated<TwoNumbers>.self, "k") == .newerThanCode(type: "Dated", stored: "2", code: "1"))
    }

    @Test func failingStepsNameTypeAndVersionsAndCostNoOther() async throws {
        try await store.put(Dated<TwoNumbers>([-1, 2]), for: "bad", in: "g")
        try await store.put(Dated<TwoNumbers>([1, 2]), for: "good", in: "g")
        let later = try Self.open(store.path)
        guard case .migrationFailed("Dated", "1", "2", _)? = try failure(Dated<TheirSum>.self, "bad", in: later) else {
            Issue.record("another error")
            return
        }
        #expect(try later.object(Dated<TheirSum>.self, for: "good", in: "g")?.values == [3])
        #expect(try later.tree(for: "bad", in: "g") != nil)
    }

    @Test func missingPropertiesAreNamed() async throws {
        try await store.put(Dated<TwoNumbers>([1, 2]), for: "k", in: "g")
        #expect(try failure(Dated<Third>.self, "k") == .missingValue(path: "Dated.c"))
    }

    private enum Third: DatedBuild {
        static var version: SchemaVersion { "3" }
        static var properties: [DatedProperty] { [DatedProperty(name: "c")] }
    }

    @Test(arguments: [
        ("x''", PersistenceError.truncated(offset: 0)), ("x'00010203'", .foreign), ("x'B50102'", .truncated(offset: 3)),
        ("x'B563' || zeroblob(30)", .unsupportedFormat(0x63)), ("x'B501' || zeroblob(30)", .damaged),
        ("zeroblob(1000)", .foreign),
    ])
    func damagedValuesSayHow(value: String, reason: PersistenceError) async throws {
        try await store.put(Place("x"), for: "k", in: "g")
        try await store.put(Place("y"), for: "other", in: "g")
        try Database(path: store.path).execute("UPDATE object SET value=\(value) WHERE key='k'")
        #expect(try failure(Place.self, "k") == reason)
        #expect(try store.object(Place.self, for: "other", in: "g") == Place("y"))
    }

    @Test func missingKeysAreNil() throws {
        #expect(try store.object(Place.self, for: "k", in: "none") == nil)
        #expect(try store.tree(for: "", in: "none") == nil)
        #expect(try store.json(for: "k") == nil)
    }

    @Test func storesOfLaterReleasesAreLeftAlone() async throws {
        try await store.put(1, for: "k")
        try Database(path: store.path).execute("PRAGMA user_version=99")
        #expect(
            throws: PersistenceError.notAStore(path: store.path, reason: "its format 99 is unknown")
        ) { try Self.open(store.path) }
        #expect(try store.object(Int.self, for: "k") == 1)
    }

    @Test func filesThatAreCutAreErrorsAndNotEmptied() async throws {
        try await store.transaction { batch throws(PersistenceError) in
            for number in 0..<500 { try batch.put(Place("\(number)"), for: "\(number)") }
        }
        let copy = directory.file("copy.sqlite")
        try await store.backUp(to: copy)
        let whole = try FileContents.read(copy)
        for size in [2, 99, 1000, 4096, 9000, whole.count / 2] {
            try AtomicFile.write(Array(whole.prefix(size)), to: copy)
            #expect(throws: PersistenceError.self, "\(size) bytes") {
                let store = try Self.open(copy)
                for number in 0..<500 { _ = try store.object(Place.self, for: "\(number)") }
            }
        }
    }

    @Test func writesThatFailAreReported() async throws {
        try Database(path: store.path).execute("DROP TABLE object")
        let error = await #expect(throws: PersistenceError.self) { try await store.put(1, for: "k") }
        #expect(error?.code == "database")
    }

    @Test func aBatchThatFailsLeavesNoRecordOfItsTypes() async throws {
        try await store.put(Dated<TwoNumbers>([1, 2]), for: "k")
        let other = try Self.open(store.path)
        await #expect(throws: PersistenceError.self) {
            try await other.transaction { batch throws(PersistenceError) in
                try batch.put(Place("x"), for: "place")
                try batch.put(Dated<OneNumber>([1]), for: "k")
            }
        }
        #expect(try other.storedVersions().map(\.type) == ["Dated"])
        #expect(try other.keys() == ["k"])
    }

    private enum OneNumber: DatedBuild {
        static var version: SchemaVersion { "1" }
        static var properties: [DatedProperty] { [DatedProperty(name: "a")] }
    }
}
