import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineStores

@Suite struct ValueStoreGroupTests {
    let directory: TemporaryDirectory
    let store: KeyValueStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try KeyValueStore(directory: directory.path)
    }

    @Test func dotsAndSlashesNest() {
        #expect(GroupPath("a.b/c") == GroupPath(components: ["a", "b", "c"]))
        #expect(GroupPath("..//") == .standard)
        #expect(GroupPath("a").appending("b.c") != "a.b.c")
        #expect(GroupPath(components: ["a/b"]) != "a/b")
        #expect(GroupPath(components: ["a%2Fb"]) != GroupPath(components: ["a/b"]))
        #expect(GroupPath(components: ["\u{E9}"]) != GroupPath(components: ["e\u{301}"]))
    }

    @Test func groupsAndStrangeKeysAreApart() throws {
        let groups: [GroupPath] = [
            .standard, .reserve, "a", "a.b", "ab", GroupPath(components: ["a/b"]), GroupPath(components: ["d"]),
            .standard.appending("a"), GroupPath(components: ["..", "\0", "%2F"]),
        ]
        let keys = ["", ".", "..", "/", "a\0b", "a", String(repeating: "é", count: 5000), "\u{E9}", "e\u{301}"]
        for (number, group) in groups.enumerated() {
            for (index, key) in keys.enumerated() { store.set(number * 100 + index, forKey: key, in: group) }
        }
        for round in 0..<2 {
            if round == 1 { try store.blocking.flush() }
            let other = try KeyValueStore(directory: directory.path)
            for (number, group) in groups.enumerated() {
                for (index, key) in keys.enumerated() {
                    #expect(store[ValueKey(key, in: group, default: 0)] == number * 100 + index)
                    if round == 1 { #expect(other[ValueKey(key, in: group, default: 0)] == number * 100 + index) }
                }
            }
        }
    }

    @Test func keysOfAGroupAreListed() async throws {
        for number in [2, 1] { store.set(number, forKey: "k\(number)", in: "a") }
        store.set(3, forKey: "inner", in: "a.b")
        store.set(4, forKey: "\u{E9}")
        store.set(5, forKey: "z")
        #expect(try await store.keys(in: "a") == ["k1", "k2"])
        #expect(try await store.keys() == ["z", "\u{E9}"])
        #expect(try await store.keys(in: "unknown") == [])
        for number in 0..<600 { store.set(number, forKey: "\(1000 + number)", in: "many") }
        #expect(try store.blocking.keys(in: "many") == (1000..<1600).map { "\($0)" })
    }

    @Test func removingAGroupRemovesWhatIsBelow() async throws {
        for group: GroupPath in ["a", "a.b", "a.b.c", "ab", "b.a", .standard] { store.set(1, forKey: "k", in: group) }
        store.removeGroup("a")
        for (group, left) in [("a", 0), ("a.b", 0), ("a.b.c", 0), ("ab", 1), ("b.a", 1), ("", 1)] {
            #expect(store[ValueKey("k", in: GroupPath(group), default: 0)] == left)
        }
        store.removeGroup(.standard)
        store.removeGroup("unknown")
        try await store.flush()
        #expect(try await store.count() == 2)
    }

    /// A few values beside a large group are stored anew, many stay where they are.
    @Test(arguments: [0, 3, 3000]) func removingALargeGroupLeavesTheOthersAsTheyAre(others: Int) async throws {
        for number in 0..<21_000 { store.set(number, forKey: "k\(number)", in: "large.inner") }
        for number in 0..<others { store.set("é\0\(number)", forKey: "ü\0\(number)", in: "other") }
        let codable = ValueKey<[String: Double]?>(codable: "codable", in: "large2")
        store[codable] = ["a": 1.5]
        try await store.flush()
        try await store.removeGroup("large").committed()
        let other = try KeyValueStore(directory: directory.path)
        #expect(try await other.count() == others + 1)
        for number in 0..<others {
            #expect(try other.value(String.self, forKey: "ü\0\(number)", in: "other") == "é\0\(number)")
        }
        #expect(try other.value(for: codable) == ["a": 1.5])
        #expect(store[ValueKey("k7", in: "large.inner", default: 0)] == 0)
    }

    @Test func removingAllSparesTheReserve() async throws {
        store.set(1, forKey: "k", in: .reserve)
        store.set(2, forKey: "k", in: GroupPath.reserve.appending("x"))
        store.set(3, forKey: "k")
        store.set(4, forKey: "k", in: "g")
        store.removeAll()
        #expect(store[ValueKey("k", default: 0)] == 0 && store[ValueKey("k", in: "g", default: 0)] == 0)
        #expect(store[ValueKey("k", in: .reserve, default: 0)] == 1)
        #expect(try await store.count() == 2)
        store.removeAll(keepingReserve: false)
        #expect(store[ValueKey("k", in: .reserve, default: 0)] == 0)
        #expect(try await store.count() == 0)
    }

    @Test func childrenAreItemsAndGroups() async throws {
        for key in ["b", "a", "x.y"] { store.set(1, forKey: key, in: "g") }
        for group in ["g.s.deep", "g.t", "other"] { store.set(1, forKey: "k", in: GroupPath(group)) }
        store.set(1, forKey: "k", in: GroupPath("g").appending("u/v.w"))
        let children = try await store.children(of: "g")
        #expect(children == [.item("a"), .item("b"), .item("x.y"), .group("s"), .group("t"), .group("u/v.w")])
        #expect(try await store.children(of: "g.s") == [.group("deep")])
        #expect(try await store.children(of: "nothing").isEmpty)
        #expect(try await store.children() == [.group("g"), .group("other")])
        #expect(try await store.children(of: .standard).isEmpty)
    }

    @Test func enumerationStops() throws {
        for number in 0..<600 { store.set(number, forKey: "\(number + 1000)", in: "g") }
        var seen: [KeyValueStore.Child] = []
        try store.blocking.forEachChild(of: "g") { child in
            seen.append(child)
            return seen.count < 300
        }
        #expect(seen == (1000..<1300).map { .item("\($0)") })
        seen = []
        try store.blocking.forEachChild(of: "g") { child in
            seen.append(child)
            return true
        }
        #expect(seen.count == 600)
    }

    @Test func sizesAreThoseOfTheValues() async throws {
        store.set(Data(count: 1000), forKey: "k", in: "a.b")
        store.set(Data(count: 10), forKey: "k", in: "a")
        store.set(Data(count: 1), forKey: "k")
        #expect(try await store.size(of: "a").bytes == 1010)
        #expect(try await store.size().bytes == 1011)
        #expect(try await store.count(in: "a.b") == 1)
    }

    // MARK: Directory, version, damage

    @Test func anotherVersionStartsAfresh() async throws {
        func open(_ version: String?, _ compatible: [String] = []) throws -> KeyValueStore {
            var configuration = KeyValueStore.Configuration()
            configuration.version = version
            configuration.compatibleVersions = compatible
            return try KeyValueStore(directory: directory.file("v"), configuration: configuration)
        }
        let first = try open("1.0")
        first.set(1, forKey: "k")
        first.set(2, forKey: "k", in: .reserve)
        try await first.flush()
        #expect(try open("1.0")[ValueKey("k", default: 0)] == 1)
        #expect(try open(nil)[ValueKey("k", default: 0)] == 1)
        #expect(try open("1.1", ["1.0"])[ValueKey("k", default: 0)] == 1)
        let later = try open("2.0", ["1.0"])
        #expect(later[ValueKey("k", default: 0)] == 0)
        #expect(later[ValueKey("k", in: .reserve, default: 0)] == 2)
    }

    @Test func theDirectoryCanBeChanged() async throws {
        store.set(1, forKey: "k")
        try store.changeDirectory(to: directory.file("elsewhere"))
        #expect(store[ValueKey("k", default: 0)] == 0)
        #expect(store.directory == directory.file("elsewhere"))
        store.set(2, forKey: "k")
        try await store.flush()
        try store.changeDirectory(to: directory.path)
        #expect(store[ValueKey("k", default: 0)] == 1)
        #expect(throws: StoreError.self) { try store.changeDirectory(to: "/dev/null/x") }
        #expect(store[ValueKey("k", default: 0)] == 1)
    }

    @Test func namedStoresLieAmongTheUsersData() async throws {
        let directories = Directories(root: directory.file("home"))
        let store = try KeyValueStore(named: "a/b", in: directories)
        try await store.set(1, forKey: "k").committed()
        #expect(store.directory.hasPrefix(directories.data + "/"))
        #expect(try KeyValueStore(named: "a.b", in: directories)[ValueKey("k", default: 0)] == 0)
        #expect(try KeyValueStore(named: "a/b", in: directories)[ValueKey("k", default: 0)] == 1)
    }

    @Test func aFileThatIsNoDatabaseIsMovedAside() async throws {
        let path = directory.file("broken")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try Data(repeating: 65, count: 10_000).write(to: URL(filePath: path + "/values-1.sqlite"))
        let store = try KeyValueStore(directory: path)
        let moved = try #require(store.damagedFiles.first)
        #expect(FileManager.default.contents(atPath: moved)?.count == 10_000)
        try await store.set(1, forKey: "k").committed()
        #expect(store[ValueKey("k", default: 0)] == 1)
    }

    @Test func aFileDamagedLaterIsReplaced() async throws {
        let path = directory.file("damaged")
        do {
            let store = try KeyValueStore(directory: path)
            for number in 0..<200 { store.set(Data(count: 3000), forKey: "\(number)") }
            try await store.flush()
        }
        let file = path + "/values-1.sqlite"
        try await offPool { try DatabaseFiles.waitUntilClosed(file) }
        let handle = try #require(FileHandle(forWritingAtPath: file))
        try handle.seek(toOffset: 4096 * 2)
        try handle.write(contentsOf: Data(repeating: 0xA5, count: 400_000))
        try handle.close()
        let store = try KeyValueStore(directory: path)
        for number in 0..<200 { _ = try? store.value(Data.self, forKey: "\(number)") }
        #expect(store.damagedFiles.count == 1)
        try await store.set(1, forKey: "k").committed()
        #expect(try KeyValueStore(directory: path)[ValueKey("k", default: 0)] == 1)
    }

    /// A store whose reads look each time.
    private func watchful(_ name: String) throws -> KeyValueStore {
        var configuration = KeyValueStore.Configuration()
        configuration.sharingInterval = .zero
        return try KeyValueStore(directory: directory.file(name), configuration: configuration)
    }

    @Test func aDirectoryDeletedWhileOpenIsMadeAgain() async throws {
        let store = try watchful("deleted"), path = store.directory
        for round in 0..<5 {
            try await store.set(round, forKey: "old").committed()
            try await store.set(Data(count: 50_000), forKey: "large").committed()
            try FileManager.default.removeItem(atPath: path)
            if round % 2 == 0 { #expect(store[ValueKey("old", default: 0)] == 0) }
            try await store.set(round, forKey: "new", in: "group").committed()
            #expect(store[ValueKey("old", default: 0)] == 0)
            #expect(store[ValueKey("new", in: "group", default: 0)] == round)
            // What is written after the loss is there for the next as well.
            let other = try KeyValueStore(directory: path)
            #expect(other[ValueKey("new", in: "group", default: 0)] == round)
            #expect(try await other.count() == 1)
            #expect(try await store.count() == 1)
        }
        #expect(store.damagedFiles == [])
    }

    @Test func aFileDeletedOrReplacedWhileOpenIsNoticed() async throws {
        let store = try watchful("one"), other = try watchful("other")
        try await store.set(1, forKey: "a").committed()
        try await other.set(2, forKey: "a").committed()
        // The file alone: what was in its log must not come back, nor meet the new one.
        try FileManager.default.removeItem(atPath: store.directory + "/values-1.sqlite")
        #expect(store[ValueKey("a", default: 0)] == 0)
        try await store.set(3, forKey: "b").committed()
        #expect(try KeyValueStore(directory: store.directory)[ValueKey("b", default: 0)] == 3)
        // The directory of another one in its place.
        try FileManager.default.removeItem(atPath: store.directory)
        try FileManager.default.moveItem(atPath: other.directory, toPath: store.directory)
        #expect(store[ValueKey("a", default: 0)] == 2)
    }

    @Test func aDirectoryThatCannotBeMadeAgainFailsTheWriteUntilItCan() async throws {
        let store = try watchful("blocked"), path = store.directory
        try await store.set(1, forKey: "a").committed()
        try FileManager.default.removeItem(atPath: path)
        try Data([1]).write(to: URL(filePath: path))
        await #expect(throws: StoreError.self) { try await store.set(2, forKey: "a").committed() }
        #expect(throws: StoreError.self) { try store.value(Int.self, forKey: "a") }
        try FileManager.default.removeItem(atPath: path)
        try await store.set(3, forKey: "a").committed()
        #expect(store[ValueKey("a", default: 0)] == 3)
    }
}
