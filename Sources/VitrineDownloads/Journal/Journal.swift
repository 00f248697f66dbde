#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore
import VitrineDatabase

/// The list of downloads on disk, in an SQLite database that only this user can read. How far a transfer has come is
/// not in it: its part file tells.
///
/// Beside the list stand the runs whose end was not noted: of a download that ends the process whenever it runs.
final class Journal: Sendable {
    /// What a journal holds.
    struct Content: Sendable {
        /// In the order of their places.
        var records: [DownloadRecord] = []
        /// Of those whose last runs did not come to an end.
        var starts: [String: Starts] = [:]
    }

    /// The runs of a download that the process did not outlive.
    struct Starts: Sendable {
        /// How many, in a row and without any progress.
        let count: Int
        /// How far the download had come when it was last seen to come on.
        let received: Int
    }

    private let path: String
    private let writer: DatabaseWriter
    /// Held as long as the journal is open: two programs would load everything twice.
    private let lock: FileDescriptor

    /// Opens a journal, or makes one.
    ///
    /// - Throws: ``DownloadError/inUse(path:)`` while another program, or another manager, has it.
    static func open(directory: String, identifier: String) async throws(DownloadError) -> Journal {
        let result = await BlockingExecutor.shared.run {
            Result { () throws(DownloadError) in try Journal(directory: directory, identifier: identifier) }
        }
        return try result.get()
    }

