import Foundation
import ModelsSamples
import TestSupport
import Testing
import VitrineDatabase
import VitrineModels

/// `vitrine objects`, on stores whose types the command does not know.
@Suite struct ObjectsCommandTests {
    private let scratch: Scratch
    private let store: ObjectStore

    init() throws {
        scratch = try Scratch()
        store = try ObjectStore(
            at: scratch.file("a.sqlite").path,
            configuration: .init(durability: .relaxed, coder: PersistentCoder(registry: TypeRegistry())))
    }

    private func objects(_ subcommand: String, _ arguments: String...) async throws -> Tool.Outcome {
        try await Tool.run(["objects", subcommand, store.path] + arguments)
    }

    private func fill() async throws {
        let dog = Dog("Rex")
        dog.chip = "C-1"
        try await store.put(dog, for: "rex", in: "pets")
        try await store.put(Place("Bern", latitude: 46.9), for: "a\tb", in: "pets/homes")
        try await store.put([1, 2], for: "numbers")
    }

    @Test func listsWhatThereIs() async throws {
        try await fill()
        let all = try await objects("list", "--json").objects
        #expect(all.map { $0["key"] as? String } == ["numbers", "rex", "a\tb"])
        #expect(all.map { $0["type"] as? String } == ["[Int]", "Dog", "Place"])
        #expect(all.map { $0["group"] as? String } == ["", "pets", "pets/homes"])
        #expect((all[1]["bytes"] as? Int ?? 0) > 20 && all[1]["version"] as? String == "1")
        let text = try await objects("list", "--type", "Place").output
        #expect(text.hasSuffix("Place 1  \"pets/homes\" \"a\\tb\"\n") && text.split(separator: "\n").count == 1)
        #expect(try await objects("list", "--group", "pets/homes", "--json").objects.count == 1)
        let groups = try await objects("groups", "--json").objects
        #expect(groups.map { $0["group"] as? String } == ["", "pets", "pets/homes"])
        #expect(groups.allSatisfy { $0["objects"] as? Int == 1 })
        #expect(try await objects("groups", "--group", "pets/homes").output.hasSuffix("\"pets/homes\"\n"))
    }

    @Test func showsObjectsWithoutTheirCode() async throws {
        try await fill()
        let text = try await objects("show", "rex", "--group", "pets").output
        #expect(text.contains("\"*Dog\" : {") && text.contains("\"(Vet)chip\" : \"C-1\""))
        let json = try await objects("show", "rex", "--group", "pets", "--json").output
        let registry = TypeRegistry()
        try registry.register(Dog.self)
        let dog = try PersistentCoder(registry: registry).decode(Animal.self, fromJSON: json)
        #expect(dog.chip == "C-1" && dog is Dog)
        let absent = try await objects("show", "absent")
        #expect(absent.status == 1 && absent.errors.contains("\"absent\" cannot be read"))
    }

    @Test func exportsWhatCanBeReadBack() async throws {
        try await fill()
        let output = scratch.file("out.jsonl")
        #expect(try await objects("export", "--output", output.path).status == 0)
        let written = try Data(contentsOf: output)
        #expect(try await objects("export").output == String(decoding: written, as: UTF8.self))
        let lines = try await objects("export", "--group", "pets/homes").objects
        #expect(lines.count == 1 && lines[0]["key"] as? String == "a\tb" && lines[0]["type"] as? String == "Place")
        let object = try JSONSerialization.data(withJSONObject: try #require(lines[0]["object"]))
        let place = try PersistentCoder(registry: TypeRegistry())
            .decode(Place.self, fromJSON: String(decoding: object, as: UTF8.self))
        #expect(place == Place("Bern", latitude: 46.9))
    }

    @Test func anExportNeverReplacesItsStore() async throws {
        try await fill()
        try FileManager.default.createSymbolicLink(
            atPath: scratch.file("link").path, withDestinationPath: store.path)
        for path in [store.path, scratch.file("link").path] {
            let outcome = try await objects("export", "-o", path)
            #expect(outcome.status == 1 && outcome.errors.contains("it is the object store"), "\(outcome.errors)")
        }
        #expect(try await objects("list", "--json").objects.count == 3)
    }

    @Test func verifiesAndExportsWhatIsLeft() async throws {
        try await fill()
        #expect(try await objects("verify").output == "3 objects, all intact\n")
        try Database(path: store.path).execute("UPDATE object SET value=substr(value, 1, 12) WHERE key='rex'")
        let found = try await objects("verify", "--json")
        #expect(found.status == 1)
        #expect(found.objects.first?["key"] as? String == "rex")
        #expect(found.objects.last?["intact"] as? Bool == false && found.objects.last?["objects"] as? Int == 3)
        let export = try await objects("export")
        #expect(export.status == 1 && export.objects.count == 2)
        #expect(export.errors.contains("\"rex\" in pets cannot be read"))
    }

    @Test func migrationIsRehearsedBySchemas() async throws {
        try await store.put(Dated<Old>([1, 2]), for: "old")
        try await store.put(Dated<Old>([1, 2]), for: "older")
        #expect(try await objects("migrate", "--dry-run").output == "2  Dated 1  up to date\n")
        let later = try ObjectStore(
            at: store.path, configuration: .init(coder: PersistentCoder(registry: TypeRegistry())))
        try await later.put(Dated<New>([3]), for: "new")
        let lines = try await objects("migrate", "--dry-run", "--json").objects
        #expect(lines.map { $0["version"] as? String } == ["1", "2"])
        #expect(lines.map { $0["objects"] as? Int } == [2, 1])
        #expect(lines.allSatisfy { $0["newest"] as? String == "2" })
        #expect(lines[0]["differences"] as? [String] == ["b was removed"])
        #expect(lines.map { $0["intact"] as? Bool } == [false, true])
        #expect(try store.object(Dated<Old>.self, for: "old")?.values == [1, 2])
        #expect(try await objects("migrate").status == 2)
    }

    private enum Old: DatedBuild {
        static var version: SchemaVersion { "1" }
        static var properties: [DatedProperty] { [DatedProperty(name: "a"), DatedProperty(name: "b")] }
    }

    private enum New: DatedBuild {
        static var version: SchemaVersion { "2" }
        static var properties: [DatedProperty] { [DatedProperty(name: "a")] }
    }

    @Test func whatIsNoStoreIsSaidAndLeftAlone() async throws {
        let file = scratch.file("text")
        try Data("no store at all, but some words of text".utf8).write(to: file)
        for path in [file.path, scratch.url.path, scratch.file("absent").path] {
            let outcome = try await Tool.run(["objects", "list", path])
            #expect(outcome.status == 1 && outcome.errors.hasPrefix("vitrine objects: "), "\(outcome.errors)")
        }
        #expect(scratch.contents.filter { !$0.hasPrefix("a.sqlite") } == ["text"])
    }
}
