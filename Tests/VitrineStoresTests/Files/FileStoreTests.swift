import Foundation
import Testing
import TestSupport
import VitrineCompatibility
import VitrineCore
import VitrineStores

@Suite struct FileStoreTests {
    private let temporary: TemporaryDirectory
    private let store: FileStore

    init() throws {
        temporary = try TemporaryDirectory()
        store = FileStore(.root(temporary.path), path: ["a", "b/c"], durability: .relaxed)
    }

    @Test func liesInDocumentsAsEarlierLibrariesDid() {
        let directories = Directories(root: "/home/x")
        #expect(FileStore(directories: directories).directory == "/home/x/documents/UserDocuments")
        #expect(FileStore(.caches, directories: directories).directory == "/home/x/cache/UserDocuments")
        #expect(FileStore(.data, path: [], directories: directories).directory == "/home/x/data")
        #expect(store.directory == temporary.path + "/a/b%2Fc")
    }

    @Test func savesLoadsAndDeletes() async throws {
        #expect(await !store.exists("note.txt"))
        try await store.save(Array("one".utf8), as: "note.txt")
        try await store.save(Array("two".utf8), as: "note.txt")
        #expect(await store.exists("note.txt"))
        #expect(try await store.load("note.txt") == Array("two".utf8))
        #expect(try store.path(of: "note.txt") == store.directory + "/note.txt")
        #expect(try await store.delete("note.txt"))
        #expect(try await !store.delete("note.txt"))
        #expect(await error { try await store.load("note.txt") } == "notFound note.txt")
    }

    @Test func neverReplacesWhatItWasNotToldTo() async throws {
        try await store.save([1], as: "a")
        try await store.save([2], as: "b")
        #expect(await error { try await store.save([3], as: "a", replacing: false) } == "alreadyExists a")
        #expect(await error { try await store.rename("a", to: "b") } == "alreadyExists b")
        #expect(await error { try await store.rename("c", to: "d") } == "notFound c")
        #expect(try await store.load("a") == [1])
        #expect(try await store.load("b") == [2])
        try await store.rename("a", to: "b", replacing: true)
        #expect(try await store.names == ["b"])
        #expect(try await store.load("b") == [1])
    }

    @Test func renamesToItselfWithoutLosingAnything() async throws {
        try await store.save([1], as: "a")
        try await store.rename("a", to: "a", replacing: true)
        #expect(try await store.load("a") == [1])
    }

    @Test(arguments: [
        "", ".", "..", "/", "/etc/passwd", "a/b", "../a", "a\0b", String(repeating: "ä", count: 128), ".%tmp-1",
    ])
    func refusesNamesThatLeaveTheDirectory(name: String) async throws {
        try await store.save([1], as: "a")
        #expect(await error { try await store.save([1], as: name) } == "invalidName \(name)")
        #expect(await error { try await store.load(name) } == "invalidName \(name)")
        #expect(await error { try await store.delete(name) } == "invalidName \(name)")
        #expect(await error { try await store.rename("a", to: name) } == "invalidName \(name)")
        #expect(await error { try await store.rename(name, to: "b") } == "invalidName \(name)")
        #expect(await !store.exists(name))
        #expect(try FileManager.default.subpathsOfDirectory(atPath: temporary.path).sorted() == ["a", "a/b%2Fc", "a/b%2Fc/a"])
    }

    @Test(arguments: ["Änderung Nr. 1.txt", "写真.jpg", "-rf", "~", "a\nb", "%", "...", "CON", "e\u{301}", "🖼️"])
    func takesAnyOtherName(name: String) async throws {
        try await store.save([7], as: name)
        #expect(try await store.load(name) == [7])
        let names = try await store.names
        #expect(names.count == 1 && names[0].utf8.elementsEqual(name.utf8))
    }

