#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Names of temporary files, and the removal of those that dead writers left.
///
/// A living writer holds a `flock` on its temporary file, which the kernel releases when the process ends. A writer of
/// many files cannot hold as many descriptors: their names carry that of a ``TemporaryGroup``, whose file is locked as
/// long as the writer lives.
extension AtomicFile {
    /// Begins the name of every temporary file. No ``FileName/escaped(_:)`` name has `%` before anything but two
    /// hexadecimal digits, so a key can never be taken for one.
    package static let temporaryPrefix = ".%tmp-"

    /// The kinds of temporary files, by the letter behind the prefix. Earlier releases had no letter; theirs are locked
    /// some time after they appear, or not at all.
    enum TemporaryKind: Character {
        case locked = "L", group = "G", member = "M"
    }

    /// 64 random bits.
    static func randomSuffix() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }

    /// Removes the temporary files that crashed writers left in a directory (not below it).
    ///
    /// - Parameters:
    ///   - directory: Where to look.
    ///   - age: Files changed since then are left alone. Files still being written are never touched, in any process:
    ///     writers hold a lock on them.
    /// - Returns: How many were removed.
    @discardableResult
    public static func removeStaleTemporaries(
        in directory: String, olderThan age: Duration = .seconds(60)
    ) throws(FileError) -> Int {
        var removed = 0
        let limit = moment(before: age)
        for name in try Directory.names(in: directory) where name.hasPrefix(temporaryPrefix) {
            if removeIfDead(name, in: directory, changedBefore: limit) { removed += 1 }
        }
        return removed
    }

    /// Removes the temporary files whose writers are known to be dead, however young. Those of earlier releases, which
    /// do not tell, have to be a minute old.
    ///
    /// - Returns: How many were removed.
    @discardableResult
    package static func removeTemporariesOfDeadWriters(in directory: String) throws(FileError) -> Int {
        var removed = 0
        let limit = moment(before: .seconds(60))
        for name in try Directory.names(in: directory) where name.hasPrefix(temporaryPrefix) {
            let isTold = kind(of: name) != nil
            if removeIfDead(name, in: directory, changedBefore: isTold ? nil : limit) { removed += 1 }
        }
        return removed
    }

    /// In seconds since 1970. Not by time(2), whose clock may be behind that of the files by a tick.
    private static func moment(before age: Duration) -> Int { Int((WallClock.system.now - age).components.seconds) }

    private static func kind(of name: String) -> TemporaryKind? {
        name.dropFirst(temporaryPrefix.count).first.flatMap { TemporaryKind(rawValue: $0) }
    }

    private static func removeIfDead(_ name: String, in directory: String, changedBefore limit: Int?) -> Bool {
        let path = FilePath.join(directory, name)
        guard let file = lockedIfDead(path), let status = try? file.status(), Int(status.modified.tv_sec) <= limit ?? .max
        else { return false }
        if kind(of: name) == .member, let identifier = name.dropFirst(temporaryPrefix.count + 1).split(separator: "-").first
        {
            let group = FilePath.join(directory, TemporaryGroup.name(of: String(identifier)))
            // Without its file the group has come to its end, or its writer has died and somebody has tidied up.
            if FilePath.exists(group), lockedIfDead(group) == nil { return false }
        }
        // Under the lock: a writer that has made the file but not locked it yet waits, and finds out.
        return unlink(path) == 0
    }

    /// The file, locked; nil while its writer lives, or if there is no such file.
    private static func lockedIfDead(_ path: String) -> FileDescriptor? {
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
        guard let file = try? FileDescriptor(opening: path, flags: flags), let status = try? file.status(),
            status.st_mode & S_IFMT == S_IFREG, flock(file.number, LOCK_EX | LOCK_NB) == 0
        else { return nil }
        return file
    }

    /// Makes a temporary file and locks it, so that nobody takes it for one of a dead writer.
    ///
    /// - Parameter make: A path nobody has, each time it is called.
    static func createLocked(_ make: () -> String) throws(FileError) -> FileDescriptor {
        var attempts = 0
        while true {
            attempts += 1
            let path = make()
            do throws(FileError) {
                let file = try ActiveTemporaries.create(path)
                // Some network file systems have no locks; nobody can remove the file under one there either.
                while flock(file.number, LOCK_EX) != 0, errno == EINTR {}
                // Another process may have locked it first and taken it for a dead writer's.
                if try file.status().st_nlink > 0 || attempts >= 100 { return file }
            } catch .alreadyExists where attempts < 100 {}
        }
    }
}

/// Keeps the temporary files of one writer of many from being taken for those of a dead one.
package final class TemporaryGroup {
    private let file: FileDescriptor
    private let identifier: String

    /// Makes the group's file in the directory of the temporary files.
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

    /// Begins the names of its members.
    var memberPrefix: String {
        "\(AtomicFile.temporaryPrefix)\(AtomicFile.TemporaryKind.member.rawValue)\(identifier)-"
    }
}
