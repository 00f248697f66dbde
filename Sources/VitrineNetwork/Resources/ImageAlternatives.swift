#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Several URLs of one thing, best first: shows the best that is there, and a better one as soon as it comes (R144).
///
/// ```swift
/// let (changes, changed) = AsyncStream.makeStream(of: Void.self)
/// let list = ImageAlternatives(pictures) { changed.yield() }
/// list.show([large, medium, small])
/// for await _ in changes { view.image = list.shown?.value }
/// ```
///
/// The best is looked for as far as it takes, the others no further than ``secondaryDepth``. Nothing worse than what is
/// shown is loaded: when something better comes, what is worse is cancelled. The loads end with the object.
public final class ImageAlternatives<Value: CacheableValue>: Sendable {
    /// How far the others than the best are looked for.
    public let secondaryDepth: CacheLevel
    private let loads: ProgressiveLoads<Value>

    /// A list of nothing.
    ///
    /// - Parameters:
    ///   - resources: Loads.
    ///   - format: In which form.
    ///   - secondaryDepth: How far the others than the best are looked for. Default: on disk.
    ///   - priority: How urgent it is.
    ///   - onChange: Called on the main actor after ``shown`` or ``isSettled`` has changed. For values in memory it
    ///     runs within a call of ``show(_:)`` on the main actor.
    public convenience init(
        _ resources: ObservedCache<Value>, format: FormatName = .original, secondaryDepth: CacheLevel = .disk,
        priority: Priority = .normal, onChange: @escaping @MainActor @Sendable () -> Void = {}
    ) {
        self.init(
            resources, format: format, secondaryDepth: secondaryDepth, priority: priority, on: .main,
            onChange: { MainActor.assumeIsolated { onChange() } })
    }

    /// A list of nothing that tells where `delivery` says. See
    /// ``init(_:format:secondaryDepth:priority:onChange:)``.
    ///
    /// - Parameters:
    ///   - delivery: Where `onChange` runs.
    ///   - onChange: Called after ``shown`` or ``isSettled`` has changed.
    public init(
        _ resources: ObservedCache<Value>, format: FormatName = .original, secondaryDepth: CacheLevel = .disk,
        priority: Priority = .normal, on delivery: CallbackQueue, onChange: @escaping @Sendable () -> Void
    ) {
        self.secondaryDepth = secondaryDepth
        loads = ProgressiveLoads(resources, format, secondaryDepth, priority) { delivery.perform(onChange) }
    }

    /// The URLs, best first, each once.
    public var urls: [URL] { loads.list.urls }

    /// The best that is there; nil for nothing.
    public var shown: ProgressiveValue<Value>? { loads.list.shown }

    /// Whether nothing better will come: the best is there, or nothing is being loaded any more.
    public var isSettled: Bool { loads.list.isSettled }

    /// Why the best could not be had; nil if it could, or that is not known yet.
    public var failure: CacheError? { loads.list.failure }

    /// Shows another list. What is shown stays as long as nothing better is there, if it is in the new list as well;
    /// what is not listed any more is cancelled. What is in memory is shown on return.
    ///
    /// - Parameter urls: Best first. What failed before is tried again.
    public func show(_ urls: [URL]) { loads.replace(with: urls) }

    /// Loads nothing more until ``show(_:)``. What is shown stays.
    ///
    /// - Parameter policy: What becomes of transfers nobody else waits for.
    public func cancel(_ policy: CancellationPolicy = .processing) { loads.cancel(policy) }
}