    private init(directory: String, identifier: String) throws(DownloadError) {
        path = Self.path(directory, identifier)
        do {
            try Directory.create(directory, isDurable: true)
            // Also so that SQLite does not make the file with the mode of others.
            lock = try FileDescriptor(opening: path + ".lock", flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
            guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else {
                if errno == EWOULDBLOCK { throw DownloadError.inUse(path: path) }
                throw FileError(operation: "flock", path: path, code: errno)
            }
            _ = try FileDescriptor(opening: path, flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
            writer = DatabaseWriter(try Self.database(path))
        } catch let error as DownloadError {
            throw error
        } catch let error as DatabaseError {
            throw .journal(error)
        } catch let error as FileError {
            throw .file(error)
        } catch {
            throw .file(.untrusted(path: path, reason: "\(error)"))
        }
    }

    /// A connection to the database. On a full disk there is no room for the index of the log. Only this manager has
    /// the file, so the index can be in memory: the list can be read, and changed as soon as there is room.
    private static func connection(_ path: String) throws(DatabaseError) -> Database {
        var options = Database.Options()
        options.durability = .full
        do throws(DatabaseError) {
            return try Database(path: path, options: options)
        } catch {
            guard error.reason == .full || error.reason == .cannotOpen else { throw error }
            options.sharing = .exclusive
            if let database = try? Database(path: path, options: options) { return database }
            throw error
        }
    }

    /// Opens the database, and makes its tables unless they are there.
    private static func database(_ path: String) throws -> Database {
        let database = try connection(path)
        let stored = try database.integer("PRAGMA user_version") ?? 0
        guard stored <= version else {
            throw FileError.untrusted(path: path, reason: "a later version of this software has written it")
        }
        if stored < version {
            try database.execute(
                """
                CREATE TABLE IF NOT EXISTS download(
                    id TEXT PRIMARY KEY, revision INTEGER NOT NULL, record TEXT NOT NULL) WITHOUT ROWID;
                CREATE TABLE IF NOT EXISTS start(
                    id TEXT PRIMARY KEY, count INTEGER NOT NULL, received INTEGER NOT NULL) WITHOUT ROWID;
                PRAGMA user_version=\(version)
                """)
        }
        let unusable = "typeof(revision) <> 'integer' OR revision NOT BETWEEN 0 AND \(DownloadRecord.highestRevision)"
        if try database.integer("SELECT EXISTS(SELECT 1 FROM download WHERE \(unusable))") == 1 {
            try database.execute("UPDATE download SET revision = 0 WHERE \(unusable)")
        }
        return database
    }

    /// The format: higher ones cannot be read.
    private static let version: Int64 = 1

    private static func path(_ directory: String, _ identifier: String) -> String {
        FilePath.join(directory, FileName.name(for: identifier) + ".sqlite")
    }

    /// All downloads. What cannot be read is left out, and logged; it stays in the file.
    func content() async throws(DownloadError) -> Content {
        try await run { database in
            let statement = try database.prepare("SELECT id, record FROM download")
            var records: [DownloadRecord] = []
            while try statement.step() {
                do {
                    let data = Data(statement.bytes(at: 1))
                    let record = try JSONDecoder().decode(DownloadRecord.self, from: data).tamed()
                    guard record.id == statement.text(at: 0), DownloadRecord.isIdentifier(record.id),
                        record.status.id == record.id
                    else { throw DownloadError.unknown(id: record.id) }
                    records.append(record)
                } catch let error as DatabaseError {
                    throw error
                } catch {
                    Log.logger("downloads").error(
                        "A download in the journal cannot be read",
                        metadata: ["id": "\(statement.text(at: 0))", "error": "\(error)"])
                }
            }
            var starts: [String: Starts] = [:]
            let runs = try database.prepare("SELECT id, count, received FROM start")
            while try runs.step() {
                starts[runs.text(at: 0)] = Starts(
                    count: max(0, Int(runs.integer(at: 1))), received: max(0, Int(runs.integer(at: 2))))
            }
            return Content(
                records: records.sorted { ($0.position, $0.id) < ($1.position, $1.id) }, starts: starts)
        }
    }

    // MARK: Runs

    /// Notes that a download begins to run, until its end is noted.
    func noteStart(_ id: String) async throws(DownloadError) {
        try await change(
            id, """
                INSERT INTO start(id, count, received) VALUES(?, 1, 0)
                ON CONFLICT(id) DO UPDATE SET count = min(max(count, 0), 1000) + 1
                """)
    }

    /// Notes that a run is not what ends the process.
    ///
    /// - Parameter received: How far the download has come; nil for as far as it was.
    func clearStarts(_ id: String, received: Int?) async throws(DownloadError) {
        try await run { database in
            let statement = try database.cachedStatement(
                "UPDATE start SET count = 0, received = max(received, ?) WHERE id = ?")
            statement.bind(received ?? 0, at: 1)
            statement.bind(id, at: 2)
            try statement.run()
        }
    }

    /// Lets only the run that is under way count.
    func forgiveStarts(_ id: String) async throws(DownloadError) {
        try await change(id, "UPDATE start SET count = min(count, 1) WHERE id = ?")
    }

    /// Runs a statement for one download.
    private func change(_ id: String, _ sql: String) async throws(DownloadError) {
        try await run { database in
            let statement = try database.cachedStatement(sql)
            statement.bind(id, at: 1)
            try statement.run()
        }
    }

    // MARK: Changes

    /// Keeps a download as it is, unless something newer was kept of it; returns when that is on the medium.
    ///
    /// - Parameter endsRun: Whether its run, if there was one, has ended as it should.
    func save(_ record: DownloadRecord, endsRun: Bool) async throws(DownloadError) {
        try await run { database in
            let text = String(decoding: try JSONEncoder().encode(record), as: UTF8.self)
            let statement = try database.cachedStatement(
                """
                INSERT INTO download(id, revision, record) VALUES(?, ?, ?) ON CONFLICT(id) DO UPDATE
                SET revision = excluded.revision, record = excluded.record WHERE revision < excluded.revision
                """)
            statement.bind(record.id, at: 1)
            statement.bind(record.revision, at: 2)
            statement.bind(text, at: 3)
            try statement.run()
            guard endsRun else { return }
            let end = try database.cachedStatement("DELETE FROM start WHERE id = ?")
            end.bind(record.id, at: 1)
            try end.run()
        }
    }

    /// Forgets a download.
    func remove(_ id: String) async throws(DownloadError) {
        try await run { database in
            for table in ["download", "start"] {
                let statement = try database.cachedStatement("DELETE FROM \(table) WHERE id = ?")
                statement.bind(id, at: 1)
                try statement.run()
            }
        }
    }

    // MARK: The end

    /// Puts a damaged journal out of the way, so that the next opening makes an empty one.
    ///
    /// - Returns: Where it is now; nil if there is none, or none that is damaged.
    static func setAside(directory: String, identifier: String) async throws(DownloadError) -> String? {
        guard await BlockingExecutor.shared.run({ FilePath.exists(path(directory, identifier)) }) else { return nil }
        do throws(DownloadError) {
            let journal = try await open(directory: directory, identifier: identifier)
            do throws(DownloadError) { _ = try await journal.content() } catch {
                journal.release()
                throw error
            }
            journal.release()
            return nil
        } catch .inUse {
            // Whoever has it could read it.
            return nil
        } catch .journal(let error) where error.reason == .corrupt || error.reason == .other {
            return try await DownloadEngine.onFiles { () throws(FileError) in
                try moveAside(path(directory, identifier))
            }
        }
    }

    private static func moveAside(_ path: String) throws(FileError) -> String {
        let lock = try FileDescriptor(opening: path + ".lock", flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
        guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else {
            throw FileError(operation: "flock", path: path, code: errno)
        }
        var now = time(nil), date = tm()
        gmtime_r(&now, &date)
        var stamp = [CChar](repeating: 0, count: 32)
        strftime(&stamp, stamp.count, "%Y%m%d-%H%M%S", &date)
        let text = String(decoding: stamp.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        var target = path + ".damaged-" + text, number = 1
        while FilePath.exists(target) {
            number += 1
            target = path + ".damaged-\(text)-\(number)"
        }
        // The log before the file, which it would otherwise be taken for that of the next one.
        for suffix in ["-wal", "-shm", ""] where suffix.isEmpty || FilePath.exists(path + suffix) {
            try FileRename.move(path + suffix, to: target + suffix, replaces: false)
        }
        Log.logger("downloads").error("A damaged list of downloads was set aside", metadata: ["path": "\(target)"])
        withExtendedLifetime(lock.number) {}
        return target
    }

    /// Lets go of it after everything that was to be kept is: another manager may open it.
    func close() async {
        do { try await run { _ in } } catch {
            Log.logger("downloads").error("The list of downloads was not kept", metadata: ["error": "\(error)"])
        }
        release()
    }

    /// Lets go of it at once.
    func release() { flock(lock.number, LOCK_UN) }

    private func run<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(DownloadError) -> Value {
        do {
            return try await writer.write(body)
        } catch let error as DatabaseError {
            throw .journal(error)
        } catch {
            throw .file(.untrusted(path: path, reason: "\(error)"))
        }
    }
}
