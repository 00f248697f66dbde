import Foundation
import VitrineModels

// Types that conform by hand, as @Persistable would have it.

enum Color: String, PersistentValue { case red, green }

struct Empty: PersistentRecord {
    static let persistentName = "Empty"
    static func describe(in record: inout RecordBuilder) { record.header(version: "1", kind: .structure) }
    func persistProperties(to writer: inout BinaryWriter) { writer.write(byte: 0) }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) { _ = try reader.readByte() }
    init() {}
}

struct Place: PersistentRecord {
    var name: String
    var latitude = 0.0

    init(_ name: String, latitude: Double = 0) { (self.name, self.latitude) = (name, latitude) }

    static let persistentName = "Place"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1", kind: .structure)
        record.property("name", String.self)
        record.property("latitude", default: 0.0)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        name.persist(to: &writer)
        latitude.persist(to: &writer)
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        name = try reader.read()
        latitude = try reader.read()
    }
}

indirect enum Expression: PersistentRecord {
    case number(Int)
    case sum(Expression, Expression)
    case named(String, of: Expression?)
    case nothing

    static let persistentName = "Expression"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1", kind: .enumeration)
        record.case("number", [("_0", Int.self)])
        record.case("sum", [("_0", Expression.self), ("_1", Expression.self)])
        record.case("named", [("_0", String.self), ("of", Expression?.self)])
        record.case("nothing")
    }
    func persistProperties(to writer: inout BinaryWriter) {
        switch self {
        case .number(let value):
            writer.write(unsigned: 0)
            value.persist(to: &writer)
        case .sum(let first, let second):
            writer.write(unsigned: 1)
            first.persist(to: &writer)
            second.persist(to: &writer)
        case .named(let name, let expression):
            writer.write(unsigned: 2)
            name.persist(to: &writer)
            expression.persist(to: &writer)
        case .nothing: writer.write(unsigned: 3)
        }
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        switch try reader.readUnsigned() {
        case 0: self = .number(try reader.read())
        case 1:
            let first = try reader.read(Expression.self)
            self = .sum(first, try reader.read())
        case 2:
            let name = try reader.read(String.self)
            self = .named(name, of: try reader.read())
        case 3: self = .nothing
        case let number: throw .malformed("Expression has no case \(number)")
        }
    }
}

/// A class with an extension property, a subclass, and references of all kinds.
class Animal: PersistentObject {
    var name: String
    var friend: Animal?
    weak var keeper: Animal?
    var persistentExtensions = ExtensionStorage()

    init(_ name: String) { self.name = name }

    class var persistentName: String { "Animal" }
    class func describe(in record: inout RecordBuilder) {
        record.header(version: "1", kind: .object, isExtensible: true)
        record.property("name", String.self)
        record.property("friend", Animal?.self, late: true)
        record.property("keeper", Animal?.self, late: true)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        name.persist(to: &writer)
        friend.persist(to: &writer)
        keeper.persist(to: &writer)
        persistentExtensions.persist(to: &writer)
    }
    required init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        name = try reader.read()
        reader.register(self)
        try restoreLate(from: &reader)
    }
    func restoreLate(from reader: inout BinaryReader) throws(PersistenceError) {
        friend = try reader.read()
        keeper = try reader.read()
        persistentExtensions = try ExtensionStorage(from: &reader)
    }
    func persistentEquals(_ other: AnyObject) -> Bool {
        guard let other = other as? Animal else { return false }
        return name == other.name && friend == other.friend && persistentExtensions == other.persistentExtensions
    }
    func persistentHash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(friend)
        hasher.combine(persistentExtensions)
    }
}

class Dog: Animal {
    var barks = 3

    override class var persistentName: String { "Dog" }
    override class func describe(in record: inout RecordBuilder) {
        record.header(version: "1", kind: .object, superclass: Animal.self)
        record.property("barks", late: true, default: 3)
    }
    override func persistProperties(to writer: inout BinaryWriter) {
        super.persistProperties(to: &writer)
        barks.persist(to: &writer)
    }
    override func restoreLate(from reader: inout BinaryReader) throws(PersistenceError) {
        try super.restoreLate(from: &reader)
        barks = try reader.read()
    }
    override func persistentEquals(_ other: AnyObject) -> Bool {
        super.persistentEquals(other) && barks == (other as? Dog)?.barks
    }
    override func persistentHash(into hasher: inout Hasher) {
        super.persistentHash(into: &hasher)
        hasher.combine(barks)
    }
}

extension Animal {
    var chip: String? {
        get { persistentExtensions[ExtensionKey("chip", category: "Vet", default: nil)] }
        set { persistentExtensions[ExtensionKey("chip", category: "Vet", default: nil)] = newValue }
    }
    var home: Place? {
        get { persistentExtensions[ExtensionKey("home", default: nil)] }
        set { persistentExtensions[ExtensionKey("home", default: nil)] = newValue }
    }
}

/// An object that cannot be made without another one.
final class Bound: PersistentObject {
    var other: Bound?
    let needed: [Bound]

    init(needed: [Bound]) { self.needed = needed }

    static let persistentName = "Bound"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1", kind: .object)
        record.property("needed", [Bound].self)
        record.property("other", Bound?.self, late: true)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        needed.persist(to: &writer)
        other.persist(to: &writer)
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        needed = try reader.read()
        reader.register(self)
        other = try reader.read()
    }
    func persistentEquals(_ other: AnyObject) -> Bool { needed == (other as? Bound)?.needed }
    func persistentHash(into hasher: inout Hasher) { hasher.combine(needed) }
}

/// One of everything.
struct Everything: PersistentRecord {
    var flag = true
    var numbers: [Int] = [0, 1, -1, .max, .min]
    var small: Int8 = -128
    var large = UInt64.max
    var single: Float = 1.5
    var double = -0.0
    var text = "Zürich 🏔"
    var data = Data([0, 255])
    var date = Date(timeIntervalSince1970: 1_000_000_000.125)
    var identifier = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
    var url = URL(string: "b?c#d", relativeTo: URL(string: "https://a.example/x/"))
    var price = Decimal(string: "-12.50") ?? 0
    var maybe: [Int?] = [nil, 3]
    var set: Set<UInt8> = [7]
    var places = ["home": Place("x", latitude: 47.5)]
    var expression = Expression.sum(.number(1), .named("n", of: .nothing))
    var color: Color? = .green
    var empty = [Empty(), Empty()]
    var animal: Animal?

    init() {}

    static let persistentName = "Everything"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1", kind: .structure)
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
        record.property("expression", Expression.self)
        record.property("color", Color?.self)
        record.property("empty", [Empty].self)
        record.property("animal", Animal?.self)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        flag.persist(to: &writer)
        numbers.persist(to: &writer)
        small.persist(to: &writer)
        large.persist(to: &writer)
        single.persist(to: &writer)
        double.persist(to: &writer)
        text.persist(to: &writer)
        data.persist(to: &writer)
        date.persist(to: &writer)
        identifier.persist(to: &writer)
        url.persist(to: &writer)
        price.persist(to: &writer)
        maybe.persist(to: &writer)
        set.persist(to: &writer)
        places.persist(to: &writer)
        expression.persist(to: &writer)
        color.persist(to: &writer)
        empty.persist(to: &writer)
        animal.persist(to: &writer)
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
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
