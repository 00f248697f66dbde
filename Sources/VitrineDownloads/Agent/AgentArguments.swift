/// The command line of `vitrine-agent`.
package struct AgentArguments: Sendable {
    let location: AgentLocation
    /// nil for never.
    let idleTime: Duration?

    init(location: AgentLocation, idleTime: Duration?) {
        self.location = location
        self.idleTime = idleTime
    }

    /// Reads what ``words`` writes; what is left out has the defaults of ``DownloadManager/Configuration``.
    ///
    /// - Returns: nil for anything else.
    init?(_ words: [String]) throws(DownloadError) {
        var configuration = DownloadManager.Configuration()
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
        self.init(location: try AgentLocation(configuration), idleTime: configuration.agent.idleTime)
    }

    /// As they are passed on.
    var words: [String] {
        [
            "--journal", location.journalDirectory, "--identifier", location.identifier, "--directory",
            location.directory, "--idle", idleTime.map { "\(Int($0 / .milliseconds(1)))" } ?? "never",
        ]
    }
}
