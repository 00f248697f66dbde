import ModelsSamples
import VitrineModels

/// A type of two numbers.
enum TwoNumbers: DatedBuild {
    static var version: SchemaVersion { "1" }
    static var properties: [DatedProperty] { [DatedProperty(name: "a"), DatedProperty(name: "b")] }
}

/// Its next version, which has their sum; it does not take data without a positive first number.
enum TheirSum: DatedBuild {
    static var version: SchemaVersion { "2" }
    static var properties: [DatedProperty] { [DatedProperty(name: "sum")] }
    static var steps: [MigrationStep] {
        [
            MigrationStep(to: "2") { data in
                guard let a = try data.value("a", as: Int.self), a >= 0 else { throw PersistenceError.malformed("a") }
                data.set("sum", to: try a + (data.value("b") ?? 0))
            }
        ]
    }
}
