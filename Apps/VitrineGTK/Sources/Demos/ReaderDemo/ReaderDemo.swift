import DemoSupport
import Foundation
import VitrineGTK

/// A PDF document: a scrolling strip of small pages, and one large page.
@main
enum ReaderDemo {
    static func main() {
        let arguments = DemoArguments(
            usage: """
                Usage: vitrine-reader [options] FILE.pdf
                  --password TEXT   opens it
                  --enter TEXT      with --auto, enters it when the window asks for a password
                  --state DIR       where pages are kept (the user's cache; with --auto a new directory)
                """,
            options: ["--password", "--state", "--enter"])
        guard let path = arguments.rest.first else { DemoArguments.end("No document given. See --help.", 2) }
        let document = Document(path, arguments)
        var reader: Reader?
        Demo.run(path.split(separator: "/").last.map(String.init) ?? path, arguments, size: (900, 720)) { demo in
            let new = Reader(document, demo)
            demo.window.onClose {
                new.document.stop()
                reader = nil
            }
            reader = new
        } drive: { demo in
            guard let drive = reader.map({ ReaderDrive(demo, $0) }) else { return false }
            reader = nil
            return await drive.run()
        }
    }
}
