import Foundation
import VitrineModels

/// Old data to present data: in memory against the same edit by JSONSerialization, and a whole group in a store.
struct MigrationBenchmark {
    let directory: String
    let count: Int
    let rounds: Int

    func run() async throws {
        try await inMemory()
        for (name, migrate) in [("additive", additive), ("two steps", stepped)] {
            let store = try await filled()
            let before = peakMegabytes()
            let start = Comparison.Clock.wall.nanoseconds
            try await migrate(store)
            let seconds = (Comparison.Clock.wall.nanoseconds - start) / 1e9
            print("a group of \(count), \(name): \(Int(Double(count) / seconds)) objects/s durable,",
                String(format: "%.1f MB more at its peak", peakMegabytes() - before))
        }
    }

    private func inMemory() async throws {
        let orders = Order<First>.samples(min(count, 1000))
        let coder = PersistentCoder(registry: TypeRegistry()), encoder = JSONEncoder()
        let bytes = try orders.map { try coder.encode($0) }
        let texts = try orders.map { try encoder.encode($0) }
        // A registry for each release: one name is one type.
        func later() throws -> PersistentCoder {
            let registry = TypeRegistry()
            registry.add(try coder.registry.schema(of: Order<First>.self))
            return PersistentCoder(registry: registry)
        }
        let grown = try later(), stepped = try later()
        let priority = try grown.decode(Order<Grown>.self, from: bytes[0]).priority
        let created = try stepped.decode(Order<Stepped>.self, from: bytes[0]).created
        precondition(priority == 3 && created == orders[0].created.addingTimeInterval(3600))
        var additive = Comparison("additive change in memory", count: orders.count, rounds: rounds)
        additive.add("JSONSerialization") { for text in texts { blackHole(try edited(text) { $0["priority"] = 3 }) } }
        additive.add("upgrade") {
            for bytes in bytes { blackHole(try grown.upgrade(bytes, of: Order<Grown>.self).count) }
        }
        var two = Comparison("two steps in memory", count: orders.count, rounds: rounds)
        two.add("JSONSerialization") {
            for text in texts {
                blackHole(
                    try edited(text) { order in
                        order["serial"] = order.removeValue(forKey: "number")
                        order["created"] = (order["created"] as? Double ?? 0) + 3600
                        order["priority"] = 3
                    })
            }
        }
        two.add("upgrade") {
            for bytes in bytes { blackHole(try stepped.upgrade(bytes, of: Order<Stepped>.self).count) }
        }
        try await additive.run()
        try await two.run()
    }

    private func edited(_ text: Data, _ edit: (inout [String: Any]) -> Void) throws -> Int {
        guard var order = try JSONSerialization.jsonObject(with: text) as? [String: Any] else { return 0 }
        edit(&order)
        return try JSONSerialization.data(withJSONObject: order).count
    }

    private func store() throws -> ObjectStore {
        try ObjectStore(
            at: directory + "/migration.sqlite", configuration: .init(coder: PersistentCoder(registry: TypeRegistry())))
    }

    private func filled() async throws -> ObjectStore {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        for name in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: directory + "/migration.sqlite" + name)
        }
        let store = try store(), orders = Order<First>.samples(1000)
        for begin in stride(from: 0, to: count, by: orders.count) {
            try await store.transaction { batch throws(PersistenceError) in
                for (index, order) in orders.enumerated() where begin + index < count {
                    try batch.put(order, for: "\(begin + index)", in: "orders")
                }
            }
        }
        return try self.store()
    }

    private func additive(_ store: ObjectStore) async throws {
        for try await _ in store.migrate(Order<Grown>.self, in: "orders") {}
    }

    private func stepped(_ store: ObjectStore) async throws {
        for try await _ in store.migrate(Order<Stepped>.self, in: "orders") {}
    }

    private func peakMegabytes() -> Double {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
        return (Double(line.filter(\.isNumber)) ?? 0) / 1024
    }
}
