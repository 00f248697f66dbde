import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineStores

@Suite struct ValueStoreTests {
    struct Theme: Codable, Sendable, Equatable { var name: String, size: Double }
    enum Keys {
        static let volume = ValueKey<Double>("volume", default: 0.5)
        static let user = ValueKey<String?>("user", in: "login")
        static let theme = ValueKey<Theme>(codable: "theme", default: Theme(name: "dark", size: 1))
        static let recent = ValueKey<[String]>(list: "recent", maximumCount: 3)
    }

    let directory: TemporaryDirectory
    let store: KeyValueStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try KeyValueStore(directory: directory.file("values"))
    }

    /// Another store on the same directory, as another process would have it.
    private func other(_ change: (inout KeyValueStore.Configuration) -> Void = { _ in }) throws -> KeyValueStore {
        var configuration = KeyValueStore.Configuration()
        configuration.sharingInterval = .zero
        change(&configuration)
        return try KeyValueStore(directory: directory.file("values"), configuration: configuration)
    }

    @Test func everyKindOfValueIsReadAtOnceAndByOthers() async throws {
        let date = Date(timeIntervalSinceReferenceDate: 0.1)
        store.set(Data([1, 2]), forKey: "data")
        store.set("é\0", forKey: "string")
        store.set(true, forKey: "bool")
        store.set(Int.min, forKey: "int")
        store.set(UInt.max, forKey: "uint")
        store.set(Float(0.1), forKey: "float")
        store.set(0.1, forKey: "double")
        store.set(date, forKey: "date")
        let codable = ValueKey<Theme?>(codable: "codable")
        store.set(Theme(name: "a", size: .pi), for: codable)
        func check(_ store: KeyValueStore) throws {
            #expect(try store.value(Data.self, forKey: "data") == Data([1, 2]))
            #expect(try store.value(String.self, forKey: "string") == "é\0")
            #expect(store[ValueKey("bool", default: false)])
            #expect(store[ValueKey("int", default: 0)] == .min)
            #expect(store[ValueKey("uint", default: UInt(0))] == .max)
            #expect(store[ValueKey("float", default: Float(0))] == 0.1)
            #expect(store[ValueKey("double", default: 0.0)] == 0.1)
            #expect(try store.value(Date.self, forKey: "date") == date)
            #expect(try store.value(for: codable) == Theme(name: "a", size: .pi))
        }
        try check(store)
        try await store.flush()
        try check(try other())
    }

    @Test func missingValuesHaveTheirDefaults() throws {
        #expect(!store[ValueKey("x", default: false)] && store[ValueKey("x", default: 0)] == 0)
        #expect(store[ValueKey("x", default: UInt(0))] == 0)
        #expect(store[ValueKey("x", default: Float(0))] == 0 && store[ValueKey("x", default: 0.0)] == 0)
        #expect(try store.value(String.self, forKey: "x") == nil)
        #expect(try store.value(Data.self, forKey: "x") == nil)
        #expect(try store.value(Date.self, forKey: "x") == nil)
        #expect(try store.value(for: ValueKey<[Int]>(list: "x")) == [])
        #expect(store[Keys.volume] == 0.5 && store[Keys.user] == nil && store[Keys.recent] == [])
        #expect(store[Keys.theme].name == "dark")
    }

    @Test func typedKeysReadAndWrite() throws {
        store[Keys.volume] = 0.1
        store[Keys.user] = "ada"
        store[Keys.theme] = Theme(name: "light", size: 2)
        #expect(store[Keys.volume] == 0.1 && store[Keys.user] == "ada" && store[Keys.theme].size == 2)
        #expect(try store.value(String.self, forKey: "user", in: "login") == "ada")
        store[Keys.user] = nil
        #expect(store[Keys.user] == nil)
        store.remove(Keys.volume)
        #expect(try store.value(for: Keys.volume) == 0.5)
    }

    @Test func aValueOfAnotherSortIsAnErrorAndStays() throws {
        store.set("text", forKey: "k")
        #expect(throws: StoreError.self) { try store.value(Int.self, forKey: "k") }
        #expect(store[ValueKey("k", default: 0)] == 0)
        #expect(try store.value(String.self, forKey: "k") == "text")
        store.set(300, forKey: "n")
        #expect(try store.value(Double.self, forKey: "n") == 300)
        #expect(throws: StoreError.self) { try store.value(UInt8.self, forKey: "n") }
    }

    @Test func listsHaveAMaximumCount() async throws {
        for name in ["a", "b", "c", "d"] { store.append(name, to: Keys.recent) }
        #expect(store[Keys.recent] == ["a", "b", "c"])
        store[Keys.recent] = ["1", "2", "3", "4", "5"]
        #expect(store[Keys.recent] == ["1", "2", "3"])
        for name in ["x", "y"] { store.prepend(name, to: Keys.recent) }
        #expect(store[Keys.recent] == ["y", "x", "1"])
        // A list that was stored without the maximum is cut by the next insertion.
        store[ValueKey<[String]>(list: "recent")] = ["1", "2", "3", "4", "5"]
        store.append("z", to: Keys.recent)
        #expect(store[Keys.recent] == ["1", "2", "3"])
        let numbers = ValueKey<[Int]>(list: "n")
        store[numbers] = [1, 2]
        store[numbers].append(9)
        #expect(try store.value(for: numbers) == [1, 2, 9])
        store.append(1, to: ValueKey<[Int]>(list: "n", maximumCount: 0))
        #expect(try store.value(for: numbers) == [])
        store.set("no list", forKey: "t")
        await #expect(throws: StoreError.self) { try await store.append(1, to: ValueKey<[Int]>(list: "t")).committed() }
        #expect(try store.value(String.self, forKey: "t") == "no list")
    }

    @Test func elementsOfSeveralProcessesAreAllKept() async throws {
        let other = try other()
        let numbers = ValueKey<[Int]>(list: "l")
        for number in 0..<50 {
            store.append(number, to: numbers)
            other.append(number + 100, to: numbers)
        }
        try await store.flush()
        try await other.flush()
        let list = try other.value(for: numbers)
        #expect(Set(list) == Set(0..<50).union(100..<150))
        #expect(list.filter { $0 < 100 } == Array(0..<50))
    }

    @Test func writesOfOthersAreSeen() async throws {
        let other = try other()
        #expect(other[ValueKey("k", default: 0)] == 0)
        try await store.set(1, forKey: "k").committed()
        #expect(other[ValueKey("k", default: 0)] == 1)
        try await store.set(2, forKey: "k").committed()
        #expect(other[ValueKey("k", default: 0)] == 2)
        try await store.remove("k").committed()
        #expect(other[ValueKey("k", default: 0)] == 0)
    }

    @Test func readsSeeTheWritesBefore() async throws {
        let store = store
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for round in 1...300 {
                        store.set(round, forKey: "k\(task)", in: "g", keepInMemory: task % 2 == 0)
                        #expect(store[ValueKey("k\(task)", in: "g", default: 0)] == round)
                        if round % 50 == 0 { store.remove("k\(task)", in: "g") }
                        if round % 50 == 0 { #expect(store[ValueKey("k\(task)", in: "g", default: 0)] == 0) }
                    }
                }
            }
        }
        store.removeGroup("g")
        #expect(store[ValueKey("k1", in: "g", default: 0)] == 0)
        store.set(5, forKey: "k1", in: "g", keepInMemory: false)
        #expect(store[ValueKey("k1", in: "g", default: 0)] == 5)
        try await store.flush()
        #expect(store[ValueKey("k1", in: "g", default: 0)] == 5)
        #expect(try await store.count(in: "g") == 1)
    }

    @Test func completionsTellWhatWasStored() async throws {
        let store = store, path = directory.file("values")
        try await store.set(7, forKey: "k").committed()
        #expect(try KeyValueStore(directory: path)[ValueKey("k", default: 0)] == 7)
        try await BlockingExecutor.shared.run { try store.set(8, forKey: "k").waitUntilCommitted() }
        #expect(try KeyValueStore(directory: path)[ValueKey("k", default: 0)] == 8)
        await withCheckedContinuation { continuation in
            store.removeAll().onCompletion { _ in continuation.resume() }
        }
        #expect(try KeyValueStore(directory: path)[ValueKey("k", default: 0)] == 0)
    }

    @Test func whatCannotBeEncodedIsReported() async throws {
        struct Refusing: Codable, Sendable {
            func encode(to encoder: any Encoder) throws { throw CacheableValueError.notUTF8 }
        }
        store.set(1, forKey: "k")
        await #expect(throws: StoreError.self) {
            try await store.set(Refusing(), for: ValueKey<Refusing?>(codable: "k")).committed()
        }
        await #expect(throws: StoreError.self) { try await store.flush() }
        try await store.flush()
        #expect(store[ValueKey("k", default: 0)] == 1)
    }

    @Test func largeValuesAreKeptInMemoryOnlyWhenAsked() async throws {
        let large = Data(repeating: 1, count: 1 << 20)
        store.set(large, forKey: "a")
        store.set(large, forKey: "b", keepInMemory: true)
        store.set(Data(repeating: 2, count: (1 << 20) - 100), forKey: "c")
        store.set(Data([3]), forKey: "d", keepInMemory: false)
        try await store.flush()
        #expect(store.memoryKeys == ["b", "c"])
        _ = try? store.value(Data.self, forKey: "a")
        #expect(store.memoryKeys == ["b", "c"])
        #expect(try store.value(Data.self, forKey: "a", keepInMemory: true) == large)
        #expect(store.memoryKeys == ["a", "b", "c"])
    }
}
