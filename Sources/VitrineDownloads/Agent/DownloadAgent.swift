import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The agent `vitrine-agent`, a process that carries downloads after their programs have ended.
///
/// ``DownloadManager``s with ``DownloadManager/Mode/agent`` start it on demand. This type stops and installs it.
public struct DownloadAgent: Sendable {
    /// The state of a running agent.
    package struct Info: Sendable, Hashable, Codable {
        /// The number of its process.
        package let process: Int32
        /// The number of downloads on its list.
        package let downloads: Int
        /// The number of downloads that run, wait or are delayed.
        package let unsettled: Int
    }

    private let configuration: DownloadManager.Configuration

    /// Creates the agent of the list in a configuration. It does not start a process.
    ///
    /// - Parameter configuration: The configuration of the managers that use the agent.
    public init(_ configuration: DownloadManager.Configuration = DownloadManager.Configuration()) {
        self.configuration = configuration.resolved()
    }

    /// Returns the state of the agent, or nil if it does not run. Does not start it.
    ///
    /// - Throws: ``DownloadError`` if the agent cannot be reached.
    package func info() async throws(DownloadError) -> Info? {
        guard let link = try await link() else { return nil }
        guard case .info(let info)? = try await link.ask(.info) else { return nil }
        return info
    }

    /// Stops the agent. The next one resumes its downloads. Programs that wait for it receive an error.
    ///
    /// - Returns: Whether it was running.
    /// - Throws: ``DownloadError/agentTimedOut(process:after:)`` if it does not end. Its description has the command
    ///   that ends the process.
    @discardableResult
    public func stop() async throws(DownloadError) -> Bool {
        let ended = AsyncPromise<Void>()
        guard let link = try await link(atEnd: { ended.fulfill(()) }) else { return false }
        guard try await link.ask(.stop) != nil else { return false }
        let end = Task {
            await ended.value()
        }
        guard let time = configuration.agentResponseTime else {
            await end.value
            return true
        }
        let process = link.process
        guard await end.hasEnded(within: time) else {
            link.close()
            throw .agentTimedOut(process: process, after: time)
        }
        return true
    }

    /// The path of its executable, or nil if it was not found.
    package var program: String? { configuration.agentProgram ?? HelperProgram.path(of: AgentLauncher.program) }

    /// Returns a connection to the agent, or nil if it does not run.
    func link(atEnd: @escaping @Sendable () -> Void = {}) async throws(DownloadError) -> AgentLink? {
        let thread = BlockingExecutor(threads: 1, name: "vitrine-connect")
        let channel = try await thread.run { [configuration] () throws(DownloadError) in
            let location = try AgentLocation(configuration)
            return try AgentLauncher(location: location, settings: configuration).connectIfRunning()
        }
        guard let channel else { return nil }
        let link = AgentLink(channel, responseTime: configuration.agentResponseTime)
        link.begin(receive: { _ in }, disconnected: atEnd)
        return link
    }
}

extension DownloadAgent.Info {
    init(_ statuses: [DownloadStatus]) {
        process = getpid()
        downloads = statuses.count
        unsettled = statuses.count { !$0.state.isSettled }
    }
}

/// The agent as a unit of the user's systemd, which starts it with the session and restarts it after a failure.
extension DownloadAgent {
    /// The name of the unit.
    package static let unitName = "vitrine-agent.service"

    /// Returns the text of the unit (systemd.service(5)).
    ///
    /// - Throws: ``DownloadError/agent(reason:)`` if the executable was not found.
    package func systemdUnit() throws(DownloadError) -> String {
        guard let program else {
            throw .agent(
                reason: "\(AgentLauncher.program) was not found; \(HelperProgram.advice(for: AgentLauncher.program))")
        }
        return """
            [Unit]
            Description=Downloads that continue after their programs have ended

            [Service]
            ExecStart=\(Self.quoted(program)) --idle never
            Restart=on-failure

            [Install]
            WantedBy=default.target

            """
    }

    /// Writes a systemd unit for the agent to the user's configuration. It does not enable the unit.
    ///
    /// - Returns: The path of the unit.
    /// - Throws: ``DownloadError/agent(reason:)`` if the executable was not found, or ``DownloadError/file(_:)``.
    public func install() async throws(DownloadError) -> String {
        let unit = try systemdUnit()
        let directory = FilePath.join(Directories.current.configuration, "systemd/user")
        let path = FilePath.join(directory, Self.unitName)
        return try await DownloadEngine.onFiles { () throws(FileError) in
            try Directory.create(directory)
            try AtomicFile.write(Array(unit.utf8), to: path)
            return path
        }
    }

    /// Returns a word in the quotes of systemd, with its special characters doubled.
    static func quoted(_ word: String) -> String {
        var text = "\""
        for character in word {
            switch character {
            case "\\", "\"": text += "\\" + String(character)
            case "%", "$": text += String(character) + String(character)
            default: text.append(character)
            }
        }
        return text + "\""
    }
}
