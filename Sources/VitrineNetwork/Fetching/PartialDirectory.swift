import VitrineCore

/// A directory in which bodies that broke off wait for their rest, each under the digest of its key.
final class PartialDirectory: Sendable {
    /// Bodies of fewer bytes are not worth a file.
    static let smallestBody = 1_000_000
    /// What nobody has asked for the rest of for so long is removed.
    private static let longestWait = Duration.seconds(7 * 86_400)
    private static let known = Locked<[String: PartialDirectory]>([:])

    /// The one at a path, which all in the process share.
    static func at(_ path: String) -> PartialDirectory {
        known.withLock { known in
            if let directory = known[path] { return directory }
            let directory = PartialDirectory(path)
            known[path] = directory
            return directory
        }
    }

    private let path: String
    /// The files that are there, as far as this process knows; nil until it has looked.
    private let files = Locked<Set<String>?>(nil)

    private init(_ path: String) { self.path = path }

    private func file(_ key: CacheKey) -> String {
        PartialFile.path(for: FilePath.join(path, Hexadecimal.text(SHA256Digest.digest(of: key.identity))))
    }

    /// Whether the beginning of a key's body may be there. Looks at the disk once.
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

    /// Opens a key's file, with what is there.
    ///
    /// - Returns: nil if somebody else loads it, or no file can be had: loads go without.
    func open(_ key: CacheKey) async -> PartialFile? {
        let file = file(key)
        let opened = await BlockingExecutor.shared.run { [path] () -> PartialFile? in
            try? Directory.create(path)
            return (try? PartialFile.open(file, identity: key.identity)) ?? nil
        }
        if opened != nil { files.withLock { _ = $0?.insert(file) } }
        return opened
    }

    /// Gives a file up.
    ///
    /// - Parameter isDone: Whether nobody will want the rest; otherwise it stays if that can be asked for.
    func close(_ file: PartialFile, isDone: Bool) async {
        if isDone { files.withLock { _ = $0?.remove(file.path) } }
        await BlockingExecutor.shared.run { isDone ? file.discard() : file.release() }
    }
}
