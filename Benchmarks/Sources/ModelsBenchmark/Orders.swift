import Foundation
import VitrineModels

// Records as a shop has them: about forty leaves each, nested, with texts, dates, identifiers and a dictionary. They
// conform by hand as @Persistable would have it, so that swift-syntax is not built for them.

struct Address: Codable, PersistentRecord {
    var street: String, city: String, code: String, country: String

    static let persistentName = "Address"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        for name in ["street", "city", "code", "country"] { record.property(name, String.self) }
    }
    func persistProperties(to writer: inout BinaryWriter) {
        writer.write(street)
        writer.write(city)
        writer.write(code)
        writer.write(country)
    }
}

// In an extension, so that the memberwise initializer stays.
extension Address {
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        street = try reader.read()
        city = try reader.read()
        code = try reader.read()
        country = try reader.read()
    }
}

struct Customer: Codable, PersistentRecord {
    var id: UUID, name: String, email: String, address: Address, since: Date

    static let persistentName = "Customer"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        record.property("id", UUID.self)
        record.property("name", String.self)
        record.property("email", String.self)
        record.property("address", Address.self)
        record.property("since", Date.self)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        writer.write(id)
        writer.write(name)
        writer.write(email)
        writer.write(address)
        writer.write(since)
    }
}

extension Customer {
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        id = try reader.read()
        name = try reader.read()
        email = try reader.read()
        address = try reader.read()
        since = try reader.read()
    }
}

struct Line: Codable, PersistentRecord {
    var article: String, title: String, quantity: Int, price: Double

    static let persistentName = "Line"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        record.property("article", String.self)
        record.property("title", String.self)
        record.property("quantity", Int.self)
        record.property("price", Double.self)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        writer.write(article)
        writer.write(title)
        writer.write(quantity)
        writer.write(price)
    }
}

extension Line {
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        article = try reader.read()
        title = try reader.read()
        quantity = try reader.read()
        price = try reader.read()
    }
}

/// One release of the program: what its orders look like.
protocol Release: Hashable {
    static var version: SchemaVersion { get }
    /// What the order's number is stored under.
    static var numberName: String { get }
    static var isGrown: Bool { get }
    static var steps: [MigrationStep] { get }
}

/// An order, the same in all releases but for what the release says.
struct Order<In: Release>: Codable, PersistentRecord {
    var id: UUID, number: Int, created: Date, shipped: Date?, customer: Customer, lines: [Line]
    var note: String?, marks: [String: String], isPaid: Bool, priority = 3

    static var persistentName: String { "Order" }
    static func describe(in record: inout RecordBuilder) {
        record.header(version: In.version, steps: In.steps)
        record.property("id", UUID.self)
        record.property(In.numberName, Int.self)
        record.property("created", Date.self)
        record.property("shipped", Date?.self)
        record.property("customer", Customer.self)
        record.property("lines", [Line].self)
        record.property("note", String?.self)
        record.property("marks", [String: String].self)
        record.property("isPaid", Bool.self)
        if In.isGrown { record.property("priority", default: 3) }
    }
    func persistProperties(to writer: inout BinaryWriter) {
        writer.write(id)
        writer.write(number)
        writer.write(created)
        writer.write(shipped)
        writer.write(customer)
        writer.write(lines)
        writer.write(note)
        writer.write(marks)
        writer.write(isPaid)
        if In.isGrown { writer.write(priority) }
    }
}

extension Order {
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        id = try reader.read()
        number = try reader.read()
        created = try reader.read()
        shipped = try reader.read()
        customer = try reader.read()
        lines = try reader.read()
        note = try reader.read()
        marks = try reader.read()
        isPaid = try reader.read()
        if In.isGrown { priority = try reader.read() }
    }
}

enum First: Release {
    static var version: SchemaVersion { "1" }
    static var numberName: String { "number" }
    static var isGrown: Bool { false }
    static var steps: [MigrationStep] { [] }
}

/// One property more.
enum Grown: Release {
    static var version: SchemaVersion { "1.1" }
    static var numberName: String { "number" }
    static var isGrown: Bool { true }
    static var steps: [MigrationStep] { [] }
}

/// The same, and two steps.
enum Stepped: Release {
    static var version: SchemaVersion { "3" }
    static var numberName: String { "serial" }
    static var isGrown: Bool { true }
    static var steps: [MigrationStep] {
        [
            MigrationStep(to: "2") { $0.rename("number", to: "serial") },
            MigrationStep(to: "3") { try $0.convert("created") { (date: Date) in date.addingTimeInterval(3600) } },
        ]
    }
}

extension Order {
    /// So many orders, the same in every run.
    static func samples(_ count: Int) -> [Order] {
        (0..<count).map { index in
            let address = Address(
                street: "Bahnhofstrasse \(index % 200)", city: "Zürich", code: "\(8000 + index % 60)", country: "CH")
            let customer = Customer(
                id: identifier(index), name: "Customer number \(index)", email: "customer\(index)@example.org",
                address: address, since: Date(timeIntervalSinceReferenceDate: Double(index) * 86_400.5))
            let lines = (0..<1 + index % 5).map { line in
                Line(
                    article: "A-\(index)-\(line)", title: "An article with some words in its title",
                    quantity: 1 + line, price: Double(index % 1000) + 0.95)
            }
            return Order(
                id: identifier(index + count), number: 100_000 + index,
                created: Date(timeIntervalSinceReferenceDate: 7e8 + Double(index)),
                shipped: index % 3 == 0 ? nil : Date(timeIntervalSinceReferenceDate: 7e8 + Double(index) * 2),
                customer: customer, lines: lines, note: index % 4 == 0 ? "Please leave it at the door." : nil,
                marks: ["channel": "web", "campaign": "c\(index % 7)"], isPaid: index % 2 == 0)
        }
    }

    private static func identifier(_ index: Int) -> UUID {
        let bytes = withUnsafeBytes(of: UInt64(index) &* 0x9E37_79B9_7F4A_7C15) { Array($0) }
        return UUID(
            uuid: (
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[3], bytes[1],
                bytes[7], bytes[0], bytes[5], bytes[2], bytes[6], bytes[4]
            ))
    }
}
