import ModelsSamples
import Testing
import VitrineModels

@Suite struct ExtensionPropertyTests {
    private let coder = PersistentCoder(registry: TypeRegistry())

    @Test func propertiesOfExtensionsAreStoredAlsoForSubclasses() throws {
        let dog = Dog("Rex")
        dog.chip = "C-1"
        dog.home = Place("yard", latitude: 1)
        let again = try coder.decode(Animal.self, from: coder.encode(dog))
        #expect(again.chip == "C-1")
        #expect(again.home == Place("yard", latitude: 1))
        #expect(again == dog)
        #expect(again.hashValue == dog.hashValue)
        again.chip = "C-2"
        #expect(again != dog)
    }

    @Test func unknownExtensionPropertiesSurvive() throws {
        let animal = Animal("Tom")
        animal.persistentExtensions[ExtensionKey("later", category: "X", default: [Place]())] = [Place("p")]
        let written = try Written(animal)
        let other = try written.coder()
        let again = try other.decode(Animal.self, from: written.bytes)
        // Its chip is set; what else is there was never looked at.
        again.chip = "new"
        let rewritten = try other.encodeWithSchemas(again)
        #expect(rewritten.fingerprints.count == 4)
        let third = try other.decode(Animal.self, from: rewritten.bytes)
        #expect(third.persistentExtensions[ExtensionKey("later", category: "X", default: [Place]())] == [Place("p")])
        #expect(third.chip == "new")
    }

    @Test func objectsInThemBringTheirSchemas() throws {
        let animal = Animal("Tom")
        animal.persistentExtensions[ExtensionKey("pet", default: Dog?.none)] = Dog("Rex")
        let written = try Written(animal)
        #expect(written.schemas.contains { $0.name == "Dog" })
        #expect(try written.tree().persistentDescription.contains("Rex"))
    }

    @Test func copiesOfStoragesAreValues() {
        var first = ExtensionStorage()
        let key = ExtensionKey("n", default: 7)
        #expect(first[key] == 7)
        first[key] = 1
        var second = first
        second[key] = 2
        #expect(first[key] == 1)
        #expect(first != second)
        second[key] = 1
        #expect(first == second)
    }

    @Test func anotherTypeOfTheSameNameIsNotMixedUp() throws {
        let animal = Animal("Tom")
        animal.persistentExtensions[ExtensionKey("chip", category: "Vet", default: 0)] = 5
        let again = try coder.decode(Animal.self, from: coder.encode(animal))
        #expect(again.chip == nil)
        #expect(again.persistentExtensions[ExtensionKey("chip", category: "Vet", default: 0)] == 5)
    }
}
