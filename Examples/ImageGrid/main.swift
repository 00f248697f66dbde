// A grid without a UI toolkit: cells that are reused during a load show only the image that was set last.
import ExampleServer
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-grid-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }

/// A cell of 100 points on a display of two pixels a point.
@MainActor
final class Cell: ImageTarget {
    private(set) var image: PixelImage?
    private(set) var faded = false
    private(set) lazy var binding = ImageBinding(self)

    func show(_ image: PixelImage?, transition: ImageTransition) {
        self.image = image
        faded = transition != .none
    }

    var targetGeometry: TargetGeometry? { TargetGeometry(width: 100, height: 100, scale: 2, mode: .fill) }
}

// Images that differ in their colour.
let server = try ExampleServer { request in
    let number = UInt8(request.path.dropFirst()) ?? 0
    guard let picture = try? PixelImage(size: PixelSize(300), color: PixelColor(red: number, green: 0, blue: 0)).encoded(as: .png)
    else { return .status(500) }
    return .body(picture, type: "image/png")
}
let urls = (0..<200).map { server.url("/\($0)") }
let pipeline = ImagePipeline(ImagePipeline.Configuration(root: directory))

// Ten pages scroll past. Only the last one stays.
let cells = (0..<12).map { _ in Cell() }
let (arrivals, arrived) = AsyncStream.makeStream(of: Int.self)
for page in 0..<10 {
    for (index, cell) in cells.enumerated() {
        cell.binding.prepareForReuse()
        cell.binding.set(ImageRequest(urls[page * 12 + index]), in: pipeline) { _ in arrived.yield(page) }
    }
}
var told: [Int] = []
for await page in arrivals {
    told.append(page)
    if told.count == cells.count { break }
}
let right = cells.enumerated().filter { index, cell in cell.image?[100, 100].red == UInt8(108 + index) }
print("cells that show their picture:", right.count, "of", cells.count)
print("told of pages that have passed:", told.filter { $0 != 9 }.count)
print("size:", cells[0].image?.size.description ?? "none", "- faded in:", cells.filter(\.faded).count)

// After scrolling away and back, all images come from memory immediately, without a fade.
for (index, cell) in cells.enumerated() {
    cell.binding.prepareForReuse()
    cell.binding.set(ImageRequest(urls[108 + index]), in: pipeline)
}
print("back at once:", cells.filter { $0.image != nil }.count, "- faded in:", cells.filter(\.faded).count)
// Finish pending writes before the directory is removed.
try await pipeline.cache.flush()
try await pipeline.originals.flush()
