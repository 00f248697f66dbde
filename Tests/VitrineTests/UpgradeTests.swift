#if os(Linux)
import Foundation
import TestSupport
import Testing
import Vitrine

/// Files written by earlier versions of the package are read by this one. They are in `Fixtures`, a directory for each
/// version.
///
/// A release adds its own: `VITRINE_WRITE_FIXTURES=Tests/VitrineTests/Fixtures/VERSION` makes `fixturesAreWritten`
/// write them, and `versions` gets the name.
@Suite struct UpgradeTests {
    private static let versions = ["0.1.0"]
    private static let outputVariable = "VITRINE_WRITE_FIXTURES"

    /// An object as version 1 of a program stored it.
    private struct Note: PersistentRecord, Equatable {
        var title: String
        var stars: Int

        static var persistentName: String { "Note" }
        static func describe(in record: inout RecordBuilder) {
            record.header(version: "1")
            record.property("title", String.self)
            record.property("stars", Int.self)
        }

        init(title: String, stars: Int) { (self.title, self.stars) = (title, stars) }

        func persistProperties(to writer: inout BinaryWriter) {
            writer.write(title)
            writer.write(stars)
        }

        init(restoring reader: inout BinaryReader) throws(PersistenceError) {
            title = try reader.read()
            stars = try reader.read()
        }
    }

    /// The same object in version 2 of the program, which renamed one property and added another.
    private struct LaterNote: PersistentRecord, Equatable {
        var heading: String
        var stars: Int
        var isRead: Bool

        static var persistentName: String { "Note" }
        static func describe(in record: inout RecordBuilder) {
            record.header(version: "2")
            record.property("heading", String.self, renamedFrom: ["title"])
            record.property("stars", Int.self)
            record.property("isRead", Bool.self, default: false)
        }

        init(heading: String, stars: Int, isRead: Bool) {
            (self.heading, self.stars, self.isRead) = (heading, stars, isRead)
        }

        func persistProperties(to writer: inout BinaryWriter) {
            writer.write(heading)
            writer.write(stars)
            writer.write(isRead)
        }

        init(restoring reader: inout BinaryReader) throws(PersistenceError) {
            heading = try reader.read()
            stars = try reader.read()
            isRead = try reader.read()
        }
    }

    private static let volume = ValueKey<Double>("volume", default: 0)
    private static let names = ValueKey<[String]>(list: "names", in: "people", maximumCount: 5)
    private static let texts = (0..<8).map { "entry \($0) " + String(repeating: "x", count: $0 * 300) }
    private static let bytes = [UInt8]((0..<5_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })

    private static func cache(_ root: String) -> ValueCache<String> {
        ValueCache<String>(name: "texts", configuration: CacheConfiguration(root: FilePath.join(root, "caches")))
    }

    /// A store with types of its own, as in another build of a program.
    private static var separate: ObjectStore.Configuration {
        ObjectStore.Configuration(coder: PersistentCoder(registry: TypeRegistry()))
    }

    private static func manager(_ root: String) -> DownloadManager {
        var configuration = DownloadManager.Configuration()
        configuration.directory = FilePath.join(root, "files")
        configuration.journalDirectory = FilePath.join(root, "journal")
        configuration.reservedSpace = .zero
        configuration.network.retries.limit = 0
        return DownloadManager(configuration)
    }

