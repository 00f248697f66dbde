// Uses every product like a program. Its argument is the directory of the samples.
import Foundation
import Vitrine
import VitrineCache
import VitrineCompatibility
import VitrineCore
import VitrineDownloads
import VitrineImaging
import VitrineModels
import VitrineModelsEncryption
import VitrineNetwork
import VitrineStores
import VitrinePipeline
import VitrineViews
import VitrineWebPages

let samples = CommandLine.arguments.dropFirst().first ?? "Samples"
let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-client-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }

/// The names of failed checks.
var failed: [String] = []
@MainActor func check(_ name: String, _ body: () async throws -> Bool) async {
    do {
        if try await body() { return }
        failed.append(name)
    } catch {
        failed.append("\(name): \(error)")
    }
}

await check("Imaging") {
    let image = try await ImageDecoder().image(from: .file(samples + "/lake.jpg"), at: .fit(60))
    return try max(image.size.width, image.size.height) == 60 && !image.encoded(as: .png).isEmpty
}
await check("Imaging, by vitrine-worker") {
    let image = try await ImageDecoder().image(from: .file(samples + "/lake.heic"), at: .fit(60))
    return max(image.size.width, image.size.height) == 60
}
let service = ImagePipeline(.init(root: directory))
await check("Thumbnails, by vitrine-pdf") {
    try await service.image(for: ImageRequest(.pdf(samples + "/lake.pdf"), resizing: .fit(60))).size.width > 0
}
await check("Thumbnails, by vitrine-video") {
    try await service.image(for: ImageRequest(.video(samples + "/lake.mp4"), resizing: .fit(60))).size.width > 0
}
await check("Thumbnails, by vitrine-text") {
    let text = directory + "/notes.md"
    try "# Notes\n".write(toFile: text, atomically: true, encoding: .utf8)
    return try await service.image(for: ImageRequest(.text(text), resizing: .fit(60))).size.height == 60
}
let cache = ValueCache<PixelImage>(name: "images", configuration: CacheConfiguration(root: directory))
await check("Cache and Network") {
    let url = URL(filePath: samples + "/lake.jpg")
    let image = try await cache.value(from: url)
    try await cache.flush()
    cache.clearMemory()
    return try await cache.value(from: url).size == image.size
}
await check("Compatibility") {
    let url = URL(filePath: samples + "/lake.jpg")
    let image = try await cache.fetch(from: url).value
    return try await ObservedCache.images(in: cache).value(at: url).size == image.size
}
await check("Core") { ByteCount.megabytes(1).bytes == 1_000_000 && CacheKey("a", "b") != CacheKey("ab") }
await check("Models") {
    let store = try ObjectStore(at: directory + "/objects.sqlite")
    try await store.put("Ada", for: "name")
    return try store.object(for: "name") == "Ada"
}
await check("Stores") {
    let store = FileStore(.root(directory))
    try await store.save([1, 2, 3], as: "a.bin")
    return try await store.load("a.bin") == [1, 2, 3]
}
await check("Downloads") {
    var configuration = DownloadManager.Configuration()
    configuration.directory = directory + "/downloads"
    configuration.journalDirectory = directory + "/journal"
    let manager = DownloadManager(configuration)
    let restored = try await manager.restore()
    await manager.close()
    return restored.isEmpty
}

/// A view without a toolkit.
@MainActor final class Cell: ImageTarget {
    var image: PixelImage?
    private(set) lazy var binding = ImageBinding(self)
    func show(_ image: PixelImage?, transition: ImageTransition) { self.image = image }
    var targetGeometry: TargetGeometry? { TargetGeometry(width: 30, height: 30, scale: 2, mode: .fill) }
}
await check("Views") {
    let cell = Cell()
    await withCheckedContinuation { continuation in
        let request = ImageRequest(URL(filePath: samples + "/lake.jpg"))
        cell.binding.set(request, in: service) { _ in continuation.resume() }
    }
    return cell.image.map { min($0.size.width, $0.size.height) } == 60
}
try await cache.flush()
try await service.cache.flush()

for name in failed { print("failed:", name) }
if failed.isEmpty { print("every product works") }
exit(failed.isEmpty ? 0 : 1)
