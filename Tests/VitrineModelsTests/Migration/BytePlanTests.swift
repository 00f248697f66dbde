import ModelsSamples
import TestSupport
import Testing
import VitrineModels

/// A struct around others, in two builds: the older without what the later adds.
private struct Line<Build: Release>: PersistentRecord {
    var text: String
    var count = 1
    var note: String?

    init(_ text: String) { self.text = text }

    static var persistentName: String { "Line" }
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        if Build.isLater { record.property("note", String?.self) }
        record.property("text", String.self)
        if Build.isLater { record.property("count", default: 1) }
    }
    func persistProperties(to writer: inout BinaryWriter) {
        if Build.isLater { writer.write(note) }
        writer.write(text)
        if Build.isLater { writer.write(count) }
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        if Build.isLater { note = try reader.read() }
        text = try reader.read()
        if Build.isLater { count = try reader.read() }
    }
}

private struct Order<Build: Release>: PersistentRecord {
    var first: Line<Build>
    var lines: [Line<Build>]
    var kinds = [Term.number(1)]
    var tags = ["a": Place("p")]
    var state = 4

    init(_ texts: [String]) {
        first = Line(texts[0])
        lines = texts.map { Line($0) }
    }

    static var persistentName: String { "Order" }
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        if Build.isLater { record.property("state", default: 4) }
        record.property("kinds", [Term].self)
        record.property("first", Line<Build>.self)
        record.property("lines", [Line<Build>].self)
        record.property("tags", [String: Place].self)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        if Build.isLater { writer.write(state) }
        writer.write(kinds)
        writer.write(first)
        writer.write(lines)
        writer.write(tags)
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        if Build.isLater { state = try reader.read() }
        kinds = try reader.read()
        first = try reader.read()
        lines = try reader.read()
        tags = try reader.read()
    }
}

private protocol Release: Hashable { static var isLater: Bool { get } }
private enum Before: Release { static var isLater: Bool { false } }
private enum After: Release { static var isLater: Bool { true } }

@Suite struct BytePlanTests {
    @Test func additionsAreMadeOnBytesAlsoInside() throws {
        let written = try Written(Order<Before>(["x", "yy"]))
        let registry = TypeRegistry()
        let coder = try written.coder(registry)
        let old = try #require(written.schemas.first)
        #expect(try registry.bytePlan(from: old, to: registry.schema(of: Order<After>.self)) != nil)
        #expect(try coder.upgrade(written.bytes, of: Order<After>.self) == coder.encode(Order<After>(["x", "yy"])))
        #expect(try coder.decode(Order<After>.self, from: written.bytes) == Order<After>(["x", "yy"]))
    }

    @Test func objectsAndRemovalsTakeTheTree() throws {
        let registry = TypeRegistry()
        let dog = try registry.schema(of: Dog.self), everything = try registry.schema(of: Everything.self)
        #expect(registry.bytePlan(from: dog, to: dog) == nil)
        #expect(registry.bytePlan(from: everything, to: everything) == nil)
        let later = try TypeRegistry().schema(of: Order<After>.self)
        let older = try TypeRegistry().schema(of: Order<Before>.self)
        #expect(registry.bytePlan(from: later, to: older) == nil)
    }

    @Test func damagedBytesEndInErrors() throws {
        let written = try Written(Order<Before>(["x", "yy"]))
        let registry = TypeRegistry()
        let coder = try written.coder(registry)
        let old = try #require(written.schemas.first)
        var random = SeededGenerator(4)
        for _ in 0..<5000 {
            var body = Array(written.bytes.dropFirst(10).dropLast(4))
            body[Int.random(in: 0..<body.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            if Bool.random(using: &random) { body.removeLast(Int.random(in: 0..<body.count, using: &random)) }
            _ = body.withUnsafeBytes {
                try? coder.decode(Order<After>.self, fingerprint: old.fingerprint, body: $0)
            }
        }
    }
}
