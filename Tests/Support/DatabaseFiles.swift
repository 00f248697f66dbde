import Foundation
internal import VitrineCore
internal import VitrineDatabase

/// The files of databases on disk.
package enum DatabaseFiles {
    /// Returns when no connection of this process has a database open, and its log and the log's index are gone.
    ///
    /// The last connection that closes writes the log into the database and deletes it, some time after the last
    /// reference to its owner has gone. Two that close at the same moment each see the other, and leave the log: a
    /// connection of this function's own deletes it then.
    package static func waitUntilClosed(_ database: String) throws {
        try waitUntil("the last connection to \(database) closed") {
            guard FilePath.exists(database + "-wal") || FilePath.exists(database + "-shm") else { return true }
            guard let path = FilePath.resolved(database) else { return false }
            guard openFiles(below: path).isEmpty else { return false }
            _ = try? Database(path: database).execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return false
        }
    }

    /// The files whose paths begin with `prefix` that this process has open; none where there is no `/proc`.
    package static func openFiles(below prefix: String) -> [String] {
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return descriptors.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }.filter { $0.hasPrefix(prefix) }
    }
}
