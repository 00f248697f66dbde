import Foundation
import ModelsSamples
import Testing
import VitrineModels

@Suite struct SchemaTests {
    @Test func schemaComesBackFromItsBytes() throws {
        let schema = try TypeRegistry().schema(of: Everything.self)
        let again = try Schema(encoded: schema.encoded)
        #expect(again.fingerprint == schema.fingerprint)
        #expect(again.records.keys.sorted() == ["Empty", "Everything", "Expression", "Place"])
        #expect(again.rootRecord?.properties.map(\.name) == schema.rootRecord?.properties.map(\.name))
        #expect(again.rootRecord?.properties.map(\.type) == schema.rootRecord?.properties.map(\.type))
    }

    @Test func fingerprintsNeverChange() throws {
        // They stand in stored values and name stored records.
        let registry = TypeRegistry()
        let schemas = [
            try registry.schema(of: Place.self), try registry.schema(of: Dog.self),
            try registry.schema(of: [String: Int].self),
        ]
        #expect(
            schemas.map { Schema.name(of: $0.fingerprint) }
                == ["38f333ca67d876cb", "01183f5dd879c913", "a814b9bd2ae34807"])
    }

    @Test func twoTypesOfOneNameAreRefused() throws {
        struct Other: DatedBuild {
            static var name: String { "Place" }
            static var version: SchemaVersion { "1" }
            static var properties: [DatedProperty] { [DatedProperty(name: "x")] }
        }
        let registry = TypeRegistry()
        try registry.register(Place.self)
        #expect(throws: PersistenceError.duplicateName("Place")) { try registry.register(Dated<Other>.self) }
    }

    @Test func versionsCompareByNumbers() {
        #expect(SchemaVersion("1.9") < "1.10")
        #expect(SchemaVersion("1.0") == "1")
        #expect(SchemaVersion("1") < "1.0.1")
        #expect(Set([SchemaVersion("2.0"), "2", "2.0.0", "2.1"]).count == 2)
    }

    @Test func versionsPrintAsTheyWereGiven() throws {
        for text in ["2.0", "2", "1.2-beta.4", "007", ".."] { #expect(SchemaVersion(text).description == text) }
        // The text is no part of a schema: equal versions have the same fingerprint.
        struct One: DatedBuild {
            static var name: String { "Versioned" }
            static var version: SchemaVersion { "1" }
            static var properties: [DatedProperty] { [DatedProperty(name: "x")] }
        }
        struct OneZero: DatedBuild {
            static var name: String { "Versioned" }
            static var version: SchemaVersion { "1.0" }
            static var properties: [DatedProperty] { One.properties }
        }
        let (one, other) = (try TypeRegistry().schema(of: Dated<One>.self), try TypeRegistry().schema(of: Dated<OneZero>.self))
        #expect(one.fingerprint == other.fingerprint)
        #expect("\(other.version)" == "1.0")
    }

    @Test(arguments: [
        (ValueType.int64, ValueType.int8, true), (.int32, .uint16, true), (.uint32, .int8, false),
        (.int8, .int64, false),
        (.optional(.string), .string, true), (.string, .optional(.string), false), (.double, .int32, true),
        (.double, .int64, false), (.array(.int64), .set(.int32), true), (.double, .float, true),
    ])
    func typesHoldValuesWithoutLoss(type: ValueType, other: ValueType, expected: Bool) {
        #expect(type.holds(other) == expected)
    }

    @Test func genericTypesNameTheirArguments() {
        #expect([String: Place?].persistentTypeName == "[String: Place?]")
    }
}
