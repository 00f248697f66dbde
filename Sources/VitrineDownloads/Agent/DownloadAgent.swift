#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// The process that carries downloads on when the programs that asked for them have ended: `vitrine-agent`.
///
/// ``DownloadManager``s with ``DownloadManager/Mode/agent`` start it when they need it; this is for looking at it and
/// for ending it.
public struct DownloadAgent: Sendable {
    /// What an agent does.
    public struct Info: Sendable, Hashable, Codable {
        /// Its process.
        public let process: Int32
        /// How many downloads are on its list.
        public let downloads: Int
        /// How many of them run, wait or are delayed.
        public let unsettled: Int
    }

    private let configuration: DownloadManager.Configuration

    /// The agent of the list that a configuration names.
    public init(_ configuration: DownloadManager.Configuration = DownloadManager.Configuration()) {
        self.configuration = configuration.resolved()
    }

    /// What it does; nil if it does not run. Does not start it.
    public func info() async throws(DownloadError) -> Info? {
        guard let link = try await link() else { return nil }
        guard case .info(let info)? = try await link.ask(.info) else { return nil }
        return info
    }

    /// Ends it: what runs is gone on with by the next one. Programs that wait for it get an error.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: ``DownloadError/agentTimedOut(process:after:)`` if it does not end, with the command that ends it.
    @discardableResult
    public func stop() async throws(DownloadError) -> Bool {
        let ended = Promise<Void>()
        guard let link = try await link(atEnd: { ended.fulfill(()) }) else { return false }
        guard try await link.ask(.stop) != nil else { return false }
        let end = Task {
            let thread = BlockingExecutor(threads: 1, name: "vitrine-stop")
            await thread.run { ended.wait() }
        }
        guard let time = configuration.agent.responseTime else {
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

    /// The path of its program; nil if that was not found.
    public var program: String? { configuration.agent.program ?? HelperProgram.path(of: AgentLauncher.program) }

    private func link(atEnd: @escaping @Sendable () -> Void = {}) async throws(DownloadError) -> AgentLink? {
        let thread = BlockingExecutor(threads: 1, name: "vitrine-connect")
        let channel = try await thread.run { [configuration] () throws(DownloadError) in
            let location = try AgentLocation(configuration)
            return try AgentLauncher(location: location, settings: configuration.agent).connectIfRunning()
        }
        guard let channel else { return nil }
        let link = AgentLink(channel, responseTime: configuration.agent.responseTime)
        link.begin(hear: { _ in }, lose: atEnd)
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
