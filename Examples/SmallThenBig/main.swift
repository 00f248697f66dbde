// A small thumbnail, then a large one, always in this order. The next time, both come from the cache.
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-small-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }
let samples = CommandLine.arguments.dropFirst().first ?? "Samples"

let service = ImagePipeline(.init(root: directory))
let source = BuiltInSource.file(samples + "/lake.jpg")

func show() async throws {
    let sequence = ImageTaskSequence([
        ImageTask(ImageRequest(source, resizing: .fit(60))), ImageTask(ImageRequest(source, resizing: .fit(300))),
    ])
    service.start(sequence)
    for try await stage in sequence.stages { print("stage \(stage.index):", stage.image.size) }
}

try await show()
print("made:", service.statistics.made)
try await show()
print("made:", service.statistics.made, "- from memory:", service.statistics.fromMemory)
// Finish pending writes before the directory is removed.
try await service.cache.flush()
