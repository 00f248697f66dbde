import Foundation
import TestSupport
import VitrineDatabase

/// A cache's directory as files, for tests that look at or damage what is behind the API.
enum CacheFiles {
    /// Paths below `directory` of all its files, sorted.
    static func all(in directory: String) -> [String] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: directory)) ?? []).sorted().filter {
            var info = stat()
            return lstat("\(directory)/\($0)", &info) == 0 && info.st_mode & S_IFMT == S_IFREG
        }
    }

    /// Paths below `directory` of all its files and symbolic links, sorted.
    static func allAndLinks(in directory: String) -> [String] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: directory)) ?? []).sorted().filter {
            var info = stat()
            return lstat("\(directory)/\($0)", &info) == 0 && info.st_mode & S_IFMT != S_IFDIR
        }
    }

    static func size(_ path: String) -> Int {
        var info = stat()
        return lstat(path, &info) == 0 ? Int(info.st_size) : 0
    }

    /// Bytes that a file takes on the disk, without its holes.
    static func sizeOnDisk(_ path: String) -> Int {
        var info = stat()
        return lstat(path, &info) == 0 ? Int(info.st_blocks) * 512 : 0
    }

    /// Bytes of all files below `directory`, or of those with a name.
    static func bytes(of name: String? = nil, in directory: String) -> Int {
        all(in: directory).filter { name == nil || $0.split(separator: "/").last.map(String.init) == name }
            .reduce(0) { $0 + size("\(directory)/\($1)") }
    }

    /// The generations of a cache, in use or not.
    static func generations(in directory: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: "\(directory)/v3")) ?? []).filter {
            $0.hasPrefix("g-") || $0.hasPrefix(".g-")
        }
    }

    /// Bytes of bodies that are files of their own.
    static func bodyFileBytes(in directory: String) -> Int {
        all(in: directory).filter { $0.contains("/files/") }.reduce(0) { $0 + size("\(directory)/\($1)") }
    }

    /// The database in use; nil if there is none.
    static func database(in directory: String) -> String? {
        let path = "\(directory)/v3/current/cache.sqlite"
        return size(path) > 0 ? path : nil
    }

    /// What SQLite finds wrong with the database in use.
    static func damage(in directory: String) throws -> [String] {
        try database(in: directory).map { try Database(path: $0).findDamage() } ?? []
    }

    /// Returns when no connection of this process is open any more, and no log is left.
    static func waitUntilClosed(_ directory: String) throws {
        try waitUntil("all connections to the cache closed") {
            // A directory in which a file is deleted just then cannot be listed: it is not at rest.
            guard let files = try? FileManager.default.subpathsOfDirectory(atPath: directory) else { return false }
            let logs = files.filter { $0.hasSuffix("-wal") || $0.hasSuffix("-shm") }
            for log in logs { try DatabaseFiles.waitUntilClosed("\(directory)/\(log.dropLast(4))") }
            return logs.isEmpty
        }
    }
}
