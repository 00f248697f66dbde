import Foundation
import ModelsSamples
import TestSupport
import Testing
import VitrineModels

private class Creature: KeyPathObject {
    var name = ""
    var friend: Creature?
    weak var keeper: Creature?
    var homes: [Place] = []
    var marks: Set<String> = []
    var color = Color.red
    var unlisted = 0
    var persistentExtensions = ExtensionStorage()

    required init() {}
    init(_ name: String) { self.name = name }

    class var persistentSchema: ObjectSchema {
        ObjectSchema(Creature.self, properties: [
            .extensions(\.persistentExtensions), .property("name", \.name), .property("friend", \.friend),
            .property("keeper", \.keeper), .property("homes", \.homes), .property("marks", \.marks),
            .property("color", \.color),
        ])
    }
}

private class Cat: Creature {
    var lives = 9
    var kittens: [Cat] = []

    override class var persistentSchema: ObjectSchema {
        ObjectSchema(Cat.self, version: "2", properties: [.property("lives", \.lives), .property("kittens", \.kittens)])
    }
}

private final class Tiger: Cat {
    var stripes = 1

    override class var persistentSchema: ObjectSchema {
        ObjectSchema(Tiger.self, properties: [.property("stripes", \.stripes)])
    }
}

extension Creature {
    fileprivate var chip: String? {
        get { persistentExtensions[ExtensionKey("chip", category: "Vet", default: nil)] }
        set { persistentExtensions[ExtensionKey("chip", category: "Vet", default: nil)] = newValue }
    }
}

@Suite struct KeyPathObjectTests {
    private let coder = PersistentCoder(registry: TypeRegistry())

    private func again<Value: PersistentValue>(_ value: Value) throws -> Value {
        try coder.decode(Value.self, from: coder.encode(value))
    }

    @Test func listedPropertiesComeBackAndOthersKeepTheirDefaults() throws {
        let creature = Creature("Ada")
        creature.homes = [Place("a", latitude: 47), Place("b")]
        creature.marks = ["x", "y"]
        creature.color = .green
        creature.chip = "C"
        creature.unlisted = 3
        let copy = try again(creature)
        #expect(copy == creature)
        #expect(copy.name == "Ada")
        #expect(copy.homes == [Place("a", latitude: 47), Place("b")])
        #expect(copy.marks == ["x", "y"])
        #expect(copy.color == .green)
        #expect(copy.chip == "C")
        #expect(copy.unlisted == 0)
    }

    @Test func sharedObjectsCyclesAndWeakReferencesComeBack() throws {
        let keeper = Creature("keeper"), kept = Cat("kept")
        keeper.friend = kept
        kept.friend = keeper
        kept.keeper = keeper
        let array = try again([keeper, kept, keeper])
        #expect(array[0] === array[2])
        #expect(array[0].friend === array[1])
        #expect(array[1].friend === array[0])
        #expect(array[1].keeper === array[0])
        keeper.friend = nil
        array[0].friend = nil
    }

    @Test func subclassesInheritPropertiesAndComeBackAsThemselves() throws {
        let tiger = Tiger("Rex")
        tiger.lives = 4
        tiger.kittens = [Cat("kitten"), Tiger("cub")]
        tiger.stripes = 20
        tiger.chip = "C"
        let copy = try #require(try again(tiger as Creature) as? Tiger)
        #expect(copy == tiger)
        #expect(copy.name == "Rex")
        #expect(copy.lives == 4)
        #expect(copy.kittens.map(\.name) == ["kitten", "cub"])
        #expect(copy.kittens[0].lives == 9)
        #expect(copy.kittens[1] is Tiger)
        #expect(copy.stripes == 20)
        #expect(copy.chip == "C")
    }

    @Test func equalityHashAndCopyUseTheListedPropertiesOfAllLevels() throws {
        let first = Tiger("a"), second = Tiger("a")
        second.unlisted = 1
        #expect(first == second)
        #expect(first.hashValue == second.hashValue)
        second.stripes = 2
        #expect(first != second)
        #expect(first.hashValue != second.hashValue)
        second.stripes = 1
        second.name = "b"
        #expect(first != second)
        second.name = "a"
        second.chip = "C"
        #expect(first != second)
        let cat: Creature = Cat("a")
        #expect(cat != Creature("a"))
        let copy = try second.persistentCopy(by: coder)
        #expect(copy == second)
        #expect(copy !== second)
    }

    @Test func descriptionsNestSuperclasses() {
        let cat = Cat("Tom")
        cat.chip = "C"
        #expect(cat.description.contains("\"*Cat\""))
        #expect(cat.description.contains("\"**Creature\""))
        #expect(cat.description.contains("\"(Vet)chip\" : \"C\""))
    }

