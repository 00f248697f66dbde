import VitrineModels

/// A struct that is all a test says about it: a stand-in for one type in several builds of a program. Which build is
/// told by the type argument.
struct Dated<Build: DatedBuild>: PersistentRecord {
    var values: [Int]

    init(_ values: [Int]) { self.values = values }

    static var persistentName: String { Build.name }
    static func describe(in record: inout RecordBuilder) {
        record.header(version: Build.version, kind: .structure, steps: Build.steps, renamedFrom: Build.aliases)
        for property in Build.properties {
            if let value = property.defaultValue {
                record.property(property.name, Int.self, renamedFrom: property.aliases, default: value)
            } else {
                record.property(property.name, Int.self, renamedFrom: property.aliases)
            }
        }
    }
    func persistProperties(to writer: inout BinaryWriter) {
        for value in values { value.persist(to: &writer) }
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        values = []
        for _ in Build.properties { values.append(try reader.read()) }
    }
}

/// What one build of the program says of ``Dated``.
protocol DatedBuild: Hashable {
    static var name: String { get }
    static var version: SchemaVersion { get }
    static var properties: [DatedProperty] { get }
    static var steps: [MigrationStep] { get }
    static var aliases: [String] { get }
}

extension DatedBuild {
    static var name: String { "Dated" }
    static var steps: [MigrationStep] { [] }
    static var aliases: [String] { [] }
}

struct DatedProperty {
    let name: String
    var aliases: [String] = []
    var defaultValue: Int?
}
