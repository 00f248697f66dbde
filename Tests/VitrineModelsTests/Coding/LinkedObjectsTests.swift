import ModelsSamples
import Testing
import VitrineModels

/// Objects that link to each other in long chains. Their links have no limit, but releasing a chain is recursive, too,
/// so that each test takes its chains apart.
@Suite struct LinkedObjectsTests {
    private let coder = PersistentCoder(registry: TypeRegistry())

    /// Objects of which each refers to the next, and weakly to the previous one.
    private func chain(_ count: Int) -> [Animal] {
        let animals = (0..<count).map { Animal("\($0)") }
        for index in animals.indices.dropFirst() {
            animals[index - 1].friend = animals[index]
            animals[index].keeper = animals[index - 1]
        }
        return animals
    }

    private func takeApart(_ animals: [Animal]) { for animal in animals { animal.friend = nil } }

    /// Returns the objects of a chain, beginning with the first one.
    private func links(of first: Animal?) -> [Animal] {
        var animals: [Animal] = []
        var next = first
        while let animal = next {
            animals.append(animal)
            next = animal.friend
        }
        return animals
    }

    @Test(arguments: [300, 30_000]) func chainsOfAnyLengthComeBackInAnyOrder(count: Int) throws {
        let animals = chain(count)
        defer { takeApart(animals) }
        for order in [animals, animals.reversed()] {
            let again = try coder.decode([Animal].self, from: coder.encode(order))
            defer { takeApart(again) }
            #expect(again.map(\.name) == order.map(\.name))
            let first = try #require(count > 0 && order.first === animals.first ? again.first : again.last)
            let links = links(of: first)
            #expect(links.count == count)
            #expect(links.last?.name == "\(count - 1)")
            #expect(links.last?.keeper === links.dropLast().last)
        }
        let alone = links(of: try coder.decode(Animal.self, from: coder.encode(animals[0])))
        defer { takeApart(alone) }
        #expect(alone.count == count)
    }

    @Test func chainsAreMigratedAndCopied() throws {
        let animals = chain(3000)
        defer { takeApart(animals) }
        let bytes = try coder.encode(animals)
        #expect(try coder.upgrade(bytes, of: [Animal].self) == bytes)
        let copy = links(of: try animals[0].persistentCopy(by: coder))
        defer { takeApart(copy) }
        #expect(copy.count == 3000)
        let text = animals[0].persistentDescription
        #expect(text.contains("\"255\"") && !text.contains("\"257\""))
    }

    @Test func structsInLinkedObjectsHaveTheirOwnLimit() throws {
        let coder = PersistentCoder(registry: coder.registry, depthLimit: 2)
        let animals = chain(100)
        defer { takeApart(animals) }
        for animal in animals { animal.home = Place("p") }
        let again = links(of: try coder.decode(Animal.self, from: coder.encode(animals[0])))
        defer { takeApart(again) }
        #expect(again.count == 100 && again.allSatisfy { $0.home == Place("p") })
    }

    @Test func chainsThroughExtensionsAreDeepToo() throws {
        let key = ExtensionKey("next", default: Animal?.none)
        let animals = (0..<600).map { Animal("\($0)") }
        for index in animals.indices.dropFirst() { animals[index - 1].persistentExtensions[key] = animals[index] }
        let bytes = try coder.encode(animals[0])
        let tree = try coder.tree(of: bytes)
        tree.breakCycles()
        var count = 0
        var next: Animal? = try coder.decode(Animal.self, from: bytes)
        while let animal = next {
            #expect(animal.name == "\(count)")
            count += 1
            next = animal.persistentExtensions[key]
        }
        #expect(count == 600)
    }

    @Test func chainsThatAreCutAreErrors() throws {
        let animals = chain(2000)
        defer { takeApart(animals) }
        let bytes = try coder.encode(animals[0])
        let body = Array(bytes.dropLast(bytes.count / 2))
        #expect(throws: PersistenceError.damaged) { try coder.decode(Animal.self, from: body) }
        let fingerprint = try coder.registry.schema(of: Animal.self).fingerprint
        body.dropFirst(10).withUnsafeBytes { body in
            let error = #expect(throws: PersistenceError.self) {
                try coder.decode(Animal.self, fingerprint: fingerprint, body: body)
            }
            #expect(error?.code == "truncated")
        }
    }
}