    @Test func directoriesAndLinksAreNotItsFiles() async throws {
        try await store.save([1], as: "a")
        let outside = temporary.path + "/outside"
        try Data([9]).write(to: URL(filePath: outside))
        try FileManager.default.createDirectory(atPath: store.directory + "/folder", withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: store.directory + "/link", withDestinationPath: outside)
        #expect(try await store.names == ["a"])
        #expect(try await store.list().map(\.name) == ["a"])
        #expect(await !store.exists("link"))
        #expect(await error { try await store.load("link") } == "notFound link")
        #expect(await error { try await store.load("folder") } == "notFound folder")
        // What the link points to is not the store's: it stays as it is.
        try await store.save([2], as: "link")
        #expect(try Data(contentsOf: URL(filePath: outside)) == Data([9]))
        #expect(try await store.load("link") == [2])
        // Nor does saving wait for a reader of a FIFO.
        #expect(mkfifo(store.directory + "/fifo", 0o600) == 0)
        #expect(await error { try await store.load("fifo") } == "notFound fifo")
        try await store.save([4], as: "fifo")
        #expect(try await store.load("fifo") == [4])
        await #expect(throws: StoreError.self) { try await store.save([3], as: "folder") }
        await #expect(throws: StoreError.self) { try await store.delete("folder") }
    }

    @Test func listsByNameSizeAndDate() async throws {
        #expect(try await store.list().isEmpty)
        #expect(try await store.totalSize == .zero)
        #expect(try await store.names.isEmpty)
        for (name, count) in [("b", 3), ("a", 1), ("c", 2)] {
            try await store.save([UInt8](repeating: 0, count: count), as: name)
            let time = [timespec(tv_sec: 1_000_000 + 10 * count, tv_nsec: 0), timespec(tv_sec: 1_000_000 - count, tv_nsec: 0)]
            utimensat(AT_FDCWD, try store.path(of: name), time, 0)
        }
        #expect(try await store.list().map(\.name) == ["a", "b", "c"])
        #expect(try await store.list(by: .size).map(\.name) == ["a", "c", "b"])
        #expect(try await store.list(by: .modified).map(\.name) == ["b", "c", "a"])
        #expect(try await store.list(by: .modified, ascending: false).map(\.name) == ["a", "c", "b"])
        #expect(try await store.totalSize == ByteCount(6))
    }

