/// The command line of `vitrine-agent`. Reading it makes and opens nothing.
package struct AgentArguments: Sendable {
    private var configuration: DownloadManager.Configuration

    /// The words that start the agent of a list.
    init(location: AgentLocation, idleTime: Duration?) {
        configuration = DownloadManager.Configuration()
        configuration.journalDirectory = location.journalDirectory
        configuration.identifier = location.identifier
        configuration.agent.directory = location.directory
        configuration.agent.idleTime = idleTime
    }

    /// Reads the words that ``words`` returns. An absent option has the default of ``DownloadManager/Configuration``.
    ///
    /// - Returns: nil for any other command line.
    package init?(_ words: [String]) {
        configuration = DownloadManager.Configuration()
        var rest = words[...]
        while let name = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            switch name {
            case "--journal": configuration.journalDirectory = value
            case "--identifier": configuration.identifier = value
            case "--directory": configuration.agent.directory = value
            case "--idle" where value == "never": configuration.agent.idleTime = nil
            case "--idle":
                guard let milliseconds = Int(value), milliseconds >= 0 else { return nil }
                configuration.agent.idleTime = .milliseconds(milliseconds)
            default: return nil
            }
        }
    }

    /// The time without work after which the agent ends; nil for never.
    var idleTime: Duration? { configuration.agent.idleTime }

    /// The socket and locks of the agent. Makes their directory if it is missing. Blocks.
    func location() throws(DownloadError) -> AgentLocation { try AgentLocation(configuration) }

    /// The command line without the name of the program.
    package var words: [String] {
        var words = ["--journal", configuration.journalDirectory, "--identifier", configuration.identifier]
        if let directory = configuration.agent.directory { words += ["--directory", directory] }
        return words + ["--idle", idleTime.map { "\(Int(min(max(0, $0 / .milliseconds(1)), 1e15)))" } ?? "never"]
    }
}
