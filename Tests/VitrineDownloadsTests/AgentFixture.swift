#if os(Linux)
import Foundation
import TestSupport
import VitrineCore
import VitrineDownloads

/// A list of downloads that an agent of its own carries, which ends with the fixture.
final class AgentFixture: Sendable {
    let files: TemporaryDirectory
    let journal: TemporaryDirectory
    /// Where the agent's socket and locks are.
    let sockets: TemporaryDirectory

    init() throws {
        files = try TemporaryDirectory()
        journal = try TemporaryDirectory()
        sockets = try TemporaryDirectory()
        // As agents want it: for its owner only.
        chmod(sockets.path, 0o700)
    }

    /// Ends the agent that a failed test leaves.
    deinit { for agent in agents { kill(agent, SIGKILL) } }

    func configuration(
        _ change: (inout DownloadManager.Configuration) -> Void = { _ in }
    ) -> DownloadManager.Configuration {
        var configuration = DownloadManager.Configuration()
        configuration.mode = .agent
        configuration.directory = files.path
        configuration.journalDirectory = journal.path
        configuration.agentDirectory = sockets.path
        configuration.agentProgram = ChildProcess.path(of: "vitrine-agent")
        configuration.agentIdleTime = .seconds(3600)
        // A busy machine may keep an agent from answering for longer than users would wait.
        configuration.agentResponseTime = .seconds(600)
        change(&configuration)
        return configuration
    }

    func manager(_ change: (inout DownloadManager.Configuration) -> Void = { _ in }) -> DownloadManager {
        DownloadManager(configuration(change))
    }

    var agent: DownloadAgent { DownloadAgent(configuration()) }

    /// The processes of this fixture's agents, by their command lines.
    var agents: [pid_t] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.filter { process in
            let line = FileManager.default.contents(atPath: "/proc/\(process)/cmdline") ?? Data()
            let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
            return words.first?.hasSuffix("vitrine-agent") == true && words.contains(journal.path)
        }
    }

    func bytes(_ name: String) -> [UInt8]? {
        FileManager.default.contents(atPath: files.file(name)).map { Array($0) }
    }
}

/// Returns when a process is gone.
func waitForEnd(of process: pid_t) {
    while true {
        let status = FileManager.default.contents(atPath: "/proc/\(process)/stat") ?? Data()
        // One that has ended, but not been looked after yet, is gone.
        let state = String(decoding: status, as: UTF8.self).split(separator: ")").last?.split(separator: " ").first
        if state == nil || state == "Z" || state == "X" { return }
        usleep(1000)
    }
}
#endif
