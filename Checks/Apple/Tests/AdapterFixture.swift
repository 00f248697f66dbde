import Foundation
import TestSupport
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// A pipeline in a directory of its own, and images that are recognized by their colour.
struct AdapterFixture: Sendable {
    let directory: TemporaryDirectory
    let pipeline: ImagePipeline

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = ImagePipeline.Configuration(root: directory.path, concurrency: 4)
        configuration.memoryPressure = nil
        pipeline = ImagePipeline(configuration)
    }

    static func image(_ red: UInt8, size: PixelSize = PixelSize(400)) -> PixelImage {
        PixelImage(size: size, color: PixelColor(red: red, green: 0, blue: 0))
    }

    /// A request for an animation of two frames, with 20 and 90 of red, that each stay for 20 ms.
    static func blinking() throws -> ImageRequest {
        let encoder = try AnimationEncoder(as: .webp(quality: 1), isOpaque: true)
        for red in [20, 90] as [UInt8] { try encoder.add(image(red, size: PixelSize(16)), seconds: 0.02) }
        return ImageRequest(.bytes(try encoder.finish(), name: "blink"))
    }

    /// A request whose image is made when its gate is opened, at any size; nil to fail.
    func slow(_ key: CacheKey, _ red: UInt8?) -> (gate: SlowSource, request: ImageRequest) {
        let source = SlowSource(key: key) { _ in
            guard let red else { throw SourceFailure() }
            return Self.image(red)
        }
        return (source, ImageRequest(source))
    }

    /// A request whose image is in memory at a size.
    func stored(_ key: CacheKey, _ image: PixelImage, for geometry: TargetGeometry?) -> ImageRequest {
        var request = ImageRequest(SlowSource(key: key) { _ in throw SourceFailure() })
        if let geometry { request.resizing = geometry.resizer }
        pipeline.cache[pipeline.key(of: request, identity: key)] = image
        return request
    }
}

/// A source that waits for its gate.
struct SlowSource: BlockingImageSource {
    let key: CacheKey
    let gate = AsyncPromise<Void>()
    let make: @Sendable (RenderRequest) throws -> PixelImage

    init(key: CacheKey, make: @escaping @Sendable (RenderRequest) throws -> PixelImage) {
        self.key = key
        self.make = make
    }

    func open() { gate.fulfill(()) }
    var knownIdentity: CacheKey? { key }
    func identity() -> CacheKey { key }

    func image(_ request: RenderRequest) throws -> PixelImage {
        gate.wait()
        return try make(request)
    }
}

struct SourceFailure: Error, Equatable {}

/// Yields the main actor until a condition is true.
@MainActor
func wait(until isSo: () -> Bool) async {
    while !isSo() { await Task.yield() }
}
