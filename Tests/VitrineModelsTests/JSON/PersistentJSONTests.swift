import Foundation
import ModelsSamples
import TestSupport
import Testing
import VitrineModels

@Suite struct PersistentJSONTests {
    /// The value as JSON of a build that knows no other type.
    private static func json(_ value: some PersistentValue) throws -> String {
        let coder = PersistentCoder(registry: TypeRegistry())
        return try coder.json(of: coder.encode(value))
    }

    /// The value read from its JSON by another build, which knows no schema but its own.
    private func again<Value: PersistentValue>(
        _ value: Value, knowing types: any PersistentRecord.Type...
    ) throws -> Value {
        let text = try Self.json(value)
        let registry = TypeRegistry()
        for type in types { try registry.register(type) }
        return try PersistentCoder(registry: registry).decode(Value.self, fromJSON: text)
    }

    @Test func everythingComesBackToTheLastBit() throws {
        var value = Everything()
        value.numbers.append(1 << 60 + 1)
        value.double = .pi
        value.date = Date(timeIntervalSinceReferenceDate: 0.1 + 0.2)
        #expect(try again(value) == value)
        let doubles = [-0.0, .infinity, -.infinity, .leastNonzeroMagnitude]
        #expect(try again(doubles) == doubles)
        #expect(try again(doubles)[0].sign == .minus)
        #expect(try again([Float.nan])[0].isNaN)
        #expect(try again([UInt64.max, 0]) == [.max, 0])
        #expect(try again([Int?.none, 3]) == [nil, 3])
        #expect(try again([1: "a", 2: "b"]) == [1: "a", 2: "b"])
        #expect(try again([Int: String]()) == [:])
        #expect(try again("top") == "top")
        #expect(try again(Decimal.nan).isNaN)
    }

    @Test func everyNumberThatExistsComesBack() throws {
        var generator = SystemRandomNumberGenerator()
        let usual = [Double.nan, -.nan, Double(nan: 5, signaling: false), -Double(nan: 1, signaling: false)]
        let zero = Double([Int]().count)
        let doubles = usual + [zero / zero, .infinity - .infinity, .greatestFiniteMagnitude, -.leastNormalMagnitude]
            + [0x7FF0_0000_0000_0001, 0xFFF4_0000_0000_0000].map { Double(bitPattern: $0) }
            + (0..<20_000).map { _ in Double(bitPattern: generator.next()) }
        #expect(try again(doubles).map(\.bitPattern) == doubles.map(\.bitPattern))
        let floats = [Float.nan, -.nan, Float(zero) / Float(zero), Float(bitPattern: 0x7F80_0001)]
            + (0..<20_000).map { _ in Float(bitPattern: generator.next()) }
        #expect(try again(floats).map(\.bitPattern) == floats.map(\.bitPattern))
        let date = Date(timeIntervalSinceReferenceDate: -.nan)
        #expect(try again(date).timeIntervalSinceReferenceDate.bitPattern == (-Double.nan).bitPattern)
        // Earlier exports wrote these.
        let coder = PersistentCoder(registry: TypeRegistry())
        #expect(try coder.decode(Double.self, fromJSON: #"{"value": "-nan"}"#).bitPattern == (-Double.nan).bitPattern)
        #expect(throws: PersistenceError.self) { try coder.decode(Double.self, fromJSON: #"{"value": "nan:x"}"#) }
    }

    @Test func optionalsOfOptionalsKeepTheirLevel() throws {
        let values: [Int??] = [nil, .some(nil), 5]
        #expect(try again(values) == values)
        let deeper: [Int???] = [nil, .some(nil), .some(.some(nil)), 5]
        #expect(try again(deeper) == deeper)
        let dictionaries: [[String: Int?]??] = [
            nil, .some(nil), ["$some": nil], ["$some": 3], ["$some": nil, "a": 1], [:],
        ]
        #expect(try again(dictionaries) == dictionaries)
    }

    @Test func linksThatAreTooDeepForJSONAreAnError() throws {
        let animals = (0..<300).map { Animal("\($0)") }
        for index in 1..<300 { animals[index - 1].friend = animals[index] }
        #expect(throws: PersistenceError.tooDeep(limit: 256)) { try Self.json(animals) }
        #expect(try again(Array(animals.reversed())).map(\.name) == animals.reversed().map(\.name))
    }