    /// A copy of a version's files, which may be changed.
    private static func copy(_ version: String) throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        let fixtures = try #require(Bundle.module.url(forResource: "Fixtures", withExtension: nil))
        for name in try FileManager.default.contentsOfDirectory(atPath: fixtures.appending(path: version).path) {
            try FileManager.default.copyItem(
                atPath: fixtures.appending(path: version).appending(path: name).path, toPath: directory.file(name))
        }
        return directory
    }

    @Test(.enabled(if: ProcessInfo.processInfo.environment[outputVariable] != nil, "writes fixtures only when asked"))
    func fixturesAreWritten() async throws {
        let root = try #require(ProcessInfo.processInfo.environment[Self.outputVariable])
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        let cache = Self.cache(root)
        for (index, text) in Self.texts.enumerated() {
            let tags = index % 2 == 0 ? ["even"] : []
            _ = try await cache.set(text, forKey: CacheKey("key \(index)"), tags: tags, levels: .disk)
        }
        try await cache.flush()
        try await FileStore(.root(root), path: ["store"]).save(Self.bytes, as: "ü b.bin")
        try await ImageStore(.root(root), path: ["images"]).save(try Samples.bytes("moon.gif"), as: "moon.gif")
        let values = try KeyValueStore(directory: FilePath.join(root, "values"))
        values.set(0.75, for: Self.volume)
        values.set(["Ada", "Grace"], for: Self.names)
        try await values.flush()
        let objects = try ObjectStore(at: FilePath.join(root, "objects"), types: Note.self)
        for stars in 1...3 { try await objects.put(Note(title: "note \(stars)", stars: stars), for: "\(stars)") }
        let server = try LoopbackServer { _ in [.reply(200, ["Content-Type: text/plain"], body: [1, 2, 3])] }
        let missing = try LoopbackServer { _ in [.reply(404, [], body: [])] }
        let manager = Self.manager(root)
        _ = try await manager.start(server.url("/done.txt").absoluteString).file
        try? await _ = manager.start(missing.url("/failed.txt").absoluteString).file
        try await manager.settled()
    }

    @Test(arguments: versions)
    func cachesAreRead(_ version: String) async throws {
        let directory = try Self.copy(version)
        let cache = Self.cache(directory.path)
        for (index, text) in Self.texts.enumerated() {
            #expect(try await cache.value(forKey: CacheKey("key \(index)")) == text)
        }
        _ = try await cache.removeAll(tag: "even")
        #expect(try await cache.value(forKey: "key 0") == nil)
        #expect(try await cache.value(forKey: "key 1") == Self.texts[1])
        _ = try await cache.set("new", forKey: "new")
        #expect(try await cache.value(forKey: "new") == "new")
    }

    @Test(arguments: versions)
    func storesAreRead(_ version: String) async throws {
        let directory = try Self.copy(version)
        #expect(try await FileStore(.root(directory.path), path: ["store"]).load("ü b.bin") == Self.bytes)
        let images = ImageStore(.root(directory.path), path: ["images"])
        #expect(try await images.load("moon.gif") == Samples.bytes("moon.gif"))
        let values = try KeyValueStore(directory: directory.file("values"))
        #expect(try values.value(for: Self.volume) == 0.75)
        #expect(try values.value(for: Self.names) == ["Ada", "Grace"])
        values.set(0.5, for: Self.volume)
        try await values.flush()
        #expect(try values.value(for: Self.volume) == 0.5)
    }

    @Test(arguments: versions)
    func objectsAreReadAndMigrated(_ version: String) async throws {
        let directory = try Self.copy(version)
        let store = try ObjectStore(at: directory.file("objects"), configuration: Self.separate, types: Note.self)
        #expect(try store.count() == 3)
        #expect(try store.object(Note.self, for: "2") == Note(title: "note 2", stars: 2))
        let other = try Self.copy(version)
        let later = try ObjectStore(at: other.file("objects"), configuration: Self.separate, types: LaterNote.self)
        #expect(
            try later.object(LaterNote.self, for: "3") == LaterNote(heading: "note 3", stars: 3, isRead: false))
        try await later.put(LaterNote(heading: "new", stars: 4, isRead: true), for: "4")
        #expect(try later.keys().count == 4)
    }

    @Test(arguments: versions)
    func journalsAreRead(_ version: String) async throws {
        let directory = try Self.copy(version)
        let downloads = try await Self.manager(directory.path).restore()
        #expect(Set(downloads.map(\.url.path)) == ["/done.txt", "/failed.txt"])
        let states = downloads.reduce(into: [String: DownloadStatus.State]()) { states, download in
            states[download.url.path] = download.status?.state
        }
        #expect(states["/done.txt"] == .completed && states["/failed.txt"] == .failed, "\(states)")
    }
}
#endif
