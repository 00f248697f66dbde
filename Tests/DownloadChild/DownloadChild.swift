// A program that downloads one file by a manager, for tests that kill it: the next one goes on where it was. It prints a
// line for each tenth of a second of progress, and the path at the end.
import Foundation
import VitrineCore
import VitrineDownloads

@main
enum DownloadChild {
    static func main() async {
        let words = CommandLine.arguments
        guard words.count == 5, let rate = Int(words[4]) else { exit(64) }
        var configuration = DownloadManager.Configuration()
        configuration.journalDirectory = words[1]
        configuration.directory = words[2]
        configuration.reservedSpace = .zero
        configuration.maximumRate = rate > 0 ? ByteCount(rate) : nil
        let manager = DownloadManager(configuration)
        do {
            let download = try await manager.start(words[3])
            report("started \(download.id)")
            Task {
                for await status in download.updates { report("received \(status.received)") }
            }
            report("file \(try await download.file)")
        } catch {
            report("error \(error)")
            exit(1)
        }
    }

    private static func report(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}
