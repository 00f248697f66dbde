import DemoSupport
import Foundation
import VitrineGTK

/// A store of images by name, with drag and drop, renaming and deletion.
@main
enum ShelfDemo {
    static func main() {
        let arguments = DemoArguments(
            usage: """
                Usage: vitrine-shelf [options] [FILE...]
                  --store DIR       where images are kept (Shelf in the user's documents; with --auto a new directory)
                Drop files onto the window, or name them here, to keep them.
                """,
            options: ["--store"])
        let shelf = Shelf(arguments)
        var view: ShelfView?
        Demo.run("Shelf", arguments, size: (760, 560)) { demo in
            let new = ShelfView(shelf, demo)
            demo.window.onClose {
                shelf.stop()
                view = nil
            }
            view = new
        } drive: { demo in
            guard let drive = view.map({ ShelfDrive(demo, view: $0, files: arguments.rest) }) else { return false }
            view = nil
            return await drive.run()
        }
    }
}
