// A program that downloads one file by a manager, for tests that kill it: the next one goes on where it was. It prints
// how far it has come, and the path at the end. Its words: the directories of journal and files, the address, and as
// `name=value` the directory of the agent's socket if an agent is to do it, the number of connections, and by how many
// seconds the clock is wrong.
import Foundation
import VitrineCore
import VitrineDownloads

@main
enum DownloadChild {
    static func main() async {
        let words = CommandLine.arguments
        guard words.count >= 4 else { exit(64) }
        let options = Dictionary(
            words.dropFirst(4).map { ($0.prefix { $0 != "=" }, $0.drop { $0 != "=" }.dropFirst()) },
            uniquingKeysWith: { $1 })
        var configuration = DownloadManager.Configuration()
        configuration.journalDirectory = words[1]
        configuration.directory = words[2]
        configuration.reservedSpace = .zero
        if let directory = options["agent"] {
            configuration.mode = .agent
            configuration.agent.directory = String(directory)
        }
        if let error = options["clock"].flatMap({ Int($0) }) {
            configuration.clock = WallClock { WallClock.system.now + .seconds(error) }
        }
        let manager = DownloadManager(configuration)
        do {
            guard let url = URL(string: words[3]) else { exit(64) }
            var request = DownloadRequest(url)
            request.connections = options["connections"].flatMap { Int($0) } ?? 1
            let download = try await manager.start(request)
            report("started \(download.id)")
            let following = Task {
                for await status in download.updates { report("received \(status.received)") }
            }
            let path = try await download.file
            await following.value
            report("file \(path)")
        } catch {
            report("error \(error.code) \(error)")
            exit(1)
        }
    }

    private static func report(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}