    @Test func graphsKeepTheirShape() throws {
        let dog = Dog("Rex")
        dog.barks = 9
        dog.friend = Animal("Tom")
        dog.friend?.friend = dog
        dog.chip = "C-1"
        dog.home = Place("Bern", latitude: 46.9)
        defer { dog.friend?.friend = nil }
        let read = try again(["z": dog as Animal, "a": dog.friend ?? dog], knowing: Dog.self)
        defer { read["z"]?.friend?.friend = nil }
        let other = try #require(read["z"] as? Dog)
        #expect(other == dog && other.friend?.friend === other && read["a"] === other.friend)
        #expect(other.chip == "C-1" && other.home == Place("Bern", latitude: 46.9))
    }

    @Test func olderJSONIsMigrated() throws {
        let text = try Self.json(Dated<TwoNumbers>([1, 2]))
        let coder = PersistentCoder(registry: TypeRegistry())
        #expect(try coder.decode(Dated<TheirSum>.self, fromJSON: text).values == [3])
        let newer = try Self.json(Dated<TheirSum>([3]))
        #expect(throws: PersistenceError.newerThanCode(type: "Dated", stored: "2", code: "1")) {
            try PersistentCoder(registry: TypeRegistry()).decode(Dated<TwoNumbers>.self, fromJSON: newer)
        }
    }

    @Test func handwrittenJSONIsRead() throws {
        let registry = TypeRegistry()
        let coder = PersistentCoder(registry: registry)
        #expect(
            try coder.decode(Place.self, fromJSON: #"{"value": {"name": "Bern", "unknown": 3}}"#) == Place("Bern"))
        #expect(registry.droppedProperties(of: "Place") == ["unknown"])
        let sum = #"{"value": {"$case": "sum", "_0": {"$case": "number", "_0": 4}, "_1": "nothing"}}"#
        #expect(try coder.decode(Term.self, fromJSON: sum) == .sum(.number(4), .nothing))
        let dog = #"{"value": {"$type": "Dog", "name": "Rex", "barks": 2}}"#
        try registry.register(Dog.self)
        #expect((try coder.decode(Animal.self, fromJSON: dog) as? Dog)?.barks == 2)
    }

    @Test(arguments: [
        ("[", "malformed"), ("[]", "missing-value"), (#"{"value": 3}"#, "type-mismatch"),
        (#"{"value": {"latitude": 1}}"#, "missing-value"), (#"{"value": {"name": 1}}"#, "type-mismatch"),
        (#"{"value": {}, "$schema": "zz"}"#, "malformed"), (#"{"value": {}, "$schema": "ff"}"#, "unknown-schema"),
        (#"{"value": {}, "schemas": {"a": "%"}}"#, "malformed"),
        (#"{"value": {}, "schemas": {"a": "AAAA"}}"#, "unsupported-format"),
    ])
    func whatIsWrongIsSaid(text: String, code: String) {
        let error = #expect(throws: PersistenceError.self) {
            try PersistentCoder(registry: TypeRegistry()).decode(Place.self, fromJSON: text)
        }
        #expect(error?.code == code, "\(error?.description ?? "")")
    }

    @Test func errorsHaveThePathOfTheValue() {
        let coder = PersistentCoder(registry: TypeRegistry())
        let text = #"{"value": [{"name": "a"}, {"name": "b", "latitude": "north"}]}"#
        #expect(
            throws: PersistenceError.typeMismatch(
                path: "[Place][1].latitude", expected: "Double", found: "\"north\"")
        ) { try coder.decode([Place].self, fromJSON: text) }
    }

    @Test func referencesToNothingAndDepthAreErrors() {
        let coder = PersistentCoder(registry: TypeRegistry(), depthLimit: 20)
        #expect(throws: PersistenceError.malformed("there is no object 4 before its reference")) {
            try coder.decode(Animal.self, fromJSON: #"{"value": {"name": "a", "friend": {"$ref": 4}}}"#)
        }
        let deep =
            String(repeating: #"{"name": "a", "friend": "#, count: 21) + "null" + String(repeating: "}", count: 21)
        #expect(throws: PersistenceError.tooDeep(limit: 20)) {
            try coder.decode(Animal.self, fromJSON: #"{"value": \#(deep)}"#)
        }
    }

    @Test func storesExportWithoutCode() async throws {
        let directory = try TemporaryDirectory()
        func open() throws -> ObjectStore {
            try ObjectStore(
                at: directory.file("a.sqlite"), configuration: .init(coder: PersistentCoder(registry: TypeRegistry())))
        }
        let dog = Dog("Rex")
        try await open().put(dog, for: "rex", in: "g")
        let text = try #require(try open().json(for: "rex", in: "g"))
        let registry = TypeRegistry()
        try registry.register(Dog.self)
        #expect(try PersistentCoder(registry: registry).decode(Animal.self, fromJSON: text) == dog)
    }
}
