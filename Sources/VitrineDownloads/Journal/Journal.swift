import VitrineCore
import VitrineDatabase
import VitrineNetwork

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

/// The stored form of a download.
package struct DownloadRecord: Sendable, Codable {
    let id: String
    /// The request, with an absolute directory.
    @Stored package var request: DownloadRequest
    @Stored package var status: DownloadStatus
    /// Its position in the queue; lower ones come first.
    var position: Double
    /// The current address: 0 for the first, then the mirrors.
    var source = 0
    /// The revision. Later changes of the list have higher ones.
    var revision: Int
    /// Set before the complete file is moved to its path, so that the next run can check whether that happened.
    var placing: Placing?

    /// A file that is about to be moved to its path.
    package struct Placing: Sendable, Codable {
        let path: String
        /// The device and inode of the file, which a rename does not change.
        let device: UInt64, inode: UInt64
        let length: Int

        /// Whether the file is at that path. Blocks.
        var isDone: Bool {
            var status = stat()
            return lstat(path, &status) == 0 && UInt64(truncatingIfNeeded: status.st_dev) == device
                && UInt64(truncatingIfNeeded: status.st_ino) == inode && Int(status.st_size) == length
        }
    }

    /// The current address.
    package var url: URL {
        request.mirrors.indices.contains(source &- 1) ? request.mirrors[source &- 1] : request.url
    }

    /// The host of the current address.
    var host: String { url.host()?.lowercased() ?? "" }

    /// Whether an identifier is valid: it becomes a part of a file name.
    static func isIdentifier(_ id: String) -> Bool {
        (1...64).contains(id.utf8.count)
            && id.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == UInt8(ascii: "-")
            }
    }

    /// Returns the record with its numbers limited to valid ranges.
    func sanitized() -> DownloadRecord {
        var record = self
        record.position = position.isFinite ? min(max(-1e12, position), 1e12) : 0
        record.source = (0...request.mirrors.count).contains(source) ? source : 0
        record.revision = (0...Self.highestRevision).contains(revision) ? revision : 0
        return record
    }

    /// The limit of revisions, far above any real number of changes.
    static let highestRevision = 1 << 52

    /// The directory of its file.
    var directory: String { request.directory ?? "/" }

    /// The path of its partial file: hidden, beside its file.
    package var partPath: String { PartialFile.path(for: FilePath.join(directory, "." + id)) }
}

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

/// The list of downloads on disk, in an SQLite database that only this user can read.
///
/// The progress of a transfer is in its part file instead. The journal also counts runs whose end was not stored, which
/// reveals downloads that end the process.
final class Journal: Sendable {
    /// The content of a journal.
    struct Content: Sendable {
        /// The downloads, in the order of their positions.
        var records: [DownloadRecord] = []
        /// The unfinished runs of downloads.
        var starts: [String: Starts] = [:]
        /// The downloads whose records cannot be trusted.
        var damaged: [DamagedRecord] = []
    }

    /// The address in a record, in the form of a ``DownloadRecord``.
    private struct AddressedRecord: Decodable {
        struct Request: Decodable { let url: URL }
        let request: Request
    }

    /// A download whose record differs from its checksum, or cannot be decoded.
    struct DamagedRecord: Sendable {
        /// The bytes of its identifier in the file, which may be damaged, too.
        let key: [UInt8]
        /// A failure, with the address and path of the record as far as it can be decoded.
        let status: DownloadStatus

        fileprivate init(key: [UInt8], record: [UInt8]) {
            self.key = key
            let text = String(decoding: key, as: UTF8.self)
            let isUsable = DownloadRecord.isIdentifier(text) && text == text.lowercased()
            let id = isUsable ? text : String(StableHash.hash(key, seed: 0), radix: 16)
            let decoder = JSONDecoder(), record = Data(record)
            let found = try? decoder.decode(DownloadRecord.self, from: record)
            // The address is the most useful part, and may be intact.
            let url = (try? decoder.decode(AddressedRecord.self, from: record))?.request.url
            var status = DownloadStatus(
                id: id, url: url ?? URL(string: "about:blank") ?? URL(filePath: "/"), path: found?.status.path ?? "",
                priority: .normal, added: found?.status.added ?? Date(timeIntervalSince1970: 0))
            status.state = .failed
            status.failure = DownloadStatus.Failure(.damagedRecord(id: id))
            self.status = status
        }
    }

    /// The runs of a download during which the process ended.
    struct Starts: Sendable {
        /// Their number, in a row and without progress.
        let count: Int
        /// The bytes received at the last observed progress.
        let received: Int
    }

