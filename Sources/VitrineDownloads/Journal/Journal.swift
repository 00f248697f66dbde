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
final class Journal: Sendable {
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
        path = FilePath.join(directory, FileName.name(for: identifier) + ".sqlite")
        do {
            try Directory.create(directory)
            // Also so that SQLite does not make the file with the mode of others.
            lock = try FileDescriptor(opening: path + ".lock", flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
            guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else {
                if errno == EWOULDBLOCK { throw DownloadError.inUse(path: path) }
                throw FileError(operation: "flock", path: path, code: errno)
            }
            _ = try FileDescriptor(opening: path, flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
            var options = Database.Options()
            options.durability = .full
            let database = try Database(path: path, options: options)
            try database.execute(
                """
                CREATE TABLE IF NOT EXISTS download(
                    id TEXT PRIMARY KEY, revision INTEGER NOT NULL, record TEXT NOT NULL) WITHOUT ROWID;
                PRAGMA user_version=1
                """)
            writer = DatabaseWriter(database)
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

    /// All downloads, in the order of their places. What cannot be read is left out, and logged.
    func records() async throws(DownloadError) -> [DownloadRecord] {
        try await run { database in
            let statement = try database.prepare("SELECT id, record FROM download")
            var records: [DownloadRecord] = []
            while try statement.step() {
                do {
                    records.append(try JSONDecoder().decode(DownloadRecord.self, from: Data(statement.bytes(at: 1))))
                } catch {
                    Log.logger("downloads").error(
                        "A download in the journal cannot be read",
                        metadata: ["id": "\(statement.text(at: 0))", "error": "\(error)"])
                }
            }
            return records.sorted { ($0.position, $0.id) < ($1.position, $1.id) }
        }
    }

    /// Keeps a download as it is, unless something newer was kept of it; returns when that is on the medium.
    func save(_ record: DownloadRecord) async throws(DownloadError) {
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
        }
    }

    /// Forgets a download.
    func remove(_ id: String) async throws(DownloadError) {
        try await run { database in
            let statement = try database.cachedStatement("DELETE FROM download WHERE id = ?")
            statement.bind(id, at: 1)
            try statement.run()
        }
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
