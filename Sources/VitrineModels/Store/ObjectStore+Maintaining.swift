internal import VitrineCore
import VitrineDatabase

/// What looking at every object of a store found.
public struct ObjectVerification: Sendable, Equatable {
    /// An object that cannot be read, whatever the program.
    public struct Damage: Sendable, Equatable {
        public let key: String
        public let group: ObjectGroup
        public let reason: PersistenceError
    }

    /// How many objects were looked at.
    public internal(set) var objects = 0
    /// Those that cannot be read.
    public internal(set) var damaged: [Damage] = []
    /// What is wrong with the file, in SQLite's words.
    public internal(set) var file: [String] = []

    /// Whether nothing is wrong.
    public var isIntact: Bool { damaged.isEmpty && file.isEmpty }
}

extension ObjectStore {
    /// Looks at the file and at every object in it: its checksum, its seal, and that it is what its schema says. No
    /// code of any type is needed. Reads everything, beside whatever else the store does.
    public nonisolated(nonsending) func verify() async throws(PersistenceError) -> ObjectVerification {
        try await apart { store, database in
            var verification = ObjectVerification()
            verification.file = try database.findDamage()
            try database.transaction(.deferred) {
                try ObjectTables.loadSchemas(database, into: store.registry)
                let select = try database.prepare("SELECT key, path, value FROM object JOIN grp ON grp.id=grp")
                while try select.step() {
                    let (key, group) = (select.text(at: 0), ObjectGroup(select.text(at: 1)))
                    verification.objects += 1
                    do {
                        _ = try store.coder.tree(of: store.seal.open(select.bytes(at: 2), key, group))
                    } catch let error as PersistenceError {
                        verification.damaged.append(.init(key: key, group: group, reason: error))
                    }
                }
            }
            return verification
        }
    }

    /// Copies the store as it is at one moment into another file, which is a store as well, beside whatever else
    /// happens. The file appears when it is whole and durable, in place of one that was there.
    ///
    /// - Throws: ``PersistenceError/file(_:)``, ``PersistenceError/database(_:)``; a file that was there is as it was.
    public nonisolated(nonsending) func backUp(to path: String) async throws(PersistenceError) {
        try await apart { _, database in
            // What a killed process has left of its copy is as large as a store.
            _ = try? AtomicFile.removeTemporariesOfDeadWriters(in: FilePath.parent(of: path))
            let writer = try AtomicFileWriter(path: path, options: .durable)
            let vacuum = try database.prepare("VACUUM INTO ?")
            vacuum.bind(writer.temporary, at: 1)
            try vacuum.run()
            try writer.commit()
        }
    }

    /// Removes all objects that are stored in a version of a type, which the program has given up: the ancestor's
    /// migration did that when it returned false. Objects inside others stay.
    ///
    /// - Parameters:
    ///   - type: The type's name, as stored: the type may be gone.
    ///   - version: As stored.
    /// - Returns: How many were removed.
    @discardableResult
    public nonisolated(nonsending) func forget(
        _ type: String, version: SchemaVersion
    ) async throws(PersistenceError) -> Int {
        do {
            let removed = try await writer.write { database in
                try ObjectTables.removeAll(of: type, version, database)
            }
            tell(removed.map { .removed(key: $0.key, group: $0.group) })
            return removed.count
        } catch {
            throw PersistenceError(error)
        }
    }

    /// Runs a body that may take long with a connection of its own, on a thread that may block.
    private nonisolated(nonsending) func apart<Result: Sendable>(
        _ body: @escaping @Sendable (ObjectStore, Database) throws -> Result
    ) async throws(PersistenceError) -> Result {
        do {
            return try await BlockingExecutor.shared.run { () throws(any Error) in
                let reader = try self.configuration.reader(self.path, isTemporary: true)
                return try reader.withDatabase { database in Swift.Result { try body(self, database) } }.get()
            }
        } catch {
            throw PersistenceError(error)
        }
    }
}
