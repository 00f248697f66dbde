import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Where a disk cache's parts lie.
///
///     DIRECTORY/CACHEDIR.TAG
///     DIRECTORY/v3/lock, turn              the lock that writing processes take turns in
///     DIRECTORY/v3/current -> g-…          a symbolic link that names the generation in use
///     DIRECTORY/v3/g-…/cache.sqlite        with -wal and -shm beside it
///     DIRECTORY/v3/g-…/cache.sqlite-bodies medium bodies, in blocks (``BlockFile``)
///     DIRECTORY/v3/g-…/body                a large body that is being written
///     DIRECTORY/v3/g-…/files/cd/…cd        large bodies, by their entries' identifiers in hexadecimal
///     DIRECTORY/v3/g-…/files/cd/…cd.new    a body on its way to the place of the one before (``BodyFile``)
///
/// `v3` is the layout: another one takes another directory and never reads this one's bytes. In `v1` each format of a
/// `ValueCache` had a directory of its own: DIRECTORY/FORMAT/v1. `v2` had no tags. Both are deleted
/// (``oldLayouts(withFormats:)``). A database of `v3` without blocks gets them when it is opened; a program that knows
/// none replaces it.
///
/// A generation is never repaired or emptied in place, for SQLite's files must not move under an open connection:
/// another one takes its place by a rename of the link.
struct DiskLayout: Sendable {
    static let version = "v3"
    static let databaseName = "cache.sqlite"
    static let temporaryName = "body"
    static let generationPrefix = "g-"

    let directory: String
    let root: String
    let link: String

    init(directory: String) {
        self.directory = directory
        root = FilePath.join(directory, Self.version)
        link = root + "/current"
    }

    func generation(_ name: String) -> String { root + "/" + name }

    /// Where a large body lies, through the link.
    func path(of id: Int64) -> String { link + "/files/" + Self.fileName(id) }

    /// `ef/…ef` for an entry's identifier.
    static func fileName(_ id: Int64) -> String {
        let digits = String(UInt64(bitPattern: id), radix: 16)
        let name = String(repeating: "0", count: 16 - digits.utf8.count) + digits
        return "\(name.suffix(2))/\(name)"
    }

    /// The identifier in the name of a body or of its successor, if it is one in this folder.
    static func entryID(file name: String, in folder: String) -> Int64? {
        let digits = name.hasSuffix(BodyFile.successorSuffix) ? name.dropLast(4) : name[...]
        guard digits.utf8.count == 16, digits.hasSuffix(folder) else { return nil }
        return UInt64(digits, radix: 16).map { Int64(bitPattern: $0) }
    }

    /// Whether the permissions allow writing, as far as the system tells without an attempt.
    var mayBeWritten: Bool {
        let current = (try? currentGeneration()).map { generation($0) }
        let place = FilePath.exists(directory) ? directory : FilePath.parent(of: directory)
        let paths = [place, root, root + "/lock"] + (current.map { [$0, $0 + "/" + Self.databaseName] } ?? [])
        return paths.allSatisfy { access($0, W_OK) == 0 || errno != EACCES && errno != EROFS && errno != EPERM }
    }

    static func newGenerationName() -> String {
        generationPrefix + String(UInt64.random(in: .min ... .max), radix: 16)
    }

    /// Returns the name of the current generation; nil if there is none or the link has no valid name.
    func currentGeneration() throws(FileError) -> String? {
        var code: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 64) { buffer, count in
            let result = buffer.withMemoryRebound(to: CChar.self) { text in
                text.baseAddress.map { readlink(link, $0, text.count) } ?? 0
            }
            if result < 0 { code = errno }
            count = max(0, result)
        }
        switch code {
        case 0, ENOENT, ENOTDIR, EINVAL: break
        default: throw FileError(operation: "readlink", path: link, code: code)
        }
        let name = String(decoding: bytes, as: UTF8.self)
        // Only a name of ours: a link that leads elsewhere is not followed.
        guard name.hasPrefix(Self.generationPrefix), !name.utf8.contains(UInt8(ascii: "/")), bytes.count < 64 else {
            return nil
        }
        return name
    }

    /// Makes a generation the one in use, in one step.
    func setCurrent(_ name: String) throws(FileError) {
        let temporary = root + "/." + name
        unlink(temporary)
        guard symlink(name, temporary) == 0 else {
            throw FileError(operation: "symlink", path: temporary, code: errno)
        }
        // Something else at the place of the link, a directory, would stop the rename.
        guard rename(temporary, link) == 0 else {
            let code = errno
            guard code == EISDIR || code == ENOTEMPTY || code == EEXIST else {
                unlink(temporary)
                throw FileError(operation: "rename", path: link, code: code)
            }
            FileTree.remove(link)
            guard rename(temporary, link) == 0 else {
                throw FileError(operation: "rename", path: link, code: errno)
            }
            return
        }
    }

    /// Directories of the layouts before this one.
    ///
    /// - Parameter withFormats: Also those in the directories that each format had. Only where nothing but a cache's
    ///   formats can be: of another program's directory nothing is known.
    func oldLayouts(withFormats: Bool) -> [String] {
        var parents: [String] = []
        if withFormats {
            parents += ((try? Directory.names(in: directory)) ?? []).filter { !Self.isLayout($0) }
                .map { FilePath.join(directory, $0) }
        }
        let own = ["v1", "v2"].map { FilePath.join(directory, $0) }
        return (own + parents.map { FilePath.join($0, "v1") }).filter { path in
            ["lock", "turn"].allSatisfy { FilePath.exists(FilePath.join(path, $0)) }
        }
    }

    /// Deletes the files of an older layout, and its directory if it is then empty.
    func removeOldLayout(_ path: String) {
        FileTree.remove(path)
        let parent = FilePath.parent(of: path)
        guard parent != directory else { return }
        unlink(FilePath.join(parent, "CACHEDIR.TAG"))
        rmdir(parent)
    }

    /// Whether a name is that of a layout, of this or another release: `v` and a number.
    static func isLayout(_ name: String) -> Bool {
        name.utf8.first == UInt8(ascii: "v") && Int(name.dropFirst()) != nil
    }

    /// The generations that are not in use.
    func otherGenerations(than current: String?) -> [String] {
        let names = (try? Directory.names(in: root)) ?? []
        return names.filter { name in
            name != current && (name.hasPrefix(Self.generationPrefix) || name.hasPrefix("." + Self.generationPrefix))
        }
    }
}

/// Deletes and lists directories with all that is in them.
enum FileTree {
    /// Deletes a file or a directory with its contents, as far as possible. Symbolic links are deleted, not followed.
    static func remove(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            unlink(path)
            return
        }
        for name in (try? Directory.names(in: path)) ?? [] { remove(path + "/" + name) }
        rmdir(path)
    }

    /// When the file was last changed, in seconds since 1970; nil if there is none.
    static func changed(_ path: String) -> Int? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return Int(status.modified.tv_sec)
    }
}
