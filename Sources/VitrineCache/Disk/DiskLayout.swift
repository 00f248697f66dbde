#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// Where a disk cache's parts lie.
///
///     DIRECTORY/CACHEDIR.TAG
///     DIRECTORY/v1/lock, turn              the lock that writing processes take turns in
///     DIRECTORY/v1/current -> g-…          a symbolic link that names the generation in use
///     DIRECTORY/v1/g-…/cache.sqlite        with -wal and -shm beside it
///     DIRECTORY/v1/g-…/files/ab/abcd…      large bodies, by the key's hash in hexadecimal
///     DIRECTORY/v1/g-…/files/ab/abcd….new  a body on its way to the place of the one before (``BodyFile``)
///
/// `v1` is the format: a later one takes another directory and never reads this one's bytes. A generation is never
/// repaired or emptied in place, for SQLite's files must not move under an open connection: another one takes its
/// place by a rename of the link.
struct DiskLayout: Sendable {
    static let format = "v1"
    static let databaseName = "cache.sqlite"
    static let generationPrefix = "g-"

    let directory: String
    let root: String
    let link: String

    init(directory: String) {
        self.directory = directory
        root = FilePath.join(directory, Self.format)
        link = root + "/current"
    }

    func generation(_ name: String) -> String { root + "/" + name }

    /// Where a large body lies, through the link.
    func path(forKey key: CacheKey) -> String {
        link + "/files/" + Self.fileName(Int64(bitPattern: key.hash))
    }

    /// `ab/abcdef…` for an entry's identifier.
    static func fileName(_ id: Int64) -> String {
        let digits = String(UInt64(bitPattern: id), radix: 16)
        let name = String(repeating: "0", count: 16 - digits.utf8.count) + digits
        return "\(name.prefix(2))/\(name)"
    }

    static func newGenerationName() -> String {
        generationPrefix + String(UInt64.random(in: .min ... .max), radix: 16)
    }

    /// The generation in use; nil if there is none, or if what is there is no such name.
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

    /// The generations that are not in use.
    func otherGenerations(than current: String?) -> [String] {
        let names = (try? Directory.names(in: root)) ?? []
        return names.filter { name in
            name != current && (name.hasPrefix(Self.generationPrefix) || name.hasPrefix("." + Self.generationPrefix))
        }
    }
}