    @Test func generatedNamesAreUniqueAndSortByTime() async throws {
        let names = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    var names: [String] = []
                    for _ in 0..<50 { names.append(try await store.save([1], fileExtension: "jpg")) }
                    return names
                }
            }
            return try await group.reduce(into: [[String]]()) { $0.append($1) }
        }
        #expect(names.allSatisfy { $0 == $0.sorted() })
        #expect(Set(names.joined()).count == 400)
        #expect(names.joined().allSatisfy { $0.count == 20 && $0.hasSuffix(".jpg") })
        #expect(try await store.names.count == 400)
    }

    @Test func savesManyAtOnce() async throws {
        try await store.save((0..<20).map { (name: "\($0)", bytes: [UInt8($0)]) })
        #expect(try await store.names.count == 20)
        #expect(try await store.load("7") == [7])
        await #expect(throws: StoreError.self) {
            try await store.save([(name: "x", bytes: [1]), (name: "..", bytes: [2])])
        }
        #expect(try await store.names.count == 20)
        #expect(try FileManager.default.contentsOfDirectory(atPath: store.directory).count == 20)
    }

    @Test func durableSavesDoTheSame() async throws {
        let store = FileStore(.root(temporary.path), path: ["durable"])
        try await store.save([1, 2], as: "a")
        try await store.save((0..<6).map { (name: "m\($0)", bytes: [UInt8($0)]) })
        try await store.rename("a", to: "b")
        try await store.delete("m5")
        #expect(try await store.names == ["b", "m0", "m1", "m2", "m3", "m4"])
        #expect(try await store.load("b") == [1, 2])
    }

    @Test func copiesFilesAndMapsThem() async throws {
        var generator = SeededGenerator(5)
        let bytes = generator.bytes(700_001)
        let path = temporary.path + "/source"
        try Data(bytes).write(to: URL(filePath: path))
        try await store.save(fileAt: path, as: "copy")
        #expect(try await store.load("copy") == bytes)
        let mapped = try await store.map("copy")
        #expect(mapped.count == bytes.count && mapped.withUnsafeBytes { Array($0) == bytes })
        // What is mapped stays what it was.
        try await store.save([1], as: "copy")
        #expect(mapped.withUnsafeBytes { Array($0) == bytes })
        try await store.save([], as: "empty")
        #expect(try await store.map("empty").count == 0)
        #expect(try await store.load("empty") == [])
        await #expect(throws: StoreError.self) { try await store.save(fileAt: temporary.path, as: "directory") }
        await #expect(throws: StoreError.self) { try await store.save(fileAt: path + "-absent", as: "absent") }
        #expect(try await store.names == ["copy", "empty"])
    }

    @Test func streamsInAndOut() async throws {
        let pieces: [[UInt8]] = [[1, 2, 3], [], [4], [5, 6]]
        let stream = AsyncStream<[UInt8]> { continuation in
            for piece in pieces { continuation.yield(piece) }
            continuation.finish()
        }
        #expect(try await store.save(chunks: stream, as: "s") == 6)
        var read: [[UInt8]] = []
        for await chunk in try await store.chunks(of: "s", size: 4) { read.append(chunk) }
        #expect(read == [[1, 2, 3, 4], [5, 6]])

        struct Cut: Error {}
        let broken = AsyncThrowingStream<[UInt8], any Error> { continuation in
            continuation.yield([9])
            continuation.finish(throwing: Cut())
        }
        await #expect(throws: Cut.self) { try await store.save(chunks: broken, as: "s") }
        #expect(try await store.load("s") == [1, 2, 3, 4, 5, 6])
        #expect(try FileManager.default.contentsOfDirectory(atPath: store.directory) == ["s"])
    }

    @Test func cancelledStreamsLeaveNothing() async throws {
        let started = Gate()
        let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
        let task = Task { [store] in
            started.open()
            return try await store.save(chunks: stream, as: "s")
        }
        continuation.yield([1])
        await started.wait()
        task.cancel()
        await #expect(throws: (any Error).self) { try await task.value }
        #expect(await !store.exists("s"))
        #expect((try? FileManager.default.contentsOfDirectory(atPath: store.directory)) ?? [] == [])
    }

    @Test func actsInSeveralStoresWhateverOneLacks() async throws {
        let other = FileStore(.root(temporary.path), path: ["other"], durability: .relaxed)
        try await other.save([1], as: "a")
        #expect(try await FileStore.rename("a", to: "b", in: [store, other]) == 1)
        #expect(try await FileStore.delete("b", in: [store, other]) == 1)
        #expect(try await FileStore.delete("b", in: [store, other]) == 0)
        #expect(await error { try await FileStore.rename("a", to: "b", in: [store, other]) } == "notFound a")
    }

    @Test func aFileInThePlaceOfTheDirectoryIsATypedError() async throws {
        try Data([1]).write(to: URL(filePath: temporary.path + "/a"))
        #expect(await error { try await store.save([1], as: "x") } == "file")
        #expect(await error { try await store.load("x") } == "notFound x")
        #expect(await !store.exists("x"))
        #expect(try Data(contentsOf: URL(filePath: temporary.path + "/a")) == Data([1]))
    }

    @Test func removesWhatCrashedSavesLeft() async throws {
        try await store.save([1], as: "a")
        let leftover = store.directory + "/" + AtomicFile.temporaryPrefix + "left"
        try Data([1]).write(to: URL(filePath: leftover))
        #expect(try await store.names == ["a"])
        #expect(try await store.removeTemporaryFiles() == 0)
        #expect(try await store.removeTemporaryFiles(olderThan: .seconds(-5)) == 1)
        #expect(!FileManager.default.fileExists(atPath: leftover))
    }

    private func error(_ body: () async throws -> some Any) async -> String {
        do {
            _ = try await body()
            return "none"
        } catch let error as StoreError {
            return switch error {
            case .invalidName(let name, _): "invalidName \(name)"
            case .notFound(let name): "notFound \(name)"
            case .alreadyExists(let name): "alreadyExists \(name)"
            case .image: "image"
            case .file: "file"
            case .cancelled: "cancelled"
            case .notDurable: "notDurable"
            case .notWatched: "notWatched"
            case .invalidData: "invalidData"
            case .notEncodable: "notEncodable"
            case .database: "database"
            }
        } catch {
            return "\(error)"
        }
    }
}
