// A small thumbnail first, then a large one, strictly one after the other; and the next time neither is made.
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-small-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }
let samples = CommandLine.arguments.dropFirst().first ?? "Samples"

let service = ImagePipeline(.init(root: directory))
let source = ImageFileSource(path: samples + "/lake.jpg")

func show() async throws {
    let sequence = ImageTaskSequence([
        ImageTask(ImageRequest(source, size: .fit(60))), ImageTask(ImageRequest(source, size: .fit(300))),
    ])
    service.start(sequence)
    for try await stage in sequence.stages { print("stage \(stage.index):", stage.image.size) }
}

try await show()
print("made:", service.statistics.made)
try await show()
print("made:", service.statistics.made, "- from memory:", service.statistics.fromMemory)
// What is still to be written is, before the directory goes.
try await service.cache.flush()
