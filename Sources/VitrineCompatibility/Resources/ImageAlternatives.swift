#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Shows the best available image of several URLs for one image, and better ones as they arrive.
///
/// ```swift
/// let (changes, changed) = AsyncStream.makeStream(of: Void.self)
/// let list = ImageAlternatives(pictures) { changed.yield() }
/// list.show([large, medium, small])
/// for await _ in changes { view.image = list.shown?.value }
/// ```
///
/// The first URL is loaded from any level, the others no further than `secondaryDepth`. When a better image arrives,
/// loads of worse ones are cancelled. Deinitialization ends the loads.
public final class ImageAlternatives<Value: CacheableValue>: Sendable {
    /// The furthest cache level for URLs after the first.
    let secondaryDepth: CacheLevel
    private let loads: ProgressiveLoads<Value>

    /// Creates an empty list. Call ``show(_:)`` to set the URLs.
    ///
    /// - Parameters:
    ///   - resources: The cache that loads the URLs.
    ///   - format: The format of the values.
    ///   - secondaryDepth: The furthest cache level for URLs after the first.
    ///   - priority: The priority of the loads.
    ///   - onChange: Called on the main actor after ``shown`` or ``isSettled`` has changed. For values in memory it
    ///     runs within a call of ``show(_:)`` on the main actor.
    public init(
        _ resources: ObservedCache<Value>, format: FormatName = .original, secondaryDepth: CacheLevel = .disk,
        priority: RequestPriority = .normal, onChange: @escaping @MainActor @Sendable () -> Void = {}
    ) {
        self.secondaryDepth = secondaryDepth
        loads = ProgressiveLoads(resources, format: format, secondaryDepth: secondaryDepth, priority: priority) {
            CallbackQueue.main.perform { MainActor.assumeIsolated { onChange() } }
        }
    }

    /// The URLs without duplicates, best first.
    package var urls: [URL] { loads.list.urls }

    /// The best available value, or nil if there is none.
    public var shown: ProgressiveValue<Value>? { loads.list.shown }

    /// Whether no better value will arrive: the best is shown, or no load is running.
    public var isSettled: Bool { loads.list.isSettled }

    /// The error of the first URL, if it has failed.
    public var failure: CacheError? { loads.list.failure }

    /// Replaces the list of URLs.
    ///
    /// The shown value stays until a better one arrives, if its URL is in the new list. Loads of URLs outside the new
    /// list are cancelled. A value in memory is shown when the call returns.
    ///
    /// - Parameter urls: The URLs, best first. URLs that failed before are tried again.
    public func show(_ urls: [URL]) { loads.replace(with: urls) }

    /// Ends all loads until the next ``show(_:)``. The shown value stays.
    ///
    /// - Parameter policy: Decides about transfers that no other request waits for.
    public func cancel(_ policy: CancellationPolicy = .processing) { loads.cancel(policy) }
}

/// A value of an ``ImageAlternatives`` list.
public struct ProgressiveValue<Value: Sendable>: Sendable {
    /// The URL of the value.
    public let url: URL
    /// The value.
    public let value: Value
    /// The position of the URL in the list; 0 is the best.
    package let index: Int

    /// Whether the value belongs to the first URL of the list.
    public var isBest: Bool { index == 0 }
}

extension ObservedCache {
    /// Returns better and better values of several URLs for one image, as ``ImageAlternatives`` shows them.
    ///
    /// ```swift
    /// for try await step in pictures.values(at: [large, medium, small]) { show(step.value) }
    /// ```
    ///
    /// The sequence ends after the value of the first URL. If that URL fails, the sequence throws its error after the
    /// other values. A slow reader skips values. Cancellation of the task throws `CacheError.cancelled(key:)`;
    /// transfers that have begun continue.
    ///
    /// - Parameters:
    ///   - urls: The URLs, best first.
    ///   - format: The format of the values.
    ///   - secondaryDepth: The furthest cache level for URLs after the first.
    ///   - priority: The priority of the loads.
    public func values(
        at urls: [URL], format: FormatName = .original, secondaryDepth: CacheLevel = .disk, priority: RequestPriority = .normal
    ) -> some AsyncSequence<ProgressiveValue<Value>, CacheError> & Sendable {
        ProgressiveValues(
            resources: self, urls: urls, format: format, secondaryDepth: secondaryDepth, priority: priority)
    }
}

/// The sequence of ``ObservedCache/values(at:format:secondaryDepth:priority:)``.
private struct ProgressiveValues<Value: CacheableValue>: AsyncSequence, Sendable {
    typealias Element = ProgressiveValue<Value>
    typealias Failure = CacheError

    let resources: ObservedCache<Value>
    let urls: [URL]
    let format: FormatName
    let secondaryDepth: CacheLevel
    let priority: RequestPriority

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    struct AsyncIterator: AsyncIteratorProtocol {
        private let loads: ProgressiveLoads<Value>
        private var changes: AsyncStream<Void>.Iterator
        private var version = 0
        private var isOver = false

        fileprivate init(_ sequence: ProgressiveValues) {
            let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            changes = stream.makeAsyncIterator()
            loads = ProgressiveLoads(
                sequence.resources, format: sequence.format, secondaryDepth: sequence.secondaryDepth,
                priority: sequence.priority
            ) {
                continuation.yield()
            }
            loads.replace(with: sequence.urls)
        }

        mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(CacheError) -> ProgressiveValue<Value>? {
            while !isOver {
                let list = loads.list
                if let shown = list.shown, list.version != version {
                    version = list.version
                    isOver = shown.isBest
                    return shown
                }
                if list.isSettled {
                    isOver = true
                    if let failure = list.failure { throw failure }
                    return nil
                }
                if await changes.next(isolation: actor) == nil {
                    isOver = true
                    loads.cancel(.processing)
                    throw .cancelled(key: CacheKey(list.urls.first?.absoluteString ?? ""))
                }
            }
            return nil
        }
    }
}
