// The snippets of README.md and of the guide to GTK. Scripts/check-snippets compares them.
// They are compiled and not run.
import CGTK
import Foundation
import VitrineGTK
import VitrinePipeline

enum Photos {
    @MainActor static func main() {
        guard gtk_init_check() != 0, MainLoop.install() else { return }
        let pipeline = ImagePipeline()
        let paths = Array(CommandLine.arguments.dropFirst())
        let list = ItemList(.grid(columns: 6), of: ListItems(paths)) { PhotoCell(pipeline) }
        let window = Window("Photos", width: 1000, height: 720)
        window.setContent(list.scroller)
        window.onClose { MainLoop.quit() }
        window.present()
        withExtendedLifetime(window) { MainLoop.run() }
    }
}

private final class PhotoCell: ListCell {
    let picture = Picture(fit: .cover)
    let pipeline: ImagePipeline
    var root: Widget { picture }

    init(_ pipeline: ImagePipeline) {
        self.pipeline = pipeline
        picture.setSizeRequest(140, 105)
    }

    func bind(_ path: String) { picture.load(ImageRequest(.file(path)), in: pipeline) }
    func unbind() { picture.prepareForReuse() }
}

enum RemotePhotos {
    @MainActor static func main() throws {
        guard gtk_init_check() != 0, MainLoop.install(), CommandLine.arguments.count > 1 else { return }
        let text = try String(contentsOfFile: CommandLine.arguments[1], encoding: .utf8)
        let addresses = text.split(separator: "\n").map(String.init)
        let list = ItemList(.grid(columns: 6), of: ListItems(addresses)) { RemoteCell() }
        let window = Window("Photos", width: 1000, height: 720)
        window.setContent(list.scroller)
        window.onClose { MainLoop.quit() }
        window.present()
        withExtendedLifetime(window) { MainLoop.run() }
    }
}

private final class RemoteCell: ListCell {
    let picture = Picture(fit: .cover)
    var root: Widget { picture }

    init() {
        picture.setSizeRequest(140, 105)
        picture.retryDelay = { _, attempt in attempt < 4 ? .seconds(attempt) : nil }
    }

    func bind(_ address: String) { picture.load(URL(string: address).map { ImageRequest($0) }) }
    func unbind() { picture.prepareForReuse() }
}

@MainActor private func guide() {
    guard gtk_init_check() != 0, MainLoop.install() else { return }
    let picture = Picture(fit: .cover)
    picture.load(ImageRequest(.file("photo.jpg")))
}
