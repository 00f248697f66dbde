// How long a program takes to reach the agent that carries downloads: one that runs, and one that has to be started.
// Usage: DownloadsBenchmark [path of vitrine-agent]
import Foundation
import VitrineDownloads

@main
enum DownloadsBenchmark {
    static func main() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-attach-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        var configuration = DownloadManager.Configuration()
        configuration.mode = .agent
        configuration.directory = directory.appending(path: "files").path
        configuration.journalDirectory = directory.appending(path: "journal").path
        configuration.agentDirectory = directory.appending(path: "socket").path
        if CommandLine.arguments.count > 1 { configuration.agentProgram = CommandLine.arguments[1] }
        let agent = DownloadAgent(configuration)

        var starts: [Duration] = []
        for _ in 0..<20 {
            starts.append(try await attach(configuration))
            _ = try await agent.stop()
        }
        let first = try await attach(configuration)
        var attachments: [Duration] = []
        for _ in 0..<500 { attachments.append(try await attach(configuration)) }
        _ = try await agent.stop()
        print("attached to an agent that runs: \(summary(attachments)), the first \(first)")
        print("attached to one that is started: \(summary(starts))")
    }

    /// Until a manager has heard which downloads there are.
    private static func attach(_ configuration: DownloadManager.Configuration) async throws -> Duration {
        let manager = DownloadManager(configuration)
        let start = ContinuousClock.now
        _ = try await manager.restore()
        let time = start.duration(to: .now)
        await manager.close()
        return time
    }

    private static func summary(_ times: [Duration]) -> String {
        let sorted = times.sorted()
        return "median \(sorted[sorted.count / 2]), 99 % \(sorted[sorted.count * 99 / 100])"
    }
}
