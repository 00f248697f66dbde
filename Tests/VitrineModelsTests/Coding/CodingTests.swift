import Foundation
import ModelsSamples
import TestSupport
import Testing
import VitrineModels

@Suite struct CodingTests {
    private let coder = PersistentCoder(registry: TypeRegistry())

    @Test func everythingComesBack() throws {
        var value = Everything()
        value.animal = Dog("Rex")
        let again = try coder.decode(Everything.self, from: coder.encode(value))
        #expect(again == value)
        #expect(again.double.sign == .minus)
        #expect(again.url?.baseURL == value.url?.baseURL)
    }

    @Test func plainValuesAndCollectionsAreValuesToo() throws {
        #expect(try coder.decode(Int.self, from: coder.encode(-5)) == -5)
        #expect(try coder.decode([Place].self, from: coder.encode([Place("a"), Place("b")])).map(\.name) == ["a", "b"])
        #expect(try coder.decode(Color?.self, from: coder.encode(Color?.none)) == nil)
        let notANumber = try coder.decode(Double.self, from: coder.encode(Double.nan))
        #expect(notANumber.isNaN)
    }

    @Test func sharedObjectsStaySharedAndCyclesStayCycles() throws {
        let first = Animal("a"), second = Dog("b")
        first.friend = second
        second.friend = first
        let array = try coder.decode([Animal].self, from: coder.encode([first, second, first]))
        #expect(array.count == 3)
        #expect(array[0] === array[2])
        #expect(array[0].friend === array[1])
        #expect(array[1].friend === array[0])
        array[0].friend = nil
        first.friend = nil
    }

    @Test func subclassStoredAsItsSuperclassComesBackAsItself() throws {
        let dog = Dog("Rex")
        dog.barks = 7
        let animal = try coder.decode(Animal.self, from: coder.encode(dog as Animal))
        #expect((animal as? Dog)?.barks == 7)
        #expect(throws: PersistenceError.self) { try coder.decode(Dog.self, from: coder.encode(Animal("Tom"))) }
    }

    @Test func weakReferencesLeadBackToTheirOwners() throws {
        let keeper = Animal("keeper"), animal = Animal("kept")
        keeper.friend = animal
        animal.keeper = keeper
        let again = try coder.decode(Animal.self, from: coder.encode(keeper))
        #expect(again.friend?.keeper === again)
    }

    @Test func cycleThroughRequiredPropertyIsReported() throws {
        let inner = Bound(needed: [])
        let outer = Bound(needed: [inner])
        inner.other = outer
        let bytes = try coder.encode(outer)
        #expect(throws: PersistenceError.cycleThroughRequiredProperty(type: "Bound")) {
            try coder.decode(Bound.self, from: bytes)
        }
        inner.other = nil
    }

    @Test func depthIsLimitedOnBothSides() async throws {
        try await offPool {
            let coder = PersistentCoder(registry: TypeRegistry())
            func chain(_ length: Int) -> Term {
                (1..<length).reduce(Term.nothing) { expression, _ in .named("", of: expression) }
            }
            let deepest = try coder.encode(chain(256))
            #expect(try coder.decode(Term.self, from: deepest) == chain(256))
            #expect(throws: PersistenceError.tooDeep(limit: 256)) { try coder.encode(chain(257)) }
            let shallow = PersistentCoder(registry: coder.registry, depthLimit: 255)
            #expect(throws: PersistenceError.tooDeep(limit: 255)) {
                try shallow.decode(Term.self, from: deepest)
            }
            #expect(throws: PersistenceError.tooDeep(limit: 255)) { try shallow.tree(of: deepest) }
        }
    }

    @Test func damageIsFoundAtEveryByte() throws {
        let bytes = try coder.encode(Place("home", latitude: 47))
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 0x10
            #expect(throws: PersistenceError.self) { try coder.decode(Place.self, from: damaged) }
            #expect(throws: PersistenceError.self) { try coder.decode(Place.self, from: Array(bytes[..<index])) }
        }
        #expect(throws: PersistenceError.foreign) { try coder.decode(Place.self, from: Array("{}".utf8)) }
        #expect(throws: PersistenceError.truncated(offset: 0)) { try coder.decode(Place.self, from: []) }
        var later = bytes
        later[1] = 2
        #expect(throws: PersistenceError.unsupportedFormat(2)) { try coder.decode(Place.self, from: later) }
    }

    @Test func foreignSchemaIsNotGuessed() throws {
        let bytes = try coder.encode(Place("home"))
        let fingerprint = try coder.registry.schema(of: Place.self).fingerprint
        #expect(throws: PersistenceError.unknownSchema(fingerprint: fingerprint)) {
            try PersistentCoder(registry: TypeRegistry()).decode(Empty.self, from: bytes)
        }
    }

    @Test func wrongTypeIsNoticed() throws {
        let bytes = try coder.encode(Place("home"))
        #expect(throws: PersistenceError.typeMismatch(path: "Int", expected: "Int", found: "Place")) {
            try coder.decode(Int.self, from: bytes)
        }
        #expect(throws: PersistenceError.self) { try coder.decode(Empty.self, from: bytes) }
        #expect(throws: PersistenceError.self) { try coder.decode(Animal.self, from: bytes) }
    }

    @Test func temporariesAreNotTakenForEachOther() throws {
        // Each element exists only while it is written; addresses would be used again.
        struct Fresh: PersistentRecord {
            static let persistentName = "Fresh"
            static func describe(in record: inout RecordBuilder) {
                record.header(version: "1")
                record.property("animals", [Animal].self)
            }
            func persistProperties(to writer: inout BinaryWriter) {
                writer.write(case: 20)
                for index in 0..<20 { writer.write(Animal("\(index)")) }
            }
            init(restoring reader: inout BinaryReader) throws(PersistenceError) {
                names = try reader.read([Animal].self).map(\.name)
            }
            init() {}
            var names: [String] = []
        }
        #expect(try coder.decode(Fresh.self, from: coder.encode(Fresh())).names == (0..<20).map { "\($0)" })
    }
}
