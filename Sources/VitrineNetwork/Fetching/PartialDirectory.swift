import VitrineCore

/// A directory with the files of interrupted transfers, each named by the digest of its key.
final class PartialDirectory: Sendable {
    /// Smaller bodies are not received into a file.
    static let smallestBody = 1_000_000
    /// Older files are removed.
    private static let longestWait = Duration.seconds(7 * 86_400)
    private static let known = Locked<[String: PartialDirectory]>([:])

    /// Returns the directory at a path, which the whole process shares.
    static func at(_ path: String) -> PartialDirectory {
        known.withLock { known in
            if let directory = known[path] { return directory }
            let directory = PartialDirectory(path)
            known[path] = directory
            return directory
        }
    }

    private let path: String
    /// The known files; nil until the directory has been read.
    private let files = Locked<Set<String>?>(nil)

    private init(_ path: String) { self.path = path }

    private func file(_ key: CacheKey) -> String {
        PartialFile.path(for: FilePath.join(path, Hexadecimal.text(SHA256Digest.digest(of: key.identity))))
    }

    /// Returns whether there may be a file for a key. Reads the directory once.
    func mayHave(_ key: CacheKey) async -> Bool {
        let known = files.withLock { $0 }
        if let known { return !known.isEmpty && known.contains(file(key)) }
        let found = await BlockingExecutor.shared.run { [path] in
            _ = try? PartialFile.removeAbandoned(in: path, olderThan: Self.longestWait)
            let names = (try? Directory.names(ofFilesIn: path)) ?? []
            return Set(names.map { FilePath.join(path, $0) })
        }
        files.withLock { $0 = ($0 ?? []).union(found) }
        return found.contains(file(key))
    }

    /// Opens the file of a key.
    ///
    /// - Returns: nil if another load has it open or it cannot be opened. The load then continues without a file.
    func open(_ key: CacheKey) async -> PartialFile? {
        let file = file(key)
        let opened = await BlockingExecutor.shared.run { [path] () -> PartialFile? in
            try? Directory.create(path)
            return (try? PartialFile.open(file, identity: key.identity)) ?? nil
        }
        if opened != nil { files.withLock { _ = $0?.insert(file) } }
        return opened
    }

    /// Releases a file.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - isDone: Whether to remove the file. Otherwise it is kept if it can be resumed.
    func close(_ file: PartialFile, isDone: Bool) async {
        if isDone { files.withLock { _ = $0?.remove(file.path) } }
        await BlockingExecutor.shared.run { isDone ? file.discard() : file.release() }
    }
}
