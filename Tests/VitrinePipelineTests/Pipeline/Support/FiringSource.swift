import Foundation
import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// A source that is in no hurry: each of its calls blocks until ``fire()``, or until it is cancelled.
final class FiringSource: BlockingImageSource {
    private let semaphore = DispatchSemaphore(value: 0)
    private let key: CacheKey
    private let knowsItself: Bool
    private let obeys: Bool
    private let picture: PixelSize
    /// Calls that have begun, and that have ended.
    let begun = Progression()
    let ended = Progression()
    let requests = Recorder<[RenderRequest]>()
    let placeholders = Counter()

    /// - Parameters:
    ///   - key: Its identity.
    ///   - knowsItself: Whether that is known without asking.
    ///   - obeys: Whether cancellation ends a call.
    init(
        _ key: CacheKey = "test", knowsItself: Bool = true, obeys: Bool = true,
        picture: PixelSize = PixelSize(width: 2_000, height: 1_000)
    ) {
        self.key = key
        self.knowsItself = knowsItself
        self.obeys = obeys
        self.picture = picture
    }

    /// Lets one call go, now or when it comes.
    func fire(_ count: Int = 1) { for _ in 0..<count { semaphore.signal() } }

    func identity() -> CacheKey { key }
    var knownIdentity: CacheKey? { knowsItself ? key : nil }

    func preview(_ request: RenderRequest) -> PixelImage? {
        placeholders.add(1)
        return PixelImage(size: PixelSize(2), color: .white)
    }

    func image(_ request: RenderRequest) throws -> PixelImage { try images([request])[0] }

    func images(_ requests: [RenderRequest]) throws -> [PixelImage] {
        self.requests.add(requests)
        begun.advance()
        defer { ended.advance() }
        let token = requests[0].cancellation
        let registration = obeys ? token.register { self.semaphore.signal() } : nil
        semaphore.wait()
        if let registration { token.remove(registration) }
        if obeys, token.isCancelled { throw ImagePipelineError.cancelled(source: "test") }
        return try requests.map { try PixelImage(size: $0.resizer.outputSize(for: picture), color: .black) }
    }
}

/// A count that asynchronous code waits for.
final class Progression: Sendable {
    private struct State {
        var count = 0
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Locked(State())

    var count: Int { state.withLock { $0.count } }

    func advance() {
        let ready = state.withLock { state in
            state.count += 1
            let ready = state.waiters.filter { $0.count <= state.count }
            state.waiters.removeAll { $0.count <= state.count }
            return ready
        }
        for waiter in ready { waiter.continuation.resume() }
    }

    func reach(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if state.count < count { state.waiters.append((count, continuation)) }
                return state.count >= count
            }
            if isReached { continuation.resume() }
        }
    }
}

/// A source that is done at once, by a closure.
struct ClosureSource: BlockingImageSource {
    var key: CacheKey = "closure"
    var requiresMainActor = false
    var makePlaceholder: @Sendable (RenderRequest) throws -> PixelImage? = { _ in nil }
    var make: @Sendable (RenderRequest) throws -> PixelImage

    func identity() -> CacheKey { key }
    var knownIdentity: CacheKey? { key }
    func preview(_ request: RenderRequest) throws -> PixelImage? { try makePlaceholder(request) }
    func image(_ request: RenderRequest) throws -> PixelImage { try make(request) }

    /// One of a colour, 1,000 pixels wide and 500 high, that counts its calls.
    static func picture(_ key: CacheKey, color: PixelColor = .black, calls: Counter = Counter()) -> ClosureSource {
        ClosureSource(key: key) { request in
            calls.add(1)
            return try PixelImage(size: request.resizer.outputSize(for: PixelSize(width: 1_000, height: 500)), color: color)
        }
    }
}

/// Why a test's source fails.
struct TestFailure: Error, Equatable {}

extension ImagePipeline {
    /// A service that goes to sources straight away, in memory only.
    static func withoutDisk(
        concurrency: Int = 2, _ change: (inout Configuration) -> Void = { _ in }
    ) -> ImagePipeline {
        var configuration = Configuration(root: "/nonexistent", concurrency: concurrency)
        configuration.usesDiskCache = false
        configuration.memoryPressure = nil
        configuration.timeLimit = .seconds(3_600)
        change(&configuration)
        return ImagePipeline(configuration)
    }

    /// A service with its caches in a directory of the test's.
    static func stored(
        in directory: TemporaryDirectory, concurrency: Int = 2, _ change: (inout Configuration) -> Void = { _ in }
    ) -> ImagePipeline {
        var configuration = Configuration(root: directory.path, concurrency: concurrency)
        configuration.memoryPressure = nil
        configuration.timeLimit = .seconds(3_600)
        change(&configuration)
        return ImagePipeline(configuration)
    }
}

extension ImageTask {
    /// A request that counts what it is told, on whatever thread.
    static func counted(
        _ source: any ImageSource, _ size: Int = 100, priority: RequestPriority = .normal,
        levels: CacheLevels = .all, placeholders: Counter = Counter(), thumbnails: Counter = Counter()
    ) -> ImageTask {
        var request = ImageRequest(source, resizing: .fit(size), priority: priority)
        request.cacheLevels = levels
        return ImageTask(request).onPreview(on: .immediate) { _ in placeholders.add(1) }
            .onImage(on: .immediate) { _ in thumbnails.add(1) }
    }

    /// How the request ended, once it has.
    var ending: State {
        get async {
            _ = try? await value
            return state
        }
    }
}

/// Runs a body on a thread of its own, which may block and is no task's.
func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
    }
}

/// A source whose calls bound their own processor time.
struct BoundedSource: IdentifiableSource, BlockingImageSource {
    let base: FiringSource
    var identifier: CacheKey?

    func identity() -> CacheKey { base.identity() }

    func image(_ request: RenderRequest) throws -> PixelImage { try base.image(request) }

    func images(_ requests: [RenderRequest]) throws -> [PixelImage] { try base.images(requests) }
}

extension BuiltInSource {
    /// The source itself, for tests on threads that may block.
    var blocking: any BlockingImageSource {
        get throws { try #require(base as? any BlockingImageSource) }
    }
}
