// The declarations of this module that the adapters use.
public import VitrineCache
public import VitrineCore
public import VitrineImaging

public enum ImagePipelineError: Error { case cancelled(source: String) }

public protocol ImageSource: Sendable {}

public struct BuiltInSource: ImageSource {}

extension ImageSource where Self == BuiltInSource {
    public static func fetcher(_ fetcher: ValueFetcher<PixelImage>) -> BuiltInSource { BuiltInSource() }
}

public struct ImageRequest: Sendable {
    public init(_ source: any ImageSource) { fatalError("a declaration") }
    public var resizing: ImageResizer
    public var priority: RequestPriority
    package enum ViewIdentity: Hashable, Sendable { case image(CacheKey) }
    package var viewIdentity: ViewIdentity? { nil }
}

public final class ImageTask: Sendable {
    public enum State: Sendable {
        case new
        public var isFinal: Bool { false }
    }
    public init(_ request: ImageRequest) {}
    public var state: State { .new }
    public var priority: RequestPriority {
        get { .normal }
        set {}
    }
    public func cancel() {}
    @discardableResult
    public func onImage(_ handler: @escaping @MainActor @Sendable (Result<PixelImage, ImagePipelineError>) -> Void) -> Self {
        self
    }
    @discardableResult
    public func onPreview(_ handler: @escaping @MainActor @Sendable (PixelImage) -> Void) -> Self { self }
}

public final class ImagePipeline: Sendable {
    public static let shared = ImagePipeline()
    public func start(_ task: ImageTask) {}
    public func cachedImage(for request: ImageRequest) -> PixelImage? { nil }
    package func rememberedImage(for request: ImageRequest) -> PixelImage? { nil }
    package func cachedImage(for request: ImageRequest, _ identity: ImageRequest.ViewIdentity?) -> PixelImage? { nil }
    package func availableAnimation(for request: ImageRequest) async -> AnimatedImage? { nil }
    package func mayBeAnimated(_ request: ImageRequest) -> Bool { false }
    public func contains(_ request: ImageRequest) async -> Bool { false }
    public func image(for request: ImageRequest) async throws -> PixelImage { fatalError("a declaration") }
}
