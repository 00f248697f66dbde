import ModelsSamples
import TestSupport
import Testing
import VitrineDatabase
import VitrineModels

/// Stores that keep in memory what was read.
@Suite struct StoreMemoryTests {
    private let directory: TemporaryDirectory
    private let store: ObjectStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try Self.open(directory.file("a.sqlite"))
    }

    private static func open(_ path: String) throws -> ObjectStore {
        try ObjectStore(
            at: path,
            configuration: .init(
                durability: .relaxed, coder: PersistentCoder(registry: TypeRegistry()), memoryCapacity: .kilobytes(100)))
    }

    @Test func memoryAnswersRepeatedReads() async throws {
        try await store.put(5, for: "k")
        #expect(store.memoryHits == 0)
        for _ in 0..<10 { #expect(try store.object(Int.self, for: "k") == 5) }
        #expect(store.memoryHits == 9)
        try await store.put([UInt8](repeating: 1, count: 200_000), for: "large")
        for _ in 0..<2 { #expect(try store.object([UInt8].self, for: "large")?.count == 200_000) }
        // Larger than the limit.
        #expect(store.memoryHits == 9)
    }

    @Test func ownChangesAreSeenAtOnce() async throws {
        for number in 0..<50 {
            try await store.put(number, for: "k", in: "a/b")
            #expect(try store.object(Int.self, for: "k", in: "a/b") == number)
        }
        try await store.remove("k", in: "a/b")
        #expect(try store.object(Int.self, for: "k", in: "a/b") == nil)
        try await store.put(1, for: "k", in: "a/b")
        #expect(try store.object(Int.self, for: "k", in: "a/b") == 1)
        try await store.removeGroup("a")
        #expect(try store.object(Int.self, for: "k", in: "a/b") == nil)
    }

    @Test func changesByOthersAreSeenAtOnce() async throws {
        let other = try Self.open(store.path)
        for number in 0..<50 {
            try await other.put(number, for: "k")
            #expect(try store.object(Int.self, for: "k") == number)
        }
    }

    @Test func concurrentReadersAndWritersNeverSeeOlderValues() async throws {
        try await store.put(0, for: "k")
        let acknowledged = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for number in 1...500 {
                    try await store.put(number, for: "k")
                    acknowledged.raise(to: number)
                }
            }
            for _ in 0..<3 {
                group.addTask {
                    while acknowledged.value < 500 {
                        let known = acknowledged.value
                        let found = try store.object(Int.self, for: "k") ?? -1
                        #expect(found >= known)
                        await Task.yield()
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try store.object(Int.self, for: "k") == 500)
    }

    @Test func migrationEmptiesTheMemoryCache() async throws {
        try await store.put(Dated<TwoNumbers>([1, 2]), for: "k")
        #expect(try store.object(Dated<TwoNumbers>.self, for: "k")?.values == [1, 2])
        let later = try Self.open(store.path)
        _ = try later.tree(for: "k")
        for try await _ in later.migrate(Dated<TheirSum>.self) {}
        guard case .record(let data)? = try later.tree(for: "k") else {
            Issue.record("no record")
            return
        }
        #expect(data.version == "2")
    }
}
