// A small thumbnail first, then a large one, strictly one after the other; and the next time neither is made.
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-small-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }
let samples = CommandLine.arguments.dropFirst().first ?? "Samples"

let service = ThumbnailService(.init(root: directory))
let source = ImageSource(path: samples + "/lake.jpg")

func show() async throws {
    let sequence = ThumbnailSequence([
        ThumbnailRequest(source, size: PixelSize(60)), ThumbnailRequest(source, size: PixelSize(300)),
    ])
    service.enqueue(sequence)
    for try await stage in sequence.stages { print("stage \(stage.index):", stage.image.size) }
}

try await show()
print("made:", service.statistics.made)
try await show()
print("made:", service.statistics.made, "- from memory:", service.statistics.fromMemory)
// What is still to be written is, before the directory goes.
try await service.thumbnails.flush()
