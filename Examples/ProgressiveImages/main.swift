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
let pipeline = ImagePipeline(ImagePipeline.Configuration(root: directory))

/// A view without a toolkit.
@MainActor
final class Picture: ImageTarget {
    private(set) lazy var binding = ImageBinding(self)

    func show(_ image: PixelImage?, transition: ImageTransition) { print("shown:", image?.size.description ?? "nothing") }
}

// A list has shown the small image before. The medium one was never loaded.
_ = try await pipeline.image(for: small)
let picture = Picture()
await withCheckedContinuation { continuation in
    let requests = [large, medium, small].map { ImageRequest($0) }
    picture.binding.set(alternatives: requests, in: pipeline) { _ in
        continuation.resume()
    } onFailure: { error in
        print("failed:", error)
        continuation.resume()
    }
}
print("asked for:", server.requests.map { String($0.path.dropFirst()) }.joined(separator: " "))
// Finish pending writes before the directory is removed.
try await pipeline.cache.flush()
try await pipeline.originals.flush()
