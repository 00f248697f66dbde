import CGTK
import DemoSupport
import Foundation
import VitrineGTK

/// Thousands of images from directories, or from a list of URLs.
@main
enum GridDemo {
    static func main() {
        let arguments = DemoArguments(
            usage: """
                Usage: vitrine-grid [options] FOLDER...
                  --urls FILE       show the addresses in a file, one a line, in place of folders
                  --columns N       at most so many beside each other (6)
                  --memory MB       what images may occupy in memory (64)
                  --state DIR       where thumbnails are kept (the user's cache; with --auto a new directory)
                """,
            options: ["--urls", "--columns", "--memory", "--state"])
        let library = PhotoLibrary(arguments)
        guard !library.identifiers.isEmpty else { DemoArguments.end("There are no images to show.", 1) }
        var grid: PhotoGrid?
        Demo.run("\(library.identifiers.count) images", arguments, size: (1000, 720)) { demo in
            let new = PhotoGrid(library, columns: arguments.number("--columns", default: 6), demo)
            demo.window.onClose { grid = nil }
            grid = new
        } drive: { demo in
            guard let drive = grid.map({ GridDrive(demo, $0) }) else { return false }
            grid = nil
            return await drive.run()
        }
    }
}
