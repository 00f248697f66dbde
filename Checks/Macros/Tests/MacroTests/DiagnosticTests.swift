import MacroImplementation
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacrosGenericTestSupport
import Testing

/// The diagnostics and fix-its of the macros.
@Suite struct DiagnosticTests {
    private static let macros: [String: MacroSpec] = [
        "Persistable": MacroSpec(type: PersistableMacro.self, conformances: ["PersistentObject", "PersistentRecord"]),
        "Transient": MacroSpec(type: MarkerMacro.self),
        "Persisted": MacroSpec(type: MarkerMacro.self),
        "Migration": MacroSpec(type: MarkerMacro.self),
        "ExtensionProperty": MacroSpec(type: ExtensionPropertyMacro.self),
    ]

    /// Expands source code, and compares the diagnostics and the source with all fix-its applied.
    ///
    /// - Parameter expanded: The expected expansion; nil for code with errors.
    private func expect(
        _ source: String, _ diagnostics: [DiagnosticSpec] = [], fixed: String? = nil, expanded: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        assertMacroExpansion(
            source, expandedSource: expanded ?? "", diagnostics: diagnostics, macroSpecs: Self.macros,
            fixedSource: fixed
        ) { failure in
            if expanded == nil, failure.message.contains("did not produce the expected expanded source") { return }
            Issue.record("\(failure.message)", sourceLocation: sourceLocation)
        }
    }

    @Test func expansionOfAStruct() {
        expect(
            """
            @Persistable(version: "2") struct Place {
                @Persisted("n", renamedFrom: ["title"]) var name: String
                var latitude = 0.0
            }
            """,
            expanded: """
                struct Place {
                    var name: String
                    var latitude = 0.0

                    static var persistentName: String { "Place" }

                    static func describe(in record: inout VitrineModels.RecordBuilder) {
                        record.header(version: "2")
                        record.property("n", String.self, renamedFrom: ["title"])
                        record._property("latitude", default: 0.0)
                    }

                    func persistProperties(to writer: inout VitrineModels.BinaryWriter) {
                        writer.write(self.name)
                        writer.write(self.latitude)
                    }
                }

                extension Place: VitrineModels.PersistentRecord {
                    init(restoring reader: inout VitrineModels.BinaryReader) throws(VitrineModels.PersistenceError) {
                        self.name = try reader.read()
                        self.latitude = try reader.read()
                    }
                }
                """)
    }

    @Test func otherDeclarationsAreRefused() {
        expect(
            "@Persistable actor A {}",
            [
                DiagnosticSpec(
                    message: "@Persistable can only be attached to a struct, class or enum", line: 1, column: 1)
            ])
    }

    @Test func stepsAreStatic() {
        expect(
            """
            @Persistable(version: "2") struct A {
                @Migration(to: "2") func step(_ old: MigrationData) {}
            }
            """,
            [
                DiagnosticSpec(
                    message: "@Migration can only be attached to a static function", line: 2,
                    column: 30, fixIts: [FixItSpec(message: "make it 'static'")])
            ],
            fixed: """
                @Persistable(version: "2") struct A {
                    @Migration(to: "2") static func step(_ old: MigrationData) {}
                }
                """)
    }

    @Test func stepsLeadToTheTypesVersionAtMost() {
        expect(
            """
            @Persistable(version: "1.9") struct A {
                @Migration(to: "1.10") static func step(_ old: MigrationData) {}
            }
            """,
            [
                DiagnosticSpec(
                    message: "this step migrates to 1.10, but the type has version 1.9", line: 2, column: 20)
            ])
        expect(
            """
            @Persistable(version: "1.0") struct A {
                @Migration(to: "1") static func step(_ old: MigrationData) {}
            }
            """)
    }

    @Test func transientPropertiesHaveDefaults() {
        expect(
            """
            @Persistable struct A {
                @Transient var cache: Int
                @Transient var other: Int?
            }
            """,
            [
                DiagnosticSpec(
                    message: "@Transient 'cache' needs a default value because it is not stored", line: 2, column: 20,
                    fixIts: [FixItSpec(message: "add a default value")])
            ],
            fixed: """
                @Persistable struct A {
                    @Transient var cache: Int = <#default#>
                    @Transient var other: Int?
                }
                """)
    }

    @Test func constantsWithValuesAreNotStored() {
        expect(
            """
            @Persistable struct A {
                let kind = 3
            }
            """,
            [
                DiagnosticSpec(
                    message:
                        "'kind' always has its initial value and is not stored: make it 'var', or mark it @Transient",
                    line: 2, column: 9, severity: .warning, fixIts: [FixItSpec(message: "make 'kind' a 'var'")])
            ],
            fixed: """
                @Persistable struct A {
                    var kind = 3
                }
                """)
    }

    @Test(arguments: ["() -> Void", "any Error", "(Int, Int)"])
    func propertiesThatCannotBeStoredAreDiagnosed(type: String) {
        expect(
            """
            @Persistable struct A {
                var x: \(type)
            }
            """,
            [
                DiagnosticSpec(
                    message: "'x' cannot be stored: mark it @Transient", line: 2, column: 9,
                    fixIts: [FixItSpec(message: "mark it @Transient")])
            ],
            fixed: """
                @Persistable struct A {
                    @Transient var x: \(type)
                }
                """)
    }

    @Test func unownedReferencesCannotBeStored() {
        expect(
            """
            @Persistable class A {
                unowned var owner: A
                init(owner: A) { self.owner = owner }
            }
            """,
            [
                DiagnosticSpec(
                    message: "'owner' cannot be stored: mark it @Transient", line: 2, column: 17,
                    fixIts: [FixItSpec(message: "mark it @Transient")])
            ],
            fixed: """
                @Persistable class A {
                    @Transient unowned var owner: A
                    init(owner: A) { self.owner = owner }
                }
                """)
    }

    @Test func keysAreUniqueAndPatternsPlain() {
        expect(
            """
            @Persistable struct A {
                var x: Int
                @Persisted("x") var y: Int
                var (p, q) = (1, 2)
            }
            """,
            [
                DiagnosticSpec(message: "two properties are stored as \"x\"", line: 3, column: 25),
                DiagnosticSpec(
                    message: "@Persistable does not support tuple patterns: declare the properties separately", line: 4,
                    column: 9),
            ])
    }

    @Test func extensibleIsForRoots() {
        expect(
            "@Persistable(extensible: true) enum A { case a }",
            [
                DiagnosticSpec(
                    message: "only a struct or a root class can be extensible; subclasses inherit it", line: 1,
                    column: 1)
            ])
    }

    @Test func extensionPropertiesGoOnOnePropertyEach() {
        expect(
            "extension A { @ExtensionProperty var (x, y): (Int, Int) }",
            [
                DiagnosticSpec(
                    message: "@ExtensionProperty can only be attached to a single property", line: 1, column: 15)
            ])
    }

    @Test func extensionPropertiesStandInExtensionsWithTypeAndDefault() {
        expect(
            "struct A { @ExtensionProperty var x: Int? }",
            [
                DiagnosticSpec(
                    message: "@ExtensionProperty can only be used in an extension; declare a stored property here",
                    line: 1,
                    column: 12)
            ])
        expect(
            "extension A { @ExtensionProperty var x = 1 }",
            [DiagnosticSpec(message: "@ExtensionProperty 'x' needs a type", line: 1, column: 38)])
        expect(
            "extension A { @ExtensionProperty var x: Int }",
            [
                DiagnosticSpec(
                    message: "@ExtensionProperty 'x' needs a default value or an optional type", line: 1, column: 38)
            ])
    }
}
