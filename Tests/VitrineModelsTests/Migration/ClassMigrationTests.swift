import ModelsSamples
import Testing
import VitrineCore
import VitrineModels

/// A later build: dogs are gone, animals have a sound.
private final class LaterAnimal: PersistentObject {
    let name: String
    var friend: LaterAnimal?
    var sound = ""
    var mate: LaterAnimal?

    static let persistentName = "Animal"
    static func describe(in record: inout RecordBuilder) {
        let step = MigrationStep(to: "2") { data in
            guard data.typeName == "Dog" else { return }
            data.set("sound", to: String(repeating: "woof", count: try data.value("barks") ?? 0))
            data.typeName = "Animal"
        }
        record.header(version: "2", steps: [step])
        record.property("name", String.self)
        record.property("friend", LaterAnimal?.self, late: true)
        record.property("sound", late: true, default: "silence")
        record.property("mate", LaterAnimal?.self, late: true, default: LaterAnimal("new"))
    }
    func persistProperties(to writer: inout BinaryWriter) {
        writer.write(name)
        writer.write(friend)
        writer.write(sound)
        writer.write(mate)
    }
    init(_ name: String) { self.name = name }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        name = try reader.read()
        reader.register(self)
        friend = try reader.read()
        sound = try reader.read()
        mate = try reader.read()
    }
    func persistentEquals(_ other: AnyObject) -> Bool { name == (other as? LaterAnimal)?.name }
    func persistentHash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// A later build whose step deals with the animals of a zoo that has no class for dogs any more.
private struct Zoo<Animals: PersistentObject>: PersistentRecord {
    var animals: [Animals]

    init(_ animals: [Animals]) { self.animals = animals }

    static var persistentName: String { "Zoo" }
    static func describe(in record: inout RecordBuilder) {
        let isLater = Animals.self == LaterAnimal.self
        let step = MigrationStep(to: "2") { data in
            for animal in try data.value("animals", as: [MigrationData].self) ?? [] where animal.typeName == "Dog" {
                animal.set("sound", to: String(repeating: "woof", count: try animal.value("barks") ?? 0))
                animal.typeName = "Animal"
            }
        }
        record.header(version: isLater ? "2" : "1", steps: isLater ? [step] : [])
        record.property("animals", [Animals].self)
    }
    func persistProperties(to writer: inout BinaryWriter) { writer.write(animals) }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) { animals = try reader.read() }
}

@Suite struct ClassMigrationTests {
    @Test func deletedSubclassBecomesItsSuperclassAndSharedObjectsStayOne() throws {
        let dog = Dog("Rex"), cat = Animal("Tom")
        dog.friend = cat
        cat.friend = dog
        dog.barks = 2
        let written = try Written(Zoo<Animal>([dog, cat, dog]))
        let zoo = try written.read(as: Zoo<LaterAnimal>.self)
        #expect(zoo.animals.map(\.name) == ["Rex", "Tom", "Rex"])
        #expect(zoo.animals[0] === zoo.animals[2])
        #expect(zoo.animals[0].friend === zoo.animals[1])
        #expect(zoo.animals[1].friend === zoo.animals[0])
        #expect(zoo.animals.map(\.sound) == ["woofwoof", "silence", "woofwoof"])
        // Objects that come with defaults stand between those that were stored.
        #expect(zoo.animals.map { $0.mate?.name } == ["new", "new", "new"])
        #expect(zoo.animals[0].mate !== zoo.animals[1].mate)
        cat.friend = nil
        zoo.animals[0].friend = nil
    }

    @Test func deletedClassWithoutAStepIsNamed() throws {
        let written = try Written(Dog("Rex"))
        #expect(throws: PersistenceError.unregisteredType("Dog")) { try written.read(as: LaterAnimal.self) }
        // Its data is there all the same.
        #expect(try written.tree().persistentDescription.contains("\"barks\" : 3"))
    }

    @Test func unknownSubclassIsReadOnceRegistered() throws {
        let written = try Written(Dog("Rex") as Animal)
        #expect(throws: PersistenceError.unregisteredType("Dog")) { try written.read(as: Animal.self) }
        #expect(try written.read(as: Animal.self, knowing: Dog.self) is Dog)
    }

    @Test func dataOfCyclicObjectsIsFreed() throws {
        let parent = Animal("parent"), child = Animal("child")
        parent.friend = child
        child.friend = parent
        let written = try Written(parent)
        let seen = SeenData()
        SeenAnimal.seen.withLock { $0 = seen }
        #expect(try written.read(as: SeenAnimal.self).name == "parent")
        #expect(seen.count == 2)
        #expect(seen.living == 0)
        // Readers of untyped data break cycles themselves.
        let tree = SeenData()
        do {
            let value = try written.tree()
            guard case .record(let data) = value, let friend = try data.value("friend", as: MigrationData.self) else {
                Issue.record("no record")
                return
            }
            tree.add(data)
            tree.add(friend)
            #expect(try friend.value("friend", as: MigrationData.self) === data)
            value.breakCycles()
        }
        #expect(tree.living == 0)
        child.friend = nil
    }

