import Foundation
import Testing
import VitrineModels

@Suite struct MigrationDataTests {
    private let data = MigrationData(typeName: "Foo")

    init() {
        data.set("title", to: "x")
        data.set("count", to: 3)
        data.set("none", to: String?.none)
    }

    @Test func valuesAreTyped() throws {
        #expect(try data.value("count") == 3)
        #expect(try data.value("count", as: Double.self) == 3)
        #expect(try data.value("missing", as: Int.self) == nil)
        #expect(try data.value("none", as: String.self) == nil)
        #expect(throws: PersistenceError.typeMismatch(path: "Foo.title", expected: "Int", found: "String")) {
            try data.value("title", as: Int.self)
        }
        #expect(throws: PersistenceError.self) { try data.value("count", as: Date.self) }
    }

    @Test func renamingReplacesAndIgnoresMissingNames() {
        data.rename("title", to: "count")
        #expect(data.names == ["count", "none"])
        #expect(data.tree("count") == .string("x"))
        data.rename("missing", to: "count")
        #expect(data.tree("count") == .string("x"))
        data.rename("count", to: "count")
        #expect(data.tree("count") == .string("x"))
    }

    @Test func removedValuesCanBeSetAgain() throws {
        data["heading"] = data.remove("title")
        #expect(try data.value("heading") == "x")
        #expect(data.names == ["count", "none", "heading"])
        #expect(data["title"] == nil)
        data["heading"] = data.remove("missing")
        #expect(data.names == ["count", "none"])
    }

    @Test func convertingKeepsNilAndFailsOnOtherTypes() throws {
        try data.convert("count", to: "number") { (count: Int) in "\(count)" }
        #expect(data.tree("number") == .string("3"))
        try data.convert("none", to: "nothing") { (text: String) in text.count }
        #expect(data.tree("nothing") == .null)
        #expect(throws: PersistenceError.self) { try data.convert("title") { (number: Int) in number } }
        #expect(data.tree("title") == .string("x"))
    }

    @Test func nestedDataIsReached() throws {
        let inner = MigrationData(typeName: "Bar")
        inner.set("n", to: 1)
        data.set("bar", to: inner)
        data.set("bars", to: [inner, inner])
        #expect(try data.value("bar", as: MigrationData.self) === inner)
        #expect(try data.value("bars", as: [MigrationData].self)?.count == 2)
        #expect(try data.value("bars", as: [MigrationData].self)?.first === inner)
        #expect(try data.value("missing", as: MigrationData.self) == nil)
        #expect(throws: PersistenceError.self) { try data.value("title", as: MigrationData.self) }
        #expect(throws: PersistenceError.self) { try data.value("title", as: [MigrationData].self) }
        #expect(data.remove("bar")?.tree == .record(inner))
    }

    @Test func optionalsOfOptionalsKeepTheirLevel() throws {
        for value in [nil, .some(nil), 5] as [Int??] {
            data.set("number", to: Int???.some(value))
            #expect(try data.value("number", as: Int??.self) ?? nil == value)
        }
    }

    @Test func collectionsConvert() throws {
        data.set("list", to: [1, 2])
        data.set("table", to: ["a": 1])
        #expect(try data.value("list", as: [Int].self) == [1, 2])
        #expect(try data.value("table", as: [String: Int].self) == ["a": 1])
        #expect(throws: PersistenceError.self) { try data.value("list", as: [String].self) }
    }
}
