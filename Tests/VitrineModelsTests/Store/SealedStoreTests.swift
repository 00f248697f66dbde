import ModelsSamples
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase
import VitrineModels

/// Stores with a cipher. What real ones do is tested in Checks/Encryption.
@Suite struct SealedStoreTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func open(_ cipher: ToyCipher?, memory: Bool = false) throws -> ObjectStore {
        try ObjectStore(
            at: directory.file("a.sqlite"),
            configuration: .init(
                durability: .relaxed, coder: PersistentCoder(registry: TypeRegistry()), cipher: cipher,
                memoryCapacity: memory ? .megabytes(1) : .zero))
    }

    @Test(arguments: [false, true])
    func valuesAreSealedAndComeBack(memory: Bool) async throws {
        let store = try open(ToyCipher(key: 7), memory: memory)
        try await store.put(Dog("a name that is not to be read"), for: "k", in: "g")
        #expect(try store.object(Dog.self, for: "k", in: "g")?.name == "a name that is not to be read")
        #expect(try store.object(Dog.self, for: "k", in: "g")?.barks == 3)
        #expect(try await store.verify().isIntact)
        try await store.backUp(to: directory.file("copy"))
        for name in directory.names {
            #expect(!contains(directory.file(name), "not to be read"), "\(name)")
        }
        #expect(try open(ToyCipher(key: 7)).object(Dog.self, for: "k", in: "g")?.barks == 3)
    }

    private func contains(_ path: String, _ text: String) -> Bool {
        guard let bytes = try? FileContents.read(path) else { return true }
        let wanted = Array(text.utf8)
        return bytes.indices.contains { bytes[$0...].starts(with: wanted) }
    }

    @Test func anotherKeyIsATypedErrorAndChangesNothing() async throws {
        try await open(ToyCipher(key: 7)).put(1, for: "k")
        let wrong: [(ToyCipher?, String)] = [
            (ToyCipher(key: 8), "another key"), (nil, "no key was given"),
            (ToyCipher(key: 7, name: "other"), "by toy, not by other"),
        ]
        for (cipher, reason) in wrong {
            let error = #expect(throws: PersistenceError.self) { try open(cipher) }
            #expect(error?.code == "wrong-key")
            #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
        }
        #expect(try open(ToyCipher(key: 7)).object(Int.self, for: "k") == 1)
    }

    @Test func aKeyForAnOpenStoreIsATypedError() async throws {
        try await open(nil).put(1, for: "k")
        let error = #expect(throws: PersistenceError.self) { try open(ToyCipher(key: 7)) }
        #expect(error?.code == "wrong-key")
        #expect(try open(nil).object(Int.self, for: "k") == 1)
    }

    @Test func valuesCannotBeMovedOrChanged() async throws {
        let store = try open(ToyCipher(key: 7))
        try await store.put(1, for: "a", in: "g")
        try await store.put(2, for: "b", in: "g")
        try await store.put(3, for: "c", in: "g")
        let database = try Database(path: store.path)
        try database.execute(
            """
            UPDATE object SET value=(SELECT value FROM object WHERE key='a') WHERE key='b';
            UPDATE object SET value=value||x'00' WHERE key='c';
            """)
        for key in ["b", "c"] {
            #expect(throws: PersistenceError.unreadable(key: key, group: "g", .damaged)) {
                try store.object(Int.self, for: key, in: "g")
            }
        }
        #expect(try store.object(Int.self, for: "a", in: "g") == 1)
        #expect(try await store.verify().damaged == ["b", "c"].map { .unreadable(key: $0, group: "g", .damaged) })
    }

    @Test(arguments: [false, true])
    func oldObjectsAreSealedAgain(memory: Bool) async throws {
        let store = try open(ToyCipher(key: 7))
        for key in ["a", "b"] { try await store.put(Dated<TwoNumbers>([1, 2]), for: key) }
        let later = try open(ToyCipher(key: 7), memory: memory)
        #expect(try later.object(Dated<TheirSum>.self, for: "a")?.values == [3])
        try await later.put(0, for: "c")
        for try await event in later.migrate(Dated<TheirSum>.self) {
            #expect(event == .progress(done: 1, total: 1))
        }
        #expect(try later.storedVersions().first { $0.version == "2" }?.count == 2)
        for key in ["a", "b"] { #expect(try later.object(Dated<TheirSum>.self, for: key)?.values == [3]) }
        #expect(try await later.verify().isIntact)
    }
}
