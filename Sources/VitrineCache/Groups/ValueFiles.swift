#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore
import VitrineDatabase

/// The files of a ``ValueStore`` in its directory. The name carries the format's version, so that a later format never
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
            try Directory.create(directory)
            let lock = try ProcessLock(directory: directory)
            try lock.acquire()
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

    /// The two connections of a session, the tables made, and the version adopted.
    func open(_ configuration: ValueStore.Configuration) throws(CacheError) -> (ValueReader, DatabaseWriter) {
        var options = Database.Options()
        options.durability = configuration.durability
        let version = configuration.version, compatible = configuration.compatibleVersions
        do {
            let lock = try ProcessLock(directory: directory)
            let writer = DatabaseWriter(try Database(path: path, options: options), lock: lock)
            let other = try writer.writeBlocking { database in
                try database.execute(ValueTable.schema)
                return try ValueTable.adopt(version: version, compatible: compatible, database)
            }
            if let other {
                Log.logger("values").notice("Removed the values of version \(other)", metadata: ["path": "\(path)"])
            }
            return (ValueReader(try Database(path: path, options: options)), writer)
        } catch let error as DatabaseError {
            throw .database(error)
        } catch let error as FileError {
            throw .file(error)
        } catch {
            throw .invalidData(key: CacheKey(path), underlying: error)
        }
    }
}

/// The connection that a ``ValueStore`` reads by.
final class ValueReader: Sendable {
    private let database: Locked<Database>

    init(_ database: sending Database) { self.database = Locked(database) }

    /// Reads, one thread at a time.
    func read<Value>(_ body: (Database) throws(DatabaseError) -> sending Value) throws(DatabaseError) -> Value {
        try database.withLock { database throws(DatabaseError) in try body(database) }
    }
}
