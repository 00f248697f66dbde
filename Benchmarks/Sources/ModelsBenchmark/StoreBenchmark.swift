import Foundation
import GRDB
import VitrineModels

/// Puts and gets of encoded records of about half a kilobyte, on the wall.
struct StoreBenchmark {
    let directory: String
    let count: Int
    let rounds: Int

    private typealias Record = Order<First>

    func run() async throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let orders = Record.samples(count)
        for isFull in [true, false] { try await puts(orders, isFull) }
        try await gets(orders)
    }

    private func store(_ name: String, _ isFull: Bool) throws -> ObjectStore {
        try ObjectStore(
            at: "\(directory)/\(name).sqlite",
            configuration: .init(
                durability: isFull ? .full : .relaxed, coder: PersistentCoder(registry: TypeRegistry())))
    }

    private func puts(_ orders: [Record], _ isFull: Bool) async throws {
        let durability = isFull ? "full" : "normal"
        let files = try RecordFiles(directory + "/files-\(durability)", isDurable: true)
        let loose = try RecordFiles(directory + "/loose-\(durability)", isDurable: false)
        let grdb = try GRDBRecords(directory + "/grdb-\(durability).sqlite", isFull: isFull)
        let store = try store("vitrine-\(durability)", isFull)
        var comparison = Comparison("puts at \(durability)", count: count, rounds: rounds, clock: .wall)
        // SQLite writes nothing where nothing has changed, so every run puts other values.
        comparison.addWaiting("file, fsync, rename") {
            let orders = Self.changed(orders)
            for (index, order) in orders.enumerated() { try files.put(order, "\(index)") }
        }
        comparison.addWaiting("file, rename: not durable") {
            let orders = Self.changed(orders)
            for (index, order) in orders.enumerated() { try loose.put(order, "\(index)") }
        }
        comparison.addWaiting("GRDB") {
            let orders = Self.changed(orders)
            for (index, order) in orders.enumerated() { try grdb.put(order, "\(index)") }
        }
        comparison.addWaiting("ObjectStore, one caller") {
            let orders = Self.changed(orders)
            for (index, order) in orders.enumerated() { try await store.put(order, for: "\(index)") }
        }
        comparison.addWaiting("ObjectStore, 64 callers") {
            let orders = Self.changed(orders)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for caller in 0..<64 {
                    group.addTask {
                        for index in stride(from: caller, to: orders.count, by: 64) {
                            try await store.put(orders[index], for: "\(index)")
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        try await comparison.run()
    }

    private static func changed(_ orders: [Record]) -> [Record] {
        let number = Int.random(in: 0..<1 << 40)
        return orders.map { order in
            var order = order
            order.number = number
            return order
        }
    }

    private func gets(_ orders: [Record]) async throws {
        let files = try RecordFiles(directory + "/files-get", isDurable: false)
        let grdb = try GRDBRecords(directory + "/grdb-get.sqlite", isFull: false)
        let store = try store("vitrine-get", false)
        for (index, order) in orders.enumerated() {
            try files.put(order, "\(index)")
            try grdb.put(order, "\(index)")
            try await store.put(order, for: "\(index)")
        }
        var comparison = Comparison("gets, decoded", count: count, rounds: rounds, clock: .wall)
        comparison.add("GRDB") { for index in 0..<count { blackHole(try grdb.get("\(index)")?.number ?? 0) } }
        comparison.add("files") { for index in 0..<count { blackHole(try files.get("\(index)").number) } }
        comparison.add("ObjectStore") {
            for index in 0..<count { blackHole(try store.object(Record.self, for: "\(index)")?.number ?? 0) }
        }
        try await comparison.run()
    }
}

/// A file for each record, in the same bytes as the store's.
private final class RecordFiles: Sendable {
    private let directory: String
    private let isDurable: Bool
    private let descriptor: Int32
    private let coder = PersistentCoder(registry: TypeRegistry())

    init(_ directory: String, isDurable: Bool) throws {
        self.directory = directory
        self.isDurable = isDurable
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        descriptor = open(directory, O_RDONLY | O_DIRECTORY)
    }

    deinit { close(descriptor) }

    func put(_ order: Order<First>, _ key: String) throws {
        let bytes = try coder.encode(order), path = "\(directory)/\(key)"
        let file = open(path + ".new", O_WRONLY | O_CREAT | O_TRUNC, 0o666)
        precondition(bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == bytes.count)
        if isDurable { precondition(fsync(file) == 0) }
        close(file)
        precondition(rename(path + ".new", path) == 0)
        if isDurable { precondition(fsync(descriptor) == 0) }
    }

    func get(_ key: String) throws -> Order<First> {
        try coder.decode(from: [UInt8](try Data(contentsOf: URL(filePath: "\(directory)/\(key)"))))
    }
}

/// A table of keys and blobs through GRDB, in the same bytes as the store's.
private final class GRDBRecords: Sendable {
    private let pool: DatabasePool
    private let coder = PersistentCoder(registry: TypeRegistry())

    init(_ path: String, isFull: Bool) throws {
        pool = try DatabasePool(path: path)
        // In a configuration's prepareDatabase it would be undone by the pool.
        try pool.barrierWriteWithoutTransaction { database in
            try database.execute(sql: "PRAGMA synchronous=\(isFull ? "FULL" : "NORMAL")")
            let synchronous = try Int.fetchOne(database, sql: "PRAGMA synchronous")
            precondition(synchronous == (isFull ? 2 : 1))
            try database.execute(
                sql: "CREATE TABLE IF NOT EXISTS object(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value BLOB)")
        }
    }

    func put(_ order: Order<First>, _ key: String) throws {
        let bytes = Data(try coder.encode(order))
        try pool.write { database in
            try database.cachedStatement(
                sql: """
                    INSERT INTO object(key, value) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value=excluded.value
                    """
            ).execute(arguments: [key, bytes])
        }
    }

    func get(_ key: String) throws -> Order<First>? {
        let data = try pool.read { database in
            try Data.fetchOne(
                database.cachedStatement(sql: "SELECT value FROM object WHERE key=?"), arguments: [key])
        }
        return try data.map { try coder.decode(from: [UInt8]($0)) }
    }
}