    @Test func chainsOfAnyLengthComeBack() throws {
        let creatures = (0..<3000).map { Creature("\($0)") }
        for index in creatures.indices.dropFirst() { creatures[index - 1].friend = creatures[index] }
        var next: Creature? = try again(creatures[0])
        var count = 0
        while let creature = next {
            #expect(creature.name == "\(count)")
            count += 1
            // Releasing a chain is recursive.
            (next, creature.friend) = (creature.friend, nil)
        }
        #expect(count == 3000)
        for creature in creatures { creature.friend = nil }
    }

    @Test @MainActor func classesOnTheMainActorAreStoredThere() throws {
        let counter = Counter()
        counter.count = 5
        #expect(try coder.decode(Counter.self, from: coder.encode(counter)).count == 5)
    }

    @Test func genericClassesNameTheirArguments() throws {
        let box = Box<Int>()
        box.value = 7
        #expect(try again(box).value == 7)
        #expect(Box<Int>.persistentName == "Box<Int>")
        #expect(try coder.registry.schema(of: Box<String>.self).name == "Box<String>")
    }

    @Test func theGuideShowsBothFormsWithAtMostTwiceTheLines() throws {
        let root = Samples.directory.deletingLastPathComponent()
        let guide = try String(
            contentsOf: root.appending(path: "Sources/Vitrine/Vitrine.docc/PersistentObjects.md"), encoding: .utf8)
        let snippets = guide.components(separatedBy: "```swift\n").dropFirst().map {
            $0.components(separatedBy: "```")[0].split(separator: "\n")
        }
        func snippet(_ text: String) throws -> [Substring] {
            try #require(snippets.first { $0.contains { $0.contains(text) } })
        }
        let keyPaths = try snippet("class Foo: KeyPathObject"), macro = try snippet("@Persistable")
        // They are the same classes: each declaration of a property stands in both.
        func properties(_ lines: [Substring]) -> [Substring] {
            lines.filter { $0.contains(" var ") && !$0.contains("persistentSchema") }
        }
        #expect(properties(keyPaths).count == 4)
        #expect(properties(keyPaths) == properties(macro))
        #expect(keyPaths.count <= 2 * macro.count)
    }

    @Test func schemasThatCannotBeUsedAreErrors() {
        func reason(_ type: any PersistentRecord.Type) -> PersistenceError? {
            #expect(throws: PersistenceError.self) { try TypeRegistry().register(type) }
        }
        #expect(reason(Forgetful.self) == .invalidSchema(type: "Forgetful", reason: "it is the schema of Creature"))
        #expect(reason(Doubled.self) == .invalidSchema(type: "Doubled", reason: "two properties are stored as a"))
        let extended = "only a root class can store the properties of extensions"
        #expect(reason(Extended.self) == .invalidSchema(type: "Extended", reason: extended))
        #expect(throws: PersistenceError.self) { try PersistentCoder(registry: TypeRegistry()).encode(Forgetful()) }
    }
}

@MainActor private final class Counter: @MainActor KeyPathObject {
    var count = 0

    static var persistentSchema: ObjectSchema {
        ObjectSchema(Counter.self, properties: [.property("count", \.count)])
    }
}

private protocol Initial: PersistentValue { static var initial: Self { get } }
extension Int: Initial { fileprivate static var initial: Int { 0 } }
extension String: Initial { fileprivate static var initial: String { "" } }

private final class Box<Value: Initial>: KeyPathObject {
    var value = Value.initial

    static var persistentSchema: ObjectSchema { ObjectSchema(Box.self, properties: [.property("value", \.value)]) }
}

/// Has a property that its schema, which is that of the superclass, does not have.
private final class Forgetful: Creature {
    var lost = 0
}

private final class Doubled: KeyPathObject {
    var a = 0
    var b = 0

    static let persistentSchema = ObjectSchema(Doubled.self, properties: [.property("a", \.a), .property("a", \.b)])
}

private final class Extended: Creature {
    override class var persistentSchema: ObjectSchema {
        ObjectSchema(Extended.self, properties: [.extensions(\.persistentExtensions)])
    }
}

// MARK: Versions

/// One class in several builds of a program, and in both forms.
private enum First {
    final class Note: KeyPathObject {
        var title = ""
        var seconds = 0.0
        var parent: Note?
        var obsolete = 1

        static let persistentSchema = ObjectSchema(Note.self, version: "1.0", properties: [
            .property("title", \.title), .property("seconds", \.seconds), .property("parent", \.parent),
            .property("obsolete", \.obsolete),
        ])
    }
}

private enum Second {
    final class Note: KeyPathObject {
        var text = ""
        var seconds = 0
        var parent: Note?
        var stars = 5
        var labels: [String] = ["new"]
        var place: Place?

