// Several URLs of one image, best first: the best cached image is shown until the best one is loaded.
import ExampleServer
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-list-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }

let server = try ExampleServer { request in
    let side = ["/large.png": 400, "/medium.png": 100, "/small.png": 20][request.path] ?? 1
    guard let picture = try? PixelImage(size: PixelSize(side), color: .white).encoded(as: .png) else { return .status(500) }
    return .body(picture, type: "image/png")
}
let (large, medium, small) = (server.url("/large.png"), server.url("/medium.png"), server.url("/small.png"))
let cache = ValueCache<PixelImage>(name: "pictures", configuration: CacheConfiguration(root: directory))
let images = ObservedCache.images(in: cache)

// A list has shown the small image before. The medium one was never loaded.
_ = try await images.value(at: small)
for try await step in images.values(at: [large, medium, small]) {
    print(step.url.lastPathComponent, step.value.size, step.isBest ? "best" : "until a better one is there")
}
print("asked for:", server.requests.map { String($0.path.dropFirst()) }.joined(separator: " "))
// Finish pending writes before the directory is removed.
try await cache.flush()
