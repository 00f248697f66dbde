import TestSupport
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineViews

/// A target without a toolkit that records the images it shows.
@MainActor
final class HeadlessTarget: ImageTarget {
    private(set) var shown: [(value: PixelImage?, transition: ImageTransition)] = []
    var targetGeometry: TargetGeometry?

    func show(_ image: PixelImage?, transition: ImageTransition) { shown.append((image, transition)) }

    /// The image that it shows now.
    var value: PixelImage? { shown.last?.value }
    var transition: ImageTransition? { shown.last?.transition }
    /// The names of the images it has shown.
    var texts: [String?] { shown.map { $0.value?.text } }
    var text: String? { value?.text }
}

extension PixelImage {
    private static let texts = [
        "one", "two", "three", "old", "placeholder", "broken", "ground", "best", "middle", "worst",
    ]

    /// A small image that is recognized by its colour.
    static func named(_ text: String) -> PixelImage {
        let red = UInt8(clamping: 10 + 10 * (texts.firstIndex(of: text) ?? texts.count))
        return PixelImage(size: PixelSize(2), color: PixelColor(red: red, green: 0, blue: 0))
    }

    var text: String? {
        let index = (Int(self[0, 0].red) - 10) / 10
        return PixelImage.texts.indices.contains(index) ? PixelImage.texts[index] : nil
    }
}

/// The error of a test's source.
struct SourceFailure: Error, Equatable {}

/// A source that waits for its gate, without a look at the request's cancellation.
struct SlowSource: BlockingImageSource {
    let key: CacheKey
    let gate = AsyncPromise<Void>()
    /// nil to fail.
    let text: String?

    func open() { gate.fulfill(()) }
    var knownIdentity: CacheKey? { key }
    func identity() -> CacheKey { key }

    func image(_ request: RenderRequest) throws -> PixelImage {
        gate.wait()
        guard let text else { throw SourceFailure() }
        return .named(text)
    }
}

/// A pipeline in memory.
struct ViewFixture: Sendable {
    let directory: TemporaryDirectory
    let pipeline: ImagePipeline

    init() throws {
        directory = try TemporaryDirectory()
        var configuration = ImagePipeline.Configuration(root: directory.path, concurrency: 4)
        configuration.memoryPressure = nil
        configuration.usesDiskCache = false
        configuration.timeLimit = .seconds(3_600)
        pipeline = ImagePipeline(configuration)
    }

    /// A source that gives an image when its gate is opened, and its request.
    func slow(_ key: CacheKey, _ text: String?) -> (source: SlowSource, request: ImageRequest) {
        let source = SlowSource(key: key, text: text)
        return (source, ImageRequest(source))
    }

    /// A request whose image is in memory.
    func stored(_ key: CacheKey, _ text: String) -> ImageRequest {
        let request = ImageRequest(SlowSource(key: key, text: nil))
        pipeline.cache[pipeline.key(of: request, identity: key)] = .named(text)
        return request
    }

    /// The priority of the work for a request; nil without work.
    func priority(of request: ImageRequest) -> RequestPriority? {
        request.source.knownIdentity.flatMap { pipeline.workPriority(ofKey: pipeline.key(of: request, identity: $0)) }
    }
}

/// Lets the main actor do other things until a condition holds.
@MainActor
func wait(until isSo: () -> Bool) async {
    while !isSo() { await Task.yield() }
}
