import Foundation
import VitrineModels

// Types that conform by hand, as @Persistable would have it.

package enum Color: String, PersistentValue { case red, green }

package struct Empty: PersistentRecord {
    package static let persistentName = "Empty"
    package static func describe(in record: inout RecordBuilder) { record.header(version: "1") }
    package func persistProperties(to writer: inout BinaryWriter) { writer.write(case: 0) }
    package init(restoring reader: inout BinaryReader) throws(PersistenceError) { _ = try reader.readCase() }
    package init() {}
}

package struct Place: PersistentRecord {
    package var name: String
    package var latitude = 0.0

    package init(_ name: String, latitude: Double = 0) { (self.name, self.latitude) = (name, latitude) }

    package static let persistentName = "Place"
    package static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        record.property("name", String.self)
        record.property("latitude", default: 0.0)
    }
    package func persistProperties(to writer: inout BinaryWriter) {
        writer.write(name)
        writer.write(latitude)
    }
    package init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        name = try reader.read()
        latitude = try reader.read()
    }
}

package indirect enum Term: PersistentRecord {
    case number(Int)
    case sum(Term, Term)
    case named(String, of: Term?)
    case nothing

    package static let persistentName = "Expression"
    package static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        record.case("number", [("_0", Int.self)])
        record.case("sum", [("_0", Term.self), ("_1", Term.self)])
        record.case("named", [("_0", String.self), ("of", Term?.self)])
        record.case("nothing")
    }
    package func persistProperties(to writer: inout BinaryWriter) {
        switch self {
        case .number(let value):
            writer.write(case: 0)
            writer.write(value)
        case .sum(let first, let second):
            writer.write(case: 1)
            writer.write(first)
            writer.write(second)
        case .named(let name, let expression):
            writer.write(case: 2)
            writer.write(name)
            writer.write(expression)
        case .nothing: writer.write(case: 3)
        }
    }
    package init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        switch try reader.readCase() {
        case 0: self = .number(try reader.read())
        case 1:
            let first = try reader.read(Term.self)
            self = .sum(first, try reader.read())
        case 2:
            let name = try reader.read(String.self)
            self = .named(name, of: try reader.read())
        case 3: self = .nothing
        case let number: throw .malformed("Term has no case \(number)")
        }
    }
}

/// A class with an extension property, a subclass, and references of all kinds.
package class Animal: PersistentObject {
    package var name: String
    package var friend: Animal?
    package weak var keeper: Animal?
    package var persistentExtensions = ExtensionStorage()

    package init(_ name: String) { self.name = name }

    package class var persistentName: String { "Animal" }
    package class func describe(in record: inout RecordBuilder) {
        record.header(version: "1", isExtensible: true)
        record.property("name", String.self)
        record.property("friend", Animal?.self, late: true)
        record.property("keeper", Animal?.self, late: true)
    }
    package func persistProperties(to writer: inout BinaryWriter) {
        writer.write(name)
        writer.write(friend)
        writer.write(keeper)
        writer.write(persistentExtensions)
    }
    package required init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        name = try reader.read()
        reader.register(self)
        try restoreLate(from: &reader)
    }
    package func restoreLate(from reader: inout BinaryReader) throws(PersistenceError) {
        friend = try reader.read()
        keeper = try reader.read()
        persistentExtensions = try reader.read()
    }
    package func persistentEquals(_ other: AnyObject) -> Bool {
        guard let other = other as? Animal else { return false }
        return name == other.name && friend == other.friend && persistentExtensions == other.persistentExtensions
    }
    package func persistentHash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(friend)
        hasher.combine(persistentExtensions)
    }
}

package class Dog: Animal {
    package var barks = 3

    package override class var persistentName: String { "Dog" }
    package override class func describe(in record: inout RecordBuilder) {
        record.header(version: "1", superclass: Animal.self)
        record.property("barks", late: true, default: 3)
    }
    package override func persistProperties(to writer: inout BinaryWriter) {
        super.persistProperties(to: &writer)
        writer.write(barks)
    }
    package override func restoreLate(from reader: inout BinaryReader) throws(PersistenceError) {
        try super.restoreLate(from: &reader)
        barks = try reader.read()
    }
    package override func persistentEquals(_ other: AnyObject) -> Bool {
        super.persistentEquals(other) && barks == (other as? Dog)?.barks
    }
    package override func persistentHash(into hasher: inout Hasher) {
        super.persistentHash(into: &hasher)
        hasher.combine(barks)
    }
}

