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
/// let list = ProgressiveList(pictures) { view.image = list.shown?.value }
/// list.show([large, medium, small])
/// ```
///
/// The best is looked for as far as it takes, the others no further than ``secondaryDepth``. Nothing worse than what is
/// shown is loaded: when something better comes, what is worse is cancelled. The loads end with the object.
public final class ProgressiveList<Value: CacheableValue>: Sendable {
    /// How far the others than the best are looked for.
    public let secondaryDepth: Depth
    private let loads: ProgressiveLoads<Value>

    /// A list of nothing.
    ///
    /// - Parameters:
    ///   - resources: Loads.
    ///   - format: In which form.
    ///   - secondaryDepth: How far the others than the best are looked for. Default: on disk.
    ///   - priority: How urgent it is.
    ///   - onChange: Called where the cache delivers, after ``shown`` or ``isSettled`` has changed; within
    ///     ``show(_:)`` for what is in memory, where the delivery allows.
    public init(
        _ resources: ResourceCache<Value>, format: FormatName = .original, secondaryDepth: Depth = .disk,
        priority: Priority = .normal, onChange: @escaping @Sendable () -> Void = {}
    ) {
        self.secondaryDepth = secondaryDepth
        let delivery = resources.cache.configuration.delivery
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
