import VitrineCore

/// Where the agent of a list of downloads is found: its socket and its locks.
struct AgentLocation: Sendable, Hashable {
    /// The directory of the list, and which list in it.
    let journalDirectory: String, identifier: String
    /// A directory that only this user can enter.
    let directory: String

    /// Makes the directory if it is missing. Blocks.
    ///
    /// - Throws: ``DownloadError/file(_:)`` if it belongs to somebody else, or is open to others.
    init(_ configuration: DownloadManager.Configuration) throws(DownloadError) {
        journalDirectory = configuration.journalDirectory
        identifier = configuration.identifier
        do throws(FileError) {
            if let given = configuration.agent.directory {
                try Directory.create(given)
                try Directories.checkPrivate(given)
                directory = given
            } else {
                directory = try Directories.current.runtimeDirectory(for: "vitrine")
            }
        } catch {
            throw .file(error)
        }
    }

    private func path(_ ending: String) -> String {
        // Of any list, short enough for the name of a socket.
        let name = FileName.sha256("\(journalDirectory.utf8.count):\(journalDirectory)\(identifier)").prefix(16)
        return FilePath.join(directory, "agent-\(name).\(ending)")
    }

    /// Where it listens.
    var socket: String { path("socket") }
    /// Whoever holds this is the agent.
    var lock: String { path("lock") }
    /// Whoever holds this starts it.
    var startLock: String { path("start") }

    /// The list of an agent is another one than that of programs that do without.
    var journalIdentifier: String { Self.journalIdentifier(of: identifier) }

    static func journalIdentifier(of identifier: String) -> String { identifier + ".agent" }
}
