import ModelsSamples
import TestSupport
import Testing
import VitrineModels

/// A car as one build of a program knows it.
private struct Car<Build: CarBuild>: PersistentRecord {
    var plate: String
    var paint: Build.Paint

    init(_ plate: String, _ paint: Build.Paint) { (self.plate, self.paint) = (plate, paint) }

    static var persistentName: String { "Car" }
    static func describe(in record: inout RecordBuilder) {
        record.header(version: Build.version)
        record.property("plate", String.self)
        Build.describePaint(in: &record)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        writer.write(plate)
        writer.write(paint)
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        plate = try reader.read()
        paint = try reader.read()
    }
}

private protocol CarBuild: Hashable {
    associatedtype Paint: PersistentValue
    static var version: SchemaVersion { get }
    static func describePaint(in record: inout RecordBuilder)
}

extension CarBuild {
    static var version: SchemaVersion { "1" }
    static func describePaint(in record: inout RecordBuilder) { record.property("paint", Paint.self) }
}

private enum LaterColor: String, PersistentValue { case red, green, blue }

/// An enum with a record, and the same of a later build.
private enum Finish: PersistentRecord {
    case matt
    static let persistentName = "Finish"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        record.case("matt")
    }
    func persistProperties(to writer: inout BinaryWriter) { writer.write(case: 0) }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        guard try reader.readCase() == 0 else { throw .malformed("no case") }
        self = .matt
    }
}

private enum LaterFinish: PersistentRecord {
    case matt, glossy
    static let persistentName = "Finish"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "2")
        record.case("matt")
        record.case("glossy")
    }
    func persistProperties(to writer: inout BinaryWriter) { writer.write(case: self == .matt ? 0 : 1) }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        self = try reader.readCase() == 0 ? .matt : .glossy
    }
}

private enum Required: CarBuild { typealias Paint = Color }
private enum Defaulted: CarBuild {
    typealias Paint = Color
    static func describePaint(in record: inout RecordBuilder) { record.property("paint", default: Color.red) }
}
private enum OptionalPaint: CarBuild { typealias Paint = Color? }
private enum Several: CarBuild {
    typealias Paint = [Color]
    static func describePaint(in record: inout RecordBuilder) { record.property("paint", default: [Color.red]) }
}
private enum Named: CarBuild { typealias Paint = [String: Color]? }
private enum Finished: CarBuild { typealias Paint = Finish? }
private enum WithAnimal: CarBuild { typealias Paint = Animal? }

private enum Later: CarBuild {
    typealias Paint = LaterColor
    static var version: SchemaVersion { "2" }
}
private enum LaterSeveral: CarBuild {
    typealias Paint = [LaterColor]
    static var version: SchemaVersion { "2" }
}
private enum LaterNamed: CarBuild {
    typealias Paint = [String: LaterColor]?
    static var version: SchemaVersion { "2" }
}
private enum LaterFinished: CarBuild {
    typealias Paint = LaterFinish?
    static var version: SchemaVersion { "2" }
}
private enum LaterWithAnimal: CarBuild {
    typealias Paint = Animal?
    static var version: SchemaVersion { "2" }
}
/// A later build that did not change the version, because the schema is the same.
private enum Grown: CarBuild { typealias Paint = LaterColor }

@Suite struct NewerDataTests {
    private func paint<Old: CarBuild, New: CarBuild>(
        _ paint: New.Paint, of new: New.Type, as old: Old.Type, readsNewerData: Bool = true
    ) throws -> Old.Paint {
        let car = try Written(Car<New>("B-1", paint)).read(as: Car<Old>.self, readsNewerData: readsNewerData)
        #expect(car.plate == "B-1")
        return car.paint
    }

    @Test func unknownValuesBecomeTheDefaultValue() throws {
        #expect(try paint(.green, of: Later.self, as: Defaulted.self) == .green)
        #expect(try paint(.blue, of: Later.self, as: Defaulted.self) == .red)
        #expect(try paint(.blue, of: Grown.self, as: Defaulted.self) == .red)
        #expect(try paint([.green, .blue], of: LaterSeveral.self, as: Several.self) == [.red])
        #expect(try paint([.green], of: LaterSeveral.self, as: Several.self) == [.green])
    }

    @Test func unknownValuesOfOptionalPropertiesBecomeNil() throws {
        #expect(try paint(.green, of: Later.self, as: OptionalPaint.self) == .green)
        #expect(try paint(.blue, of: Later.self, as: OptionalPaint.self) == nil)
        #expect(try paint(["door": .blue], of: LaterNamed.self, as: Named.self) == nil)
        #expect(try paint(["door": .red], of: LaterNamed.self, as: Named.self) == ["door": .red])
        #expect(try paint(.matt, of: LaterFinished.self, as: Finished.self) == .matt)
        #expect(try paint(.glossy, of: LaterFinished.self, as: Finished.self) == nil)
        #expect(try paint(Animal("Tom"), of: LaterWithAnimal.self, as: WithAnimal.self)?.name == "Tom")
        // Nothing in this build names the subclass.
        #expect(try paint(Dog("Rex"), of: LaterWithAnimal.self, as: WithAnimal.self) == nil)
    }

    @Test func unknownValuesWithoutADefaultNameTheirProperty() throws {
        let unknown = PersistenceError.typeMismatch(path: "Car.paint", expected: "Color", found: "\"blue\"")
        #expect(throws: unknown) { try paint(.blue, of: Later.self, as: Required.self) }
        #expect(throws: unknown) { try paint(.blue, of: Grown.self, as: Required.self) }
        #expect(throws: unknown) { try paint(.blue, of: Grown.self, as: Required.self, readsNewerData: false) }
        #expect(throws: unknown) { try paint(.blue, of: Grown.self, as: Defaulted.self, readsNewerData: false) }
        #expect(throws: PersistenceError.typeMismatch(path: "[String]", expected: "Color", found: "another value")) {
            try Written([LaterColor.blue]).read(as: [Color].self, readsNewerData: true)
        }
    }

    @Test func removedValuesOfOlderDataAreErrors() throws {
        // The older data is whole; the default value would replace what the user chose.
        let unknown = PersistenceError.typeMismatch(path: "Car.paint", expected: "Color", found: "\"blue\"")
        #expect(throws: unknown) { try paint(.blue, of: Grown.self, as: Second.self) }
    }

    private enum Second: CarBuild {
        typealias Paint = Color
        static var version: SchemaVersion { "2" }
        static func describePaint(in record: inout RecordBuilder) { record.property("paint", default: Color.red) }
    }

    @Test func readingLeavesNewerDataAsItIs() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("a.sqlite")
        func open() throws -> ObjectStore {
            let coder = PersistentCoder(registry: TypeRegistry(), readsNewerData: true)
            return try ObjectStore(at: path, configuration: .init(coder: coder))
        }
        try await open().put(Car<Later>("B-1", .blue), for: "k")
        let older = try open()
        #expect(try older.object(Car<Defaulted>.self, for: "k")?.paint == .red)
        for try await event in older.migrate(Car<Defaulted>.self) {
            if case .failed = event { Issue.record("\(event)") }
        }
        // A write that the read or the migration began is in the file after this one.
        try await older.put(1, for: "other")
        #expect(try open().object(Car<Later>.self, for: "k")?.paint == .blue)
    }
}
