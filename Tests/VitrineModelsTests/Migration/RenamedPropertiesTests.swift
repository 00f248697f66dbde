import ModelsSamples
import Testing
import VitrineModels

/// One build of a program with a type `Person`, whose first version has the property `name`.
private protocol PersonBuild: DatedBuild {}
extension PersonBuild {
    static var name: String { "Person" }
    static var version: SchemaVersion { "3.0" }
}

private enum First: PersonBuild {
    static var version: SchemaVersion { "1.0" }
    static var properties: [DatedProperty] { [DatedProperty(name: "name")] }
}

private enum Second: PersonBuild {
    static var version: SchemaVersion { "2.0" }
    static var properties: [DatedProperty] { [DatedProperty(name: "fullName", aliases: ["name"])] }
}

private enum Converting: PersonBuild {
    static var properties: [DatedProperty] { Second.properties }
    static var steps: [MigrationStep] {
        [MigrationStep(to: "3.0") { try $0.convert("fullName") { (number: Int) in number * 10 } }]
    }
}

/// The step to 2.0 knows the first name, and that to 3.0 one between the first and the last.
private enum RenamedTwice: PersonBuild {
    static var version: SchemaVersion { "4.0" }
    static var properties: [DatedProperty] { [DatedProperty(name: "title", aliases: ["fullName", "name"])] }
    static var steps: [MigrationStep] {
        [
            MigrationStep(to: "2.0") { try $0.convert("name") { (number: Int) in number + 1 } },
            MigrationStep(to: "3.0") { try $0.convert("fullName") { (number: Int) in number * 10 } },
        ]
    }
}

private enum RenamedByStep: PersonBuild {
    static var properties: [DatedProperty] { Second.properties }
    static var steps: [MigrationStep] { [MigrationStep(to: "2.0") { $0.rename("name", to: "fullName") }] }
}

private enum Reused: PersonBuild {
    static var properties: [DatedProperty] {
        [DatedProperty(name: "fullName", aliases: ["name"]), DatedProperty(name: "name", defaultValue: -1)]
    }
}

private enum ReusedWithStep: PersonBuild {
    static var properties: [DatedProperty] { Reused.properties }
    static var steps: [MigrationStep] { [MigrationStep(to: "3.0") { _ in }] }
}

private enum TwoNames: PersonBuild {
    static var version: SchemaVersion { "1.0" }
    static var properties: [DatedProperty] { [DatedProperty(name: "a"), DatedProperty(name: "b")] }
}

private enum Shifted: PersonBuild {
    static var properties: [DatedProperty] {
        [DatedProperty(name: "b", aliases: ["a"]), DatedProperty(name: "c", aliases: ["b"])]
    }
}

private enum ShiftedWithStep: PersonBuild {
    static var properties: [DatedProperty] { Shifted.properties }
    static var steps: [MigrationStep] { [MigrationStep(to: "3.0") { _ in }] }
}

private enum Swapped: PersonBuild {
    static var properties: [DatedProperty] {
        [DatedProperty(name: "a", aliases: ["b"]), DatedProperty(name: "b", aliases: ["a"])]
    }
}

private enum Turned: PersonBuild {
    static var properties: [DatedProperty] {
        [
            DatedProperty(name: "a", aliases: ["b"]), DatedProperty(name: "b", aliases: ["c"]),
            DatedProperty(name: "c", aliases: ["a"]),
        ]
    }
}

private enum Doubled: PersonBuild {
    static var properties: [DatedProperty] {
        [DatedProperty(name: "x", aliases: ["a"]), DatedProperty(name: "y", aliases: ["a"])]
    }
}

@Suite struct RenamedPropertiesTests {
    private func values<Old: PersonBuild, New: PersonBuild>(
        of values: [Int], _ old: Old.Type, as new: New.Type
    ) throws -> [Int] {
        try Written(Dated<Old>(values)).read(as: Dated<New>.self).values
    }

    @Test func stepsFindPropertiesByTheNameOfTheirVersion() throws {
        #expect(try values(of: [7], First.self, as: Converting.self) == [70])
        #expect(try values(of: [7], Second.self, as: Converting.self) == [70])
        #expect(try values(of: [7], First.self, as: RenamedTwice.self) == [80])
        #expect(try values(of: [7], Second.self, as: RenamedTwice.self) == [70])
    }

    @Test func stepsThatRenameAsAliasesDoKeepTheValue() throws {
        #expect(try values(of: [7], First.self, as: RenamedByStep.self) == [7])
        #expect(try values(of: [7], Second.self, as: RenamedByStep.self) == [7])
    }

    @Test func namesThatAreUsedAgainFillOneProperty() throws {
        #expect(try values(of: [7], First.self, as: Reused.self) == [7, -1])
        #expect(try values(of: [7], Second.self, as: Reused.self) == [7, -1])
        #expect(try values(of: [7, 8], Reused.self, as: ReusedWithStep.self) == [7, 8])
        #expect(try values(of: [7], First.self, as: ReusedWithStep.self) == [7, -1])
        #expect(try values(of: [7], Second.self, as: ReusedWithStep.self) == [7, -1])
    }

    @Test func namesThatMoveOnTakeTheirValuesWithThem() throws {
        #expect(try values(of: [1, 2], TwoNames.self, as: Shifted.self) == [1, 2])
        #expect(try values(of: [1, 2], TwoNames.self, as: ShiftedWithStep.self) == [1, 2])
        #expect(try values(of: [1, 2], Shifted.self, as: ShiftedWithStep.self) == [1, 2])
    }

    @Test func namesThatDoNotTellWhereAValueBelongsAreRefused() {
        func reason<Build: PersonBuild>(_ build: Build.Type) -> PersistenceError? {
            #expect(throws: PersistenceError.self) { try TypeRegistry().register(Dated<Build>.self) }
        }
        #expect(
            reason(Swapped.self) == .ambiguousNames(type: "Person", reason: "the later names of a lead back to a"))
        #expect(reason(Turned.self) == .ambiguousNames(type: "Person", reason: "the later names of a lead back to a"))
        #expect(reason(Doubled.self) == .ambiguousNames(type: "Person", reason: "x and y were both named a"))
        #expect(reason(Swapped.self)?.description == """
            The earlier names in Person are ambiguous: the later names of a lead back to a. \
            Rename the properties in a migration step.
            """)
    }
}
