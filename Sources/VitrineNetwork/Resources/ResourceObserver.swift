#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Is told what became of resources it asked a ``ResourceCache`` for (R85).
///
/// Held weakly: an observer that goes has asked for nothing. It is told once for each resource, where the cache
/// delivers; a view on the main actor uses a cache whose `CacheConfiguration.delivery` is `Delivery.main`:
///
/// ```swift
/// @MainActor final class LakeView: ResourceObserver {
///     nonisolated func resourceDidLoad(_ image: Image, from url: URL) {
///         MainActor.assumeIsolated { show(image) }
///     }
/// }
/// ```
public protocol ResourceObserver<Value>: AnyObject, Sendable {
    /// What is loaded.
    associatedtype Value: CacheableValue

    /// The resource is there.
    func resourceDidLoad(_ value: Value, from url: URL)

    /// The resource could not be had as far as it was looked for. Does nothing by default.
    func resourceDidFail(_ error: CacheError, from url: URL)
}

extension ResourceObserver {
    public func resourceDidFail(_ error: CacheError, from url: URL) {}
}