        static let persistentSchema = ObjectSchema(
            Note.self, version: "2.0",
            steps: [
                MigrationStep(to: "1.5") { try $0.convert("seconds") { (seconds: Double) in Int(seconds) * 2 } },
                MigrationStep(to: "2.0") { try $0.convert("seconds") { (seconds: Int) in seconds + 1 } },
            ],
            properties: [
                .property("text", \.text, renamedFrom: ["title"]), .property("seconds", \.seconds),
                .property("parent", \.parent), .property("stars", \.stars), .property("labels", \.labels),
                .property("place", \.place),
            ])
    }
}

/// The class of ``First`` as `@Persistable` generates it.
private final class GeneratedNote: PersistentObject {
    var title = ""
    var seconds = 0.0
    var parent: GeneratedNote?
    var obsolete = 1

    init() {}

    static let persistentName = "Note"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1.0")
        record.property("title", late: true, default: "")
        record.property("seconds", late: true, default: 0.0)
        record.property("parent", GeneratedNote?.self, late: true)
        record.property("obsolete", late: true, default: 1)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        writer.write(title)
        writer.write(seconds)
        writer.write(parent)
        writer.write(obsolete)
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        reader.register(self)
        title = try reader.read()
        seconds = try reader.read()
        parent = try reader.read()
        obsolete = try reader.read()
    }
    func persistentEquals(_ other: AnyObject) -> Bool { title == (other as? GeneratedNote)?.title }
    func persistentHash(into hasher: inout Hasher) { hasher.combine(title) }
}

/// Animals and dogs of the samples, whose names are read before the objects exist.
private class LaterAnimal: KeyPathObject {
    var name = ""
    var friend: LaterAnimal?
    weak var keeper: LaterAnimal?
    var persistentExtensions = ExtensionStorage()

    required init() {}

    class var persistentSchema: ObjectSchema {
        ObjectSchema(LaterAnimal.self, name: "Animal", properties: [
            .property("name", \.name), .property("friend", \.friend), .property("keeper", \.keeper),
            .extensions(\.persistentExtensions),
        ])
    }
}

private final class LaterDog: LaterAnimal {
    var barks = 3

    override class var persistentSchema: ObjectSchema {
        ObjectSchema(LaterDog.self, name: "Dog", properties: [.property("barks", \.barks)])
    }
}

@Suite struct KeyPathObjectMigrationTests {
    @Test func stepsRunInOrderAndNewPropertiesHaveTheValuesOfTheInitializer() throws {
        let note = First.Note()
        note.title = "lake"
        note.seconds = 20.5
        note.parent = First.Note()
        let later = try Written(note).read(as: Second.Note.self)
        #expect(later.text == "lake")
        #expect(later.seconds == 41)
        #expect(later.parent?.seconds == 1)
        #expect(later.stars == 5)
        #expect(later.labels == ["new"])
        #expect(later.place == nil)
    }

    @Test func dataOfALaterVersionIsRefusedOrReadAsFarAsItIsKnown() throws {
        let note = Second.Note()
        note.text = "lake"
        note.seconds = 3
        let written = try Written(note)
        #expect(throws: PersistenceError.newerThanCode(type: "Note", stored: "2.0", code: "1.0")) {
            try written.read(as: First.Note.self)
        }
        let early = try written.read(as: First.Note.self, readsNewerData: true)
        #expect(early.title == "")
        #expect(early.obsolete == 1)
    }

    @Test func removedPropertyNeedsAVersion() throws {
        let written = try Written(First.Note())
        #expect(throws: PersistenceError.self) { try written.read(as: Shrunk.Note.self) }
    }

    @Test func bytesAreThoseOfTheGeneratedForm() throws {
        let note = First.Note(), generated = GeneratedNote()
        (note.title, generated.title) = ("lake", "lake")
        (note.seconds, generated.seconds) = (1.5, 1.5)
        (note.parent, generated.parent) = (First.Note(), GeneratedNote())
        let written = try Written(note)
        #expect(try Written(generated).bytes == written.bytes)
        #expect(try written.read(as: GeneratedNote.self).parent?.obsolete == 1)
    }

    @Test func dataOfTheOtherFormIsRead() throws {
        let dog = Dog("Rex"), cat = Animal("Tom")
        dog.friend = cat
        cat.keeper = dog
        dog.barks = 5
        dog.chip = "C"
        let animal = try Written(dog).read(as: LaterAnimal.self, knowing: LaterDog.self)
        let later = try #require(animal as? LaterDog)
        #expect(later.name == "Rex")
        #expect(later.barks == 5)
        #expect(later.friend?.name == "Tom")
        #expect(later.friend?.keeper === later)
        #expect(later.persistentExtensions[ExtensionKey("chip", category: "Vet", default: String?.none)] == "C")
        let back = try Written(later).read(as: Animal.self, knowing: Dog.self)
        #expect((back as? Dog)?.barks == 5)
        #expect(back.friend?.name == "Tom")
    }
}

private enum Shrunk {
    final class Note: KeyPathObject {
        var title = ""

        static let persistentSchema = ObjectSchema(Note.self, version: "1.0", properties: [.property("title", \.title)])
    }
}