    /// The lock on the list: two programs would load each file twice.
    private final class Hold: Sendable {
        private struct State {
            var lock: FileLock?
            /// Whether the list was created in the place of a deleted one.
            var isReplaced = false
        }

        private let path: String
        private let state = Locked(State())

        init(path: String) { self.path = path }

        /// Takes the lock, also if its file was deleted.
        ///
        /// - Throws: ``DownloadError/inUse(path:)`` if another program has it, or `FileError`.
        func take() throws {
            try state.withLock { state in
                if let lock = state.lock, lock.isCurrent { return }
                guard let lock = try FileLock(path: path + ".lock") else { throw DownloadError.inUse(path: path) }
                state.lock = lock
            }
        }

        /// Whether the file of the lock is the one that was opened.
        var isCurrent: Bool { state.withLock { $0.lock?.isCurrent ?? false } }

        func noteReplacement() { state.withLock { $0.isReplaced = true } }

        func takeReplacement() -> Bool {
            state.withLock { state in
                defer { state.isReplaced = false }
                return state.isReplaced
            }
        }

        func release() { state.withLock { $0.lock.take()?.release() } }
    }

    private let path: String
    private let writer: DatabaseWriter
    private let hold: Hold

    /// Opens a journal, or creates it.
    ///
    /// - Throws: ``DownloadError/inUse(path:)`` while another program, or another manager, has it open.
    static func open(directory: String, identifier: String) async throws(DownloadError) -> Journal {
        let result = await BlockingExecutor.shared.run {
            Result { () throws(DownloadError) in try Journal(directory: directory, identifier: identifier) }
        }
        return try result.get()
    }