    @Test func superclassesHaveVersionsOfTheirOwn() throws {
        let written = try Written(VersionedLeaf<Older>(5))
        #expect(try written.read(as: VersionedLeaf<Newer>.self).value == 10)
    }
}

/// Weak references to untyped data.
private final class SeenData: @unchecked Sendable {
    // Unchecked: one test fills and reads it on one thread.
    private struct Reference { weak var data: MigrationData? }
    private var references: [Reference] = []

    var count: Int { references.count }
    var living: Int { references.count { $0.data != nil } }

    func add(_ data: MigrationData) { references.append(Reference(data: data)) }
}

/// A later build whose step records the data that it is given.
private final class SeenAnimal: PersistentObject {
    static let seen = Locked<SeenData?>(nil)
    let name: String

    static let persistentName = "Animal"
    static func describe(in record: inout RecordBuilder) {
        let step = MigrationStep(to: "2") { data in seen.withLock { $0 }?.add(data) }
        record.header(version: "2", steps: [step])
        record.property("name", String.self)
    }
    func persistProperties(to writer: inout BinaryWriter) { writer.write(name) }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        name = try reader.read()
        reader.register(self)
    }
    func persistentEquals(_ other: AnyObject) -> Bool { name == (other as? SeenAnimal)?.name }
    func persistentHash(into hasher: inout Hasher) { hasher.combine(name) }
}

private protocol Age { static var version: SchemaVersion { get } }
private enum Older: Age { static var version: SchemaVersion { "1" } }
private enum Newer: Age { static var version: SchemaVersion { "2" } }

/// The subclass stays at version 7 while its superclass goes from 1 to 2, in a step that doubles the value.
private class VersionedRoot<Build: Age>: PersistentObject {
    var value: Int

    init(_ value: Int) { self.value = value }

    class var persistentName: String { "Root" }
    class func describe(in record: inout RecordBuilder) {
        let step = MigrationStep(to: "2") { try $0.convert("value") { (value: Int) in value * 2 } }
        record.header(version: Build.version, steps: Build.version == "2" ? [step] : [])
        record.property("value", Int.self)
    }
    func persistProperties(to writer: inout BinaryWriter) { writer.write(value) }
    required init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        value = try reader.read()
        reader.register(self)
    }
    func persistentEquals(_ other: AnyObject) -> Bool { value == (other as? Self)?.value }
    func persistentHash(into hasher: inout Hasher) { hasher.combine(value) }
}

private final class VersionedLeaf<Build: Age>: VersionedRoot<Build> {
    override class var persistentName: String { "Leaf" }
    override class func describe(in record: inout RecordBuilder) {
        record.header(version: "7", superclass: VersionedRoot<Build>.self)
    }
}

/// An object with a struct that changes from build to build, as a property and in an extension.
private final class Holder<Build: DatedBuild>: PersistentObject {
    let inner: Dated<Build>
    var persistentExtensions = ExtensionStorage()

    init(_ inner: Dated<Build>) { self.inner = inner }

    static var persistentName: String { "Holder" }
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1", isExtensible: true)
        record.property("inner", Dated<Build>.self)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        writer.write(inner)
        writer.write(persistentExtensions)
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        inner = try reader.read()
        reader.register(self)
        persistentExtensions = try reader.read()
    }
    func persistentEquals(_ other: AnyObject) -> Bool { inner == (other as? Holder)?.inner }
    func persistentHash(into hasher: inout Hasher) { hasher.combine(inner) }
}

private enum Before: DatedBuild {
    static var version: SchemaVersion { "1" }
    static var properties: [DatedProperty] { [DatedProperty(name: "a")] }
}

private enum After: DatedBuild {
    static var version: SchemaVersion { "2" }
    static var properties: [DatedProperty] { [DatedProperty(name: "x")] }
    static var steps: [MigrationStep] {
        [
            MigrationStep(to: "2") { data in
                data.rename("a", to: "x")
                try data.convert("x") { (number: Int) in number * 2 }
            }
        ]
    }
}

@Suite struct NestedStructMigrationTests {
    @Test func stepsOfStructsInObjectsRunWhateverTheObjectsStandIn() throws {
        let holder = Holder<Before>(Dated([3]))
        #expect(try Written(holder).read(as: Holder<After>.self).inner.values == [6])
        #expect(try Written([holder]).read(as: [Holder<After>].self).map(\.inner.values) == [[6]])
        #expect(try Written(["k": holder]).read(as: [String: Holder<After>].self)["k"]?.inner.values == [6])
    }

    @Test func valuesOfExtensionsAreMigratedOnce() throws {
        let holder = Holder<Before>(Dated([3]))
        holder.persistentExtensions[ExtensionKey("more", default: Dated<Before>([0]))] = Dated([5])
        let later = try Written(holder).read(as: Holder<After>.self)
        #expect(later.inner.values == [6])
        #expect(later.persistentExtensions[ExtensionKey("more", default: Dated<After>([0]))].values == [10])
    }
}
