import Foundation
import VitrineModels

/// How long a store takes to open, by how much it holds.
struct OpenBenchmark {
    let directory: String
    let count: Int
    let rounds: Int

    func run() async throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        var comparison = Comparison("open and get one", count: 1, rounds: rounds, clock: .wall)
        for size in [1, max(1, count / 100), count] {
            let path = "\(directory)/open-\(size).sqlite"
            try await fill(path, size)
            comparison.add("\(size) objects") {
                let store = try Self.store(path)
                blackHole(try store.object(Int.self, for: "\(size / 2)") ?? 0)
            }
        }
        try await comparison.run()
    }

    private static func store(_ path: String) throws -> ObjectStore {
        try ObjectStore(at: path, configuration: .init(coder: PersistentCoder(registry: TypeRegistry())))
    }

    private func fill(_ path: String, _ size: Int) async throws {
        let store = try Self.store(path)
        for begin in stride(from: try store.count(), to: size, by: 10_000) {
            try await store.transaction { batch throws(PersistenceError) in
                for index in begin..<min(size, begin + 10_000) { try batch.put(index, for: "\(index)") }
            }
        }
    }
}
