import VitrineCore
import VitrineDatabase

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The body files of a generation, which change in step with its rows.
///
/// A file and its row cannot change at once. So each transaction records the files that may lose their entry, and the
/// next one, of any process, checks these.
final class BodyFileStore {
    private let connection: DiskConnection
    /// The directory of the generation.
    private let path: String
    /// The body files to delete after the transaction.
    private var removals: [Int64] = []

    init(_ connection: DiskConnection) {
        self.connection = connection
        path = connection.path
    }

    /// The file of an entry's body.
    func bodyPath(_ id: Int64) -> String { path + "/files/" + DiskLayout.fileName(id) }

    /// Where a body is written before it appears at its path: one file, for only one process at a time writes.
    var temporaryPath: String { path + "/" + DiskLayout.temporaryName }

    /// Deletes a file when the transaction is committed.
    func removeAfterCommit(_ id: Int64) { removals.append(id) }

    /// Forgets the files to delete, as the transaction was dropped or a new one begins.
    func forgetRemovals() { removals = [] }

    /// Records the files that are deleted after the transaction.
    func storeRemovals() throws(DatabaseError) {
        for id in removals { try addOrphanCandidate(id) }
    }

    /// Deletes the files after the transaction was committed.
    func performRemovals() {
        for id in removals { BodyFile.remove(bodyPath(id)) }
        removals = []
    }

    // MARK: Files without rows

    /// Records in the transaction that a body file may lose its entry: it is about to be written or deleted. The next
    /// transaction checks this.
    func addOrphanCandidate(_ id: Int64) throws(DatabaseError) {
        let core = try connection.statements()
        core.addOrphanCandidate.bind(id, at: 1)
        try core.addOrphanCandidate.run()
    }

    /// Handles the files that a writer has left which was killed between a file and its row.
    ///
    /// - Parameters:
    ///   - stored: The entry whose file was just written. It is left alone.
    ///   - isFile: Returns whether an entry has a body file.
    func clearOrphans(
        besides stored: Int64?, isFile: (Int64) throws(DatabaseError) -> Bool
    ) throws(DatabaseError) {
        let core = try connection.statements()
        var ids: [Int64] = []
        while try core.orphanCandidates.step() { ids.append(core.orphanCandidates.integer(at: 0)) }
        guard !ids.isEmpty else { return }
        for id in ids where id != stored {
            if try isFile(id) { try placeSuccessor(id) } else { BodyFile.remove(bodyPath(id)) }
        }
        try core.clearOrphans.run()
    }

    /// Deletes the temporary file of a killed writer.
    ///
    /// - Returns: Whether body files may have lost their entries.
    func clearTemporary() throws(DatabaseError) -> Bool {
        unlink(temporaryPath)
        return try connection.statements().database.integer("SELECT EXISTS(SELECT 1 FROM orphan_candidate)") == 1
    }

    // MARK: Writing

    /// Writes a large body into its file, or beside the one that it is to replace.
    ///
    /// - Parameter replaces: Whether there is a file already.
    /// - Returns: The file.
    func writeBody(_ bytes: [UInt8], of id: Int64, replaces: Bool) throws -> String {
        let path = bodyPath(id)
        guard replaces else {
            try BodyFile.write(bytes, to: path, by: temporaryPath)
            return path
        }
        try placeSuccessor(id)
        let successor = BodyFile.successor(of: path)
        try BodyFile.write(bytes, to: successor, by: temporaryPath)
        return successor
    }

    /// Handles the new body that a crash may have left: it replaces the current one if the row describes it, and is
    /// deleted if the row describes the current one.
    private func placeSuccessor(_ id: Int64) throws(DatabaseError) {
        let path = bodyPath(id)
        guard FilePath.exists(BodyFile.successor(of: path)) else { return }
        let select = try connection.statements().database.prepare(
            "SELECT key,size,created,expires,validator,sum,tags FROM entry WHERE id=?")
        select.bind(id, at: 1)
        guard try select.step() else { return }
        let properties = select.withBytes(at: 0) { key in
            select.withBytes(at: 4) { validator in
                select.withBytes(at: 6) { tags in
                    EntryChecksum.properties(
                        key: key, created: select.integer(at: 2), expires: select.integerIfPresent(at: 3),
                        validator: validator, tags: tags)
                }
            }
        }
        let sum = UInt64(bitPattern: select.integer(at: 5)) ^ properties
        // What cannot be read now is found where it is, later.
        let found = try? BodyFile.find(path, size: Int(select.integer(at: 1))) { EntryChecksum.body($0, id: id) == sum }
        guard let found else { return }
        if found.isSuccessor { BodyFile.promoteSuccessor(of: path) } else { unlink(BodyFile.successor(of: path)) }
    }
}
