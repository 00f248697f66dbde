import DemoSupport
import Foundation
import VitrineCore
import VitrineImaging

/// Generates images and a document for the demos: `PaintSamples DIRECTORY COUNT`.
@main
enum PaintSamples {
    static func main() throws {
        let words = CommandLine.arguments
        guard words.count == 3, let count = Int(words[2]), count > 0 else {
            DemoArguments.end("Usage: PaintSamples DIRECTORY COUNT", 2)
        }
        let photos = path(words[1], "photos")
        try FileManager.default.createDirectory(atPath: photos, withIntermediateDirectories: true)
        for number in 1...count {
            let (width, height) = [(960, 640), (640, 960), (960, 540), (800, 800)][number % 4]
            let bytes = try PaintedPicture.landscape(number, width: width, height: height).encoded(
                as: .jpeg(quality: 0.85))
            try AtomicFile.write(bytes, to: path(photos, "painted-\(number).jpg"))
        }
        // A file that is not an image, and a truncated one. Their cells show a failure.
        try AtomicFile.write(Array("This is not an image.".utf8), to: path(photos, "painted-10-no-picture.jpg"))
        let whole = try PaintedPicture.landscape(count + 1, width: 960, height: 640).encoded(as: .jpeg(quality: 0.85))
        try AtomicFile.write(Array(whole.prefix(whole.count / 2)), to: path(photos, "painted-11-half.jpg"))
        guard PaintedDocument.write(pages: 60, to: path(words[1], "document.pdf")) else {
            DemoArguments.end("The document could not be written.", 1)
        }
    }
}
