import ModelsSamples
import Testing
import VitrineModels

@Suite struct EqualityTests {
    private func ring(_ names: String...) -> [Animal] {
        let animals = names.map { Animal($0) }
        for index in animals.indices { animals[index].friend = animals[(index + 1) % animals.count] }
        return animals
    }

    private func open(_ ring: [Animal]) { for animal in ring { animal.friend = nil } }

    @Test func equalPropertiesDoNotCancelInHashes() {
        // As they would if they were combined by exclusive or.
        let first = Animal("a"), second = Animal("b")
        first.friend = Animal("a")
        second.friend = Animal("b")
        #expect(first.hashValue != second.hashValue)
    }

    @Test func cyclesEnd() {
        let first = ring("a", "b"), second = ring("a", "b"), third = ring("a", "c")
        #expect(first[0] == second[0])
        #expect(first[0].hashValue == second[0].hashValue)
        #expect(first[0] != third[0])
        // One turn of one ring is two of the other: no difference is to be seen.
        let short = ring("a"), long = ring("a", "a")
        #expect(short[0] == long[0])
        #expect(short[0].hashValue == long[0].hashValue)
        #expect(Set([short[0], long[0]]).count == 1)
        for ring in [first, second, third, short, long] { open(ring) }
    }

    @Test func longCyclesAreComparedToTheirEnd() {
        let names = (0..<100).map { "\($0)" }
        func long(_ last: String) -> [Animal] {
            let animals = (names + [last]).map { Animal($0) }
            for index in animals.indices { animals[index].friend = animals[(index + 1) % animals.count] }
            return animals
        }
        let first = long("x"), second = long("x"), third = long("y")
        #expect(first[0] == second[0])
        #expect(first[0] != third[0])
        for ring in [first, second, third] { open(ring) }
    }

    @Test func denseGraphsAreComparedInTheirSizeNotInTheirPaths() {
        // Each level leads to the next twice: 2^60 paths.
        func ladder(_ last: Int) -> Bound {
            var bound = Bound(needed: last == 0 ? [] : [Bound(needed: [])])
            for _ in 0..<60 { bound = Bound(needed: [bound, bound]) }
            return bound
        }
        #expect(ladder(0) == ladder(0))
        #expect(ladder(0) != ladder(1))
    }

    @Test func classesAreCompared() {
        let dog: Animal = Dog("a")
        #expect(dog != Animal("a"))
        #expect(Animal("a") == Animal("a"))
    }

    @Test func copySharesNothingAndKeepsShape() throws {
        let original = ring("a", "b")
        original[0].chip = "C"
        let copy = try original[0].persistentCopy(by: PersistentCoder(registry: TypeRegistry()))
        #expect(copy == original[0])
        #expect(copy !== original[0])
        #expect(copy.friend !== original[1])
        #expect(copy.friend?.friend === copy)
        copy.chip = "D"
        #expect(original[0].chip == "C")
        copy.friend?.friend = nil
        open(original)
    }

    @Test func nilStaysNilInACopy() throws {
        let dog = Dog("a")
        #expect(try dog.persistentCopy(by: PersistentCoder(registry: TypeRegistry())).friend == nil)
    }
}
