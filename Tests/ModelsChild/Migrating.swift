import ModelsSamples
import VitrineCore
import VitrineModels

/// Fills a group with objects of an older version, and brings them up to date.
enum Migrating {
    private static let group: GroupPath = "g"

    static func fill(_ path: String, count: Int) async throws {
        let store = try ObjectStore(at: path)
        try await store.transaction { batch throws(PersistenceError) in
            for number in 0..<count { try batch.put(Dated<Older>([number, 1]), for: "\(number)", in: group) }
        }
        ModelsChild.report("done \(count)")
    }

    static func run(_ path: String) async throws {
        let store = try ObjectStore(at: path)
        for try await event in store.migrate(Dated<Newer>.self, in: group) {
            switch event {
            case .progress(let done, let total): ModelsChild.report("progress \(done) \(total)")
            case .failed(let key, let error): ModelsChild.report("failed \(key) \(error)")
            }
        }
        ModelsChild.report("end")
    }

    private enum Older: DatedBuild {
        static var version: SchemaVersion { "1" }
        static var properties: [DatedProperty] { [DatedProperty(name: "a"), DatedProperty(name: "b")] }
    }

    private enum Newer: DatedBuild {
        static var version: SchemaVersion { "2" }
        static var properties: [DatedProperty] { [DatedProperty(name: "sum")] }
        static var steps: [MigrationStep] {
            [
                MigrationStep(to: "2") { old in
                    old.set("sum", to: try (old.value("a") ?? 0) + (old.value("b") ?? 0))
                }
            ]
        }
    }
}
