import DemoSupport
import Foundation
import VitrineDownloads
import VitrineGTK

/// A list of downloads with their progress. Downloads resume when the program starts again.
///
/// `--auto` runs the program twice with a local server, and kills the first run halfway.
@main
enum DownloadsDemo {
    static func main() {
        let arguments = DemoArguments(
            usage: """
                Usage: vitrine-downloads [options] [URL...]
                  --to DIR          where files go (the user's downloads)
                  --state DIR       where the list is kept (the user's data)
                  --rate KB         at most so many kilobytes a second, all together
                  --agent           lets vitrine-agent carry them, which goes on without this program
                """,
            options: ["--to", "--state", "--rate", "--run"], flags: ["--agent"])
        if arguments.has("--auto"), arguments["--run"] == nil { exit(Relaunch(arguments).run()) }
        let model = DownloadModel(arguments)
        var view: DownloadView?
        Demo.run("Downloads", arguments, size: (640, 520)) { demo in
            view = DownloadView(model, demo)
            demo.window.onClose { view = nil }
        } drive: { demo in
            guard let drive = view.map({ DownloadDrive(demo, $0) }) else { return false }
            view = nil
            return await drive.run()
        }
    }
}