extension Animal {
    package var chip: String? {
        get { persistentExtensions[ExtensionKey("chip", category: "Vet", default: nil)] }
        set { persistentExtensions[ExtensionKey("chip", category: "Vet", default: nil)] = newValue }
    }
    package var home: Place? {
        get { persistentExtensions[ExtensionKey("home", default: nil)] }
        set { persistentExtensions[ExtensionKey("home", default: nil)] = newValue }
    }
}

/// An object that cannot be made without another one.
package final class Bound: PersistentObject {
    package var other: Bound?
    package let needed: [Bound]

    package init(needed: [Bound]) { self.needed = needed }

    package static let persistentName = "Bound"
    package static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        record.property("needed", [Bound].self)
        record.property("other", Bound?.self, late: true)
    }
    package func persistProperties(to writer: inout BinaryWriter) {
        writer.write(needed)
        writer.write(other)
    }
    package init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        needed = try reader.read()
        reader.register(self)
        other = try reader.read()
    }
    package func persistentEquals(_ other: AnyObject) -> Bool { needed == (other as? Bound)?.needed }
    package func persistentHash(into hasher: inout Hasher) { hasher.combine(needed) }
}

/// One of everything.
package struct Everything: PersistentRecord {
    package var flag = true
    package var numbers: [Int] = [0, 1, -1, .max, .min]
    package var small: Int8 = -128
    package var large = UInt64.max
    package var single: Float = 1.5
    package var double = -0.0
    package var text = "Zürich 🏔"
    package var data = Data([0, 255])
    package var date = Date(timeIntervalSince1970: 1_000_000_000.125)
    package var identifier = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
    package var url = URL(string: "b?c#d", relativeTo: URL(string: "https://a.example/x/"))
    package var price = Decimal(string: "-12.50") ?? 0
    package var maybe: [Int?] = [nil, 3]
    package var set: Set<UInt8> = [7]
    package var places = ["home": Place("x", latitude: 47.5)]
    package var expression = Term.sum(.number(1), .named("n", of: .nothing))
    package var color: Color? = .green
    package var empty = [Empty(), Empty()]
    package var animal: Animal?

    package init() {}

    package static let persistentName = "Everything"
    package static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        record.property("flag", Bool.self)
        record.property("numbers", [Int].self)
        record.property("small", Int8.self)
        record.property("large", UInt64.self)
        record.property("single", Float.self)
        record.property("double", Double.self)
        record.property("text", String.self)
        record.property("data", Data.self)
        record.property("date", Date.self)
        record.property("identifier", UUID.self)
        record.property("url", URL?.self)
        record.property("price", Decimal.self)
        record.property("maybe", [Int?].self)
        record.property("set", Set<UInt8>.self)
        record.property("places", [String: Place].self)
        record.property("expression", Term.self)
        record.property("color", Color?.self)
        record.property("empty", [Empty].self)
        record.property("animal", Animal?.self)
    }
    package func persistProperties(to writer: inout BinaryWriter) {
        writer.write(flag)
        writer.write(numbers)
        writer.write(small)
        writer.write(large)
        writer.write(single)
        writer.write(double)
        writer.write(text)
        writer.write(data)
        writer.write(date)
        writer.write(identifier)
        writer.write(url)
        writer.write(price)
        writer.write(maybe)
        writer.write(set)
        writer.write(places)
        writer.write(expression)
        writer.write(color)
        writer.write(empty)
        writer.write(animal)
    }
    package init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        flag = try reader.read()
        numbers = try reader.read()
        small = try reader.read()
        large = try reader.read()
        single = try reader.read()
        double = try reader.read()
        text = try reader.read()
        data = try reader.read()
        date = try reader.read()
        identifier = try reader.read()
        url = try reader.read()
        price = try reader.read()
        maybe = try reader.read()
        set = try reader.read()
        places = try reader.read()
        expression = try reader.read()
        color = try reader.read()
        empty = try reader.read()
        animal = try reader.read()
    }
}
