import VitrineModels

/// A struct that is all a test says about it: a stand-in for one type in several builds of a program. Which build is
/// told by the type argument.
package struct Dated<Build: DatedBuild>: PersistentRecord {
    package var values: [Int]

    package init(_ values: [Int]) { self.values = values }

    package static var persistentName: String { Build.name }
    package static func describe(in record: inout RecordBuilder) {
        record.header(version: Build.version, steps: Build.steps, renamedFrom: Build.aliases)
        for property in Build.properties {
            if let value = property.defaultValue {
                record.property(property.name, Int.self, renamedFrom: property.aliases, default: value)
            } else {
                record.property(property.name, Int.self, renamedFrom: property.aliases)
            }
        }
    }
    package func persistProperties(to writer: inout BinaryWriter) {
        for value in values { writer.write(value) }
    }
    package init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        values = []
        for _ in Build.properties { values.append(try reader.read()) }
    }
}

/// What one build of the program says of ``Dated``.
package protocol DatedBuild: Hashable {
    static var name: String { get }
    static var version: SchemaVersion { get }
    static var properties: [DatedProperty] { get }
    static var steps: [MigrationStep] { get }
    static var aliases: [String] { get }
}

extension DatedBuild {
    package static var name: String { "Dated" }
    package static var steps: [MigrationStep] { [] }
    package static var aliases: [String] { [] }
}

package struct DatedProperty {
    package let name: String
    package var aliases: [String] = []
    package var defaultValue: Int?

    package init(name: String, aliases: [String] = [], defaultValue: Int? = nil) {
        (self.name, self.aliases, self.defaultValue) = (name, aliases, defaultValue)
    }
}