    private init(directory: String, identifier: String) throws(DownloadError) {
        let path = Self.path(directory, identifier), hold = Hold(path: path)
        self.path = path
        self.hold = hold
        let open = { @Sendable () throws -> sending Database in
            try Directory.create(directory, isDurable: true)
            try hold.take()
            // Otherwise SQLite would create the file with a mode for other users.
            _ = try FileDescriptor(opening: path, flags: O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
            return try Self.database(path)
        }
        do {
            writer = DatabaseWriter(try open()) { () throws -> sending Database in
                let isMissing = !FilePath.exists(path)
                let database = try open()
                if isMissing { hold.noteReplacement() }
                return database
            }
        } catch let error as DownloadError {
            throw error
        } catch let error as DatabaseError {
            throw DownloadError(error)
        } catch let error as FileError {
            throw .file(error)
        } catch {
            throw .file(.untrusted(path: path, reason: ErrorText.nested(error, about: path)))
        }
    }

    /// Opens a connection to the database. A full disk has no space for the index of the write-ahead log. Only this
    /// manager uses the file, so the index can be in memory: the list is readable, and writable once there is space.
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

    /// Opens the database, and creates its tables if they are missing.
    private static func database(_ path: String) throws -> sending Database {
        let database = try connection(path)
        let stored = try database.integer("PRAGMA user_version") ?? 0
        guard stored <= version else {
            throw FileError.untrusted(path: path, reason: "it was written by a later version of this software")
        }
        if stored < version { try database.transaction { try upgrade(database) } }
        let unusable = "typeof(revision) <> 'integer' OR revision NOT BETWEEN 0 AND \(DownloadRecord.highestRevision)"
        if try database.integer("SELECT EXISTS(SELECT 1 FROM download WHERE \(unusable))") == 1 {
            try database.execute("UPDATE download SET revision = 0 WHERE \(unusable)")
        }
        return database
    }

    /// The version of the format. Higher ones cannot be read. The first one had no checksums.
    private static let version: Int64 = 2

    private static func upgrade(_ database: Database) throws {
        try database.execute(
            """
            CREATE TABLE IF NOT EXISTS download(
                id TEXT PRIMARY KEY, revision INTEGER NOT NULL, record TEXT NOT NULL, sum INTEGER) WITHOUT ROWID;
            CREATE TABLE IF NOT EXISTS start(
                id TEXT PRIMARY KEY, count INTEGER NOT NULL, received INTEGER NOT NULL) WITHOUT ROWID;
            PRAGMA user_version=\(version)
            """)
        guard try database.integer("SELECT count(*) FROM pragma_table_info('download') WHERE name='sum'") == 0 else {
            return
        }
        try database.execute("ALTER TABLE download ADD COLUMN sum INTEGER")
        let select = try database.prepare("SELECT id, record FROM download")
        var sums: [(id: String, sum: Int64)] = []
        while try select.step() {
            let id = select.text(at: 0)
            sums.append((id, sum(id, select.bytes(at: 1))))
        }
        let update = try database.prepare("UPDATE download SET sum=? WHERE id=?")
        for (id, sum) in sums {
            update.bind(sum, at: 1)
            update.bind(id, at: 2)
            try update.run()
        }
    }

    /// The checksum of a download in the list. It finds damage, and no changes on purpose.
    private static func sum(_ id: String, _ record: [UInt8]) -> Int64 {
        Int64(bitPattern: StableHash.hash(record, seed: StableHash.hash(id, seed: 0)))
    }

    private static func path(_ directory: String, _ identifier: String) -> String {
        FilePath.join(directory, FileName.name(for: identifier) + ".sqlite")
    }

    /// Returns all downloads. Damaged ones are logged, and stay in the file.
    func content() async throws(DownloadError) -> Content {
        try await run { database in
            let statement = try database.prepare("SELECT id, record, sum, revision FROM download")
            var records: [DownloadRecord] = [], damaged: [DamagedRecord] = []
            var revisions: [(id: String, revision: Int)] = []
            while try statement.step() {
                do {
                    let id = statement.text(at: 0), bytes = statement.bytes(at: 1)
                    guard statement.integer(at: 2) == Self.sum(id, bytes) else {
                        throw FileError.untrusted(path: database.path, reason: "an entry differs from its checksum")
                    }
                    let record = try JSONDecoder().decode(DownloadRecord.self, from: Data(bytes)).sanitized()
                    // A higher number would keep later changes out.
                    if statement.integer(at: 3) != Int64(record.revision) { revisions.append((id, record.revision)) }
                    guard record.id == statement.text(at: 0), DownloadRecord.isIdentifier(record.id),
                        record.status.id == record.id
                    else { throw DownloadError.unknown(id: record.id) }
                    records.append(record)
                } catch let error as DatabaseError {
                    throw error
                } catch {
                    damaged.append(DamagedRecord(key: statement.bytes(at: 0), record: statement.bytes(at: 1)))
                    Log.logger("downloads").error(
                        "A download in the journal cannot be read",
                        metadata: ["id": "\(statement.text(at: 0))", "error": "\(error)"])
                }
            }
            for (id, revision) in revisions {
                let update = try database.cachedStatement("UPDATE download SET revision=? WHERE id=?")
                update.bind(revision, at: 1)
                update.bind(id, at: 2)
                try update.run()
            }
            var starts: [String: Starts] = [:]
            let runs = try database.prepare("SELECT id, count, received FROM start")
            while try runs.step() {
                starts[runs.text(at: 0)] = Starts(
                    count: max(0, Int(runs.integer(at: 1))), received: max(0, Int(runs.integer(at: 2))))
            }
            return Content(
                records: records.sorted { ($0.position, $0.id) < ($1.position, $1.id) }, starts: starts,
                damaged: damaged)
        }
    }

    // MARK: Runs

    /// Stores that a download starts to run, until its end is stored.
    func noteStart(_ id: String) async throws(DownloadError) {
        try await change(
            id, """
                INSERT INTO start(id, count, received) VALUES(?, 1, 0)
                ON CONFLICT(id) DO UPDATE SET count = min(max(count, 0), 1000) + 1
                """)
    }

    /// Stores that a run has not ended the process.
    ///
    /// - Parameter received: The bytes received; nil for no change.
    func clearStarts(_ id: String, received: Int?) async throws(DownloadError) {
        try await run { database in
            let statement = try database.cachedStatement(
                "UPDATE start SET count = 0, received = max(received, ?) WHERE id = ?")
            statement.bind(received ?? 0, at: 1)
            statement.bind(id, at: 2)
            try statement.run()
        }
    }

    /// Resets the count to the run in progress.
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

    /// Stores a download, unless a newer revision was stored. Returns when it is on the medium.
    ///
    /// - Parameter endsRun: Whether its run has ended regularly.
    func save(_ record: DownloadRecord, endsRun: Bool) async throws(DownloadError) {
        try await run { database in
            let text = String(decoding: try JSONEncoder().encode(record), as: UTF8.self)
            let statement = try database.cachedStatement(
                """
                INSERT INTO download(id, revision, record, sum) VALUES(?, ?, ?, ?) ON CONFLICT(id) DO UPDATE
                SET revision = excluded.revision, record = excluded.record, sum = excluded.sum
                WHERE revision < excluded.revision
                """)
            statement.bind(record.id, at: 1)
            statement.bind(record.revision, at: 2)
            statement.bind(text, at: 3)
            statement.bind(Self.sum(record.id, Array(text.utf8)), at: 4)
            try statement.run()
            guard endsRun else { return }
            let end = try database.cachedStatement("DELETE FROM start WHERE id = ?")
            end.bind(record.id, at: 1)
            try end.run()
        }
    }

    /// Whether the list was deleted since the last call, and another one was created in its place. It has only later
    /// changes.
    func takeReplacement() -> Bool { hold.takeReplacement() }

    /// Whether the list or its lock was deleted.
    var isLost: Bool {
        get async { await BlockingExecutor.shared.run { [hold, path] in !hold.isCurrent || !FilePath.exists(path) } }
    }

    /// Removes a download.
    func remove(_ id: String) async throws(DownloadError) { try await remove(key: Array(id.utf8)) }

    /// Removes a download by the bytes of its identifier in the file.
    func remove(key: [UInt8]) async throws(DownloadError) {
        try await run { database in
            for table in ["download", "start"] {
                let statement = try database.cachedStatement("DELETE FROM \(table) WHERE id = CAST(? AS TEXT)")
                statement.bind(key, at: 1)
                try statement.run()
            }
        }
    }

    // MARK: Closing

    /// Renames a damaged journal, so that the next opening creates an empty one.
    ///
    /// - Returns: The new path; nil if there is no journal, or it is not damaged.
    static func setAside(directory: String, identifier: String) async throws(DownloadError) -> String? {
        guard await BlockingExecutor.shared.run({ FilePath.exists(path(directory, identifier)) }) else { return nil }
        // One failure does not make a file damaged.
        for _ in 0..<3 {
            do throws(DownloadError) {
                let journal = try await open(directory: directory, identifier: identifier)
                defer { journal.release() }
                _ = try await journal.content()
                return nil
            } catch .inUse {
                // The program that uses it could read it.
                return nil
            } catch .journal(_, _, isDamaged: true) {}
        }
        return try await DownloadEngine.onFiles { () throws(FileError) in try moveAside(path(directory, identifier)) }
    }

    private static func moveAside(_ path: String) throws(FileError) -> String {
        guard let lock = try FileLock(path: path + ".lock") else {
            throw FileError(operation: "flock", path: path, code: EWOULDBLOCK)
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
        // The log comes first: otherwise it could become the log of the next database.
        for suffix in ["-wal", "-shm", ""] where suffix.isEmpty || FilePath.exists(path + suffix) {
            try FileRename.move(path + suffix, to: target + suffix, replaces: false)
        }
        Log.logger("downloads").error("A damaged list of downloads was set aside", metadata: ["path": "\(target)"])
        lock.release()
        return target
    }

    /// Closes the journal after all pending writes. Another manager may then open it.
    func close() async {
        do { try await run { _ in } } catch {
            Log.logger("downloads").error("The list of downloads was not stored", metadata: ["error": "\(error)"])
        }
        release()
    }

    /// Closes the journal at once.
    func release() { hold.release() }

    private func run<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(DownloadError) -> Value {
        let hold = hold
        do {
            return try await writer.write { database in
                try hold.take()
                return try body(database)
            }
        } catch let error as DownloadError {
            throw error
        } catch let error as FileError {
            throw .file(error)
        } catch let error as DatabaseError {
            throw DownloadError(error)
        } catch {
            throw .file(.untrusted(path: path, reason: ErrorText.nested(error, about: path)))
        }
    }
}

/// A type whose values are stored in the journal and sent between programs and the agent.
///
/// Public types conform to it instead of `Codable`, so that the stored form is not part of the public interface.
package protocol StoredForm: Sendable {
    init(stored decoder: any Decoder) throws
    func store(to encoder: any Encoder) throws
}

/// The `Codable` form of a value.
@propertyWrapper package struct Stored<Value: StoredForm>: Sendable, Codable {
    package var wrappedValue: Value

    package init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    package init(from decoder: any Decoder) throws { wrappedValue = try Value(stored: decoder) }

    package func encode(to encoder: any Encoder) throws { try wrappedValue.store(to: encoder) }
}

extension KeyedDecodingContainer {
    /// Decodes a value that is stored as text.
    ///
    /// - Parameter value: Returns nil for text that is not valid.
    func decodeNamed<Value>(forKey key: Key, _ value: (String) -> Value?) throws -> Value {
        let text = try decode(String.self, forKey: key)
        guard let value = value(text) else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "\(text) is not a \(Value.self)")
        }
        return value
    }

    /// Decodes an optional value that is stored as text.
    func decodeNamedIfPresent<Value>(forKey key: Key, _ value: (String) -> Value?) throws -> Value? {
        guard contains(key), try !decodeNil(forKey: key) else { return nil }
        return try decodeNamed(forKey: key, value)
    }
}
