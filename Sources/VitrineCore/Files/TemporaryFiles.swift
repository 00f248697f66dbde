#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The names of temporary files, and the removal of files that crashed writers left.
///
/// A live writer holds a `flock` on its temporary file, which the kernel releases when the process ends. A writer of
/// many files cannot hold as many descriptors. The names of its files contain the name of a ``TemporaryGroup`` instead,
/// whose file is locked as long as the writer lives.
extension AtomicFile {
    /// The prefix of every temporary file. ``FileName/escaped(_:)`` writes `%` only before two hexadecimal digits, so
    /// the name of a key never has this prefix.
    package static let temporaryPrefix = ".%tmp-"

    /// The kinds of temporary files, by the letter after the prefix. Files of earlier releases have no letter; they are
    /// locked some time after they appear, or not at all.
    enum TemporaryKind: Character {
        case locked = "L", group = "G", member = "M"
    }

    /// Returns 64 random bits as text.
    static func randomSuffix() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }

    /// Removes the temporary files that crashed writers left in a directory, but not in its subdirectories. Blocks.
    ///
    /// - Parameters:
    ///   - directory: The directory.
    ///   - age: Files that changed more recently are kept. Files that any process is writing are always kept, because
    ///     their writers hold a lock on them.
    /// - Returns: The number of removed files.
    @discardableResult
    package static func removeStaleTemporaries(
        in directory: String, olderThan age: Duration = .seconds(60)
    ) throws(FileError) -> Int {
        var removed = 0
        let limit = moment(before: age)
        for name in try Directory.names(in: directory, prefix: temporaryPrefix) {
            if removeIfDead(name, in: directory, changedBefore: limit) { removed += 1 }
        }
        return removed
    }

    /// Removes the temporary files of dead writers, even recent ones. Files of earlier releases
    /// have no such mark and must be a minute old.
    ///
    /// - Returns: The number of removed files.
    @discardableResult
    package static func removeTemporariesOfDeadWriters(in directory: String) throws(FileError) -> Int {
        removeTemporariesOfDeadWriters(among: try Directory.names(in: directory, prefix: temporaryPrefix), in: directory)
    }

    /// Does the same for names that were found in the directory, of which the others are ignored.
    @discardableResult
    package static func removeTemporariesOfDeadWriters(among names: some Sequence<String>, in directory: String) -> Int {
        var removed = 0
        let limit = moment(before: .seconds(60))
        for name in names where name.hasPrefix(temporaryPrefix) {
            let isMarked = kind(of: name) != nil
            if removeIfDead(name, in: directory, changedBefore: isMarked ? nil : limit) { removed += 1 }
        }
        return removed
    }

    /// Returns a time in seconds since 1970. The clock of time(2) may lag behind that of the files by a tick.
    private static func moment(before age: Duration) -> Int { Int((WallClock.system.now - age).components.seconds) }

    private static func kind(of name: String) -> TemporaryKind? {
        name.dropFirst(temporaryPrefix.count).first.flatMap { TemporaryKind(rawValue: $0) }
    }

    private static func removeIfDead(_ name: String, in directory: String, changedBefore limit: Int?) -> Bool {
        let path = FilePath.join(directory, name)
        guard let file = lockedIfDead(path), let status = try? file.status(),
            Int(status.modified.tv_sec) <= limit ?? .max
        else { return false }
        if kind(of: name) == .member,
            let identifier = name.dropFirst(temporaryPrefix.count + 1).split(separator: "-").first {
            let group = FilePath.join(directory, TemporaryGroup.name(of: String(identifier)))
            // Without its file the group has ended, or its writer has died and another process has removed the file.
            if FilePath.exists(group), lockedIfDead(group) == nil { return false }
        }
        // Under the lock: a writer that has created the file but not locked it yet waits, and then sees the removal.
        return unlink(path) == 0
    }

    /// Returns the locked file, or nil while its writer lives or if it does not exist.
    private static func lockedIfDead(_ path: String) -> FileDescriptor? {
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
        guard let file = try? FileDescriptor(opening: path, flags: flags), let status = try? file.status(),
            status.st_mode & S_IFMT == S_IFREG, flock(file.number, LOCK_EX | LOCK_NB) == 0
        else { return nil }
        return file
    }

    /// Creates a temporary file and locks it, which marks its writer as alive.
    ///
    /// - Parameter make: Returns a new path at each call.
    static func createLocked(_ make: () -> String) throws(FileError) -> FileDescriptor {
        var attempts = 0
        while true {
            attempts += 1
            let path = make()
            do throws(FileError) {
                let file = try ActiveTemporaries.create(path)
                // Some network file systems have no locks; no process can remove the file under a lock there either.
                while flock(file.number, LOCK_EX) != 0, errno == EINTR {}
                // Another process may have locked it first and removed it as a dead writer's file.
                do throws(FileError) {
                    if try file.status().st_nlink > 0 || attempts >= 100 { return file }
                } catch {
                    unlink(path)
                    ActiveTemporaries.forget(path)
                    throw error
                }
            } catch .alreadyExists where attempts < 100 {}
        }
    }
}

/// Marks the temporary files of a writer of many files as those of a live writer.
package final class TemporaryGroup {
    private let file: FileDescriptor
    private let identifier: String

    /// Creates the group's file in the directory of the temporary files.
    package init(in directory: String) throws(FileError) {
        var identifier = ""
        file = try AtomicFile.createLocked {
            identifier = AtomicFile.randomSuffix()
            return FilePath.join(directory, Self.name(of: identifier))
        }
        self.identifier = identifier
    }

    deinit {
        unlink(file.path)
        ActiveTemporaries.forget(file.path)
    }

    static func name(of identifier: String) -> String {
        "\(AtomicFile.temporaryPrefix)\(AtomicFile.TemporaryKind.group.rawValue)\(identifier)"
    }

    /// The prefix of the names of its members.
    var memberPrefix: String {
        "\(AtomicFile.temporaryPrefix)\(AtomicFile.TemporaryKind.member.rawValue)\(identifier)-"
    }
}
