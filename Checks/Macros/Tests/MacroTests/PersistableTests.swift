import Foundation
import Testing
import VitrineModels

@Suite struct PersistableTests {
    private let coder = PersistentCoder(registry: TypeRegistry())

    private func again<Value: PersistentValue>(_ value: Value) throws -> Value {
        try coder.decode(Value.self, from: coder.encode(value))
    }

    @Test func structsAndEnumsComeBack() throws {
        let shapes: [Shape] = [.circle(radius: 1), .rectangle(1, 2, label: "x"), .default]
        #expect(try again(shapes) == shapes)
        let term = Term.sum(.number(1), .negative(of: .number(2)))
        #expect(try again(term) == term)
        let box = Box(value: Tag(weight: 3, id: UUID(), tint: .green), more: [Tag(weight: 4, id: UUID())])
        #expect(try again(box) == box)
        #expect(Box<Tag>.persistentName == "Box<Tag>")
        let tree = Tree(value: 1, children: [Tree(value: 2)])
        #expect(try again(tree) == tree)
        #expect(try again([Nothing(), Nothing()]).count == 2)
        #expect(try again(Several(a: 1, b: 2)) == Several(a: 1, b: 2))
    }

    @Test func transientPropertiesAreNeitherStoredNorCompared() throws {
        let first = Renamed(name: "n", cache: [1])
        #expect(first == Renamed(name: "n"))
        #expect(try again(first).cache.isEmpty)
        let json = try coder.json(of: coder.encode(first))
        #expect(json.contains(#""value":{"user_name":"n"}"#), "\(json)")
    }

    @Test func classesInheritAcrossLevels() throws {
        let sports = Sports(power: 300)
        sports.gear = 99
        sports.brand = "x"
        sports.spare = Car(wheels: 2)
        sports.trailer = sports
        sports.etag = "W/1"
        sports.tell("more")
        sports.observed = 5
        let vehicle = try again(sports as Vehicle)
        let copy = try #require(vehicle as? Sports)
        #expect(copy == sports)
        #expect(copy.id == sports.id)
        #expect(copy.power == 300)
        #expect(copy.gear == 10)
        #expect(copy.spare is Car)
        #expect(copy.trailer === copy)
        #expect(copy.etag == "W/1")
        #expect(copy.changes == 0)
        sports.tell("other")
        #expect(copy != sports)
        #expect(Set([sports, copy, copy]).count == 2)
    }

    @Test func extensionPropertiesOfStructsAreStored() throws {
        var inner = Outer.Inner(x: 1)
        #expect(inner.y == 7)
        inner.y = 8
        #expect(try again(inner).y == 8)
    }

    @Test func defaultsKeepTheirInitializers() throws {
        let value = Defaults()
        value.a = 2
        #expect(try again(value) == value)
        #expect(Defaults().b == nil)
        let observed = Observed()
        observed.name = "n"
        #expect(try again(observed).name == "n")
    }

    @Test @MainActor func mainActorClassesAreStoredOnTheMainActor() throws {
        let value = OnMainActor()
        value.a = 5
        let bytes = try coder.encode(value)
        #expect(try coder.decode(OnMainActor.self, from: bytes).a == 5)
    }

    @Test func stepsOfTheTypeBringOldDataUpToDate() throws {
        let old = TypeRegistry()
        let bytes = try PersistentCoder(registry: old).encode(Earlier.Vehicle())
        coder.registry.add(try old.schema(of: Earlier.Vehicle.self))
        #expect(try coder.decode(Vehicle.self, from: bytes).wheels == 6)
    }

    @Test func aHookIsAStepThatIsToldTheVersion() throws {
        func read(_ old: some PersistentRecord) throws -> Int {
            let before = TypeRegistry(), now = TypeRegistry()
            let bytes = try PersistentCoder(registry: before).encode(old)
            now.add(try before.schema(of: type(of: old)))
            // In one expression, Swift 6.3 does not find the conformance that the macro generates in another file.
            let hooked = try PersistentCoder(registry: now).decode(Hooked.self, from: bytes)
            return hooked.sum
        }
        #expect(try read(Earlier.Hooked()) == 4)
        #expect(throws: PersistenceError.migrationAbandoned(type: "Hooked", from: "0.1")) { try read(Earlier.Oldest()) }
    }

    @Test func keyPathObjectsHaveTheBytesOfTheMacroForm() throws {
        let listed = Listed.SubNote(), generated = Generated.SubNote()
        (listed.title, generated.title) = ("lake", "lake")
        (listed.parent, generated.parent) = (listed, generated)
        (listed.tags, generated.tags) = (["a"], ["a"])
        let key = ExtensionKey("etag", default: "")
        listed.persistentExtensions[key] = "W/1"
        generated.persistentExtensions[key] = "W/1"
        let bytes = try PersistentCoder(registry: TypeRegistry()).encode(listed)
        #expect(try coder.encode(generated) == bytes)
    }

    @Test func descriptionsNestSuperclasses() {
        let car = Car(wheels: 4)
        car.etag = "W"
        #expect(car.description.contains("\"**Vehicle\" : {\n      \"(Sync)etag\" : \"W\""))
    }
}
