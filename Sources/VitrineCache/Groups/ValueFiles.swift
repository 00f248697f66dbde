#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore
import VitrineDatabase

/// The files of a ``KeyValueStore`` in its directory. The name carries the format's version, so that a later format never
/// reads this one's bytes.
struct ValueFiles {
    let directory: String
    let path: String

    init(directory: String) {
        self.directory = directory
        path = FilePath.join(directory, "values-1.sqlite")
    }

    /// Opens, creating what is missing, the directory as well. A file that is no database, or a damaged one, is moved
    /// aside first.
    ///
    /// - Parameter isDamaged: Move it aside whatever it looks like.
    /// - Returns: Where the damaged file is now, if there was one.
    func prepare(isDamaged: Bool) throws(CacheError) -> String? {
        do throws(FileError) {
            try Directory.create(directory, isDurable: true)
            _ = try? AtomicFile.removeTemporariesOfDeadWriters(in: directory)
            let lock: ProcessLock
            do throws(FileError) {
                lock = try ProcessLock(directory: directory)
                try lock.acquire()
            } catch .noSpace {
                // Nothing can be made or moved now, but what is there can be read.
                return nil
            }
            defer { lock.release() }
            if access(path, F_OK) != 0 {
                // Of a file that was deleted: connections that are still open use them, and no other must.
                for end in ["-wal", "-shm"] { unlink(path + end) }
            }
            if !isDamaged, !isUnreadable() { return nil }
            return try moveAside()
        } catch {
            throw .file(error)
        }
    }

    private func isUnreadable() -> Bool {
        do throws(DatabaseError) {
            let database = try Database(path: path)
            try database.execute(ValueTable.schema)
            return false
        } catch {
            return error.reason == .corrupt
        }
    }

    private func moveAside() throws(FileError) -> String? {
        let suffix = ".damaged-\(WallClock.system.now.components.seconds)"
        var target = path + suffix, number = 0
        while access(target, F_OK) == 0 {
            number += 1
            target = "\(path)\(suffix)-\(number)"
        }
        // The log belongs to its file: with another one it would be replayed into that.
        for end in ["-wal", "-shm", ""] where rename(path + end, target + end) != 0 && errno != ENOENT {
            throw FileError(operation: "rename", path: path + end, code: errno)
        }
        return access(target, F_OK) == 0 ? target : nil
    }

    /// The two connections of a session, the tables made, and the version adopted. On a full disk there is one for
    /// reading, and that for writing is opened when there is room.
    func open(_ configuration: KeyValueStore.Configuration) throws(CacheError) -> (DatabaseReader, DatabaseWriter) {
        do {
            do {
                let lock = try ProcessLock(directory: directory)
                let writer = DatabaseWriter(try connect(configuration), lock: lock)
                try writer.writeBlocking { database in try adopt(configuration, database) }
                return (try reader(configuration), writer)
            } catch where Self.isLackOfRoom(error) {
                let failure = error
                let reader = try reader(configuration)
                let isAccepted = try reader.read { database throws(DatabaseError) in
                    try ValueTable.accepts(configuration.version, configuration.compatibleVersions, database)
                }
                guard isAccepted else { throw failure }
                let writer = DatabaseWriter(lock: try? ProcessLock(directory: directory)) { () throws in
                    let database = try connect(configuration)
                    try database.transaction { try adopt(configuration, database) }
                    return database
                }
                return (reader, writer)
            }
        } catch let error as CacheError {
            throw error
        } catch let error as DatabaseError {
            throw .database(error)
        } catch let error as FileError {
            throw .file(error)
        } catch {
            throw .invalidData(key: CacheKey(path), underlying: error)
        }
    }

    private static func isLackOfRoom(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError: error.reason == .full
        case FileError.noSpace: true
        default: false
        }
    }

    private func connect(_ configuration: KeyValueStore.Configuration) throws(DatabaseError) -> sending Database {
        var options = Database.Options()
        options.durability = configuration.durability
        return try Database(path: path, options: options)
    }

    private func reader(_ configuration: KeyValueStore.Configuration) throws(DatabaseError) -> DatabaseReader {
        try DatabaseReader(path: path) { () throws(DatabaseError) in try connect(configuration) }
    }

    private func adopt(_ configuration: KeyValueStore.Configuration, _ database: Database) throws {
        try database.execute(ValueTable.schema)
        let other = try ValueTable.adopt(
            version: configuration.version, compatible: configuration.compatibleVersions, database)
        if let other {
            Log.logger("values").notice("Removed the values of version \(other)", metadata: ["path": "\(path)"])
        }
    }
}
