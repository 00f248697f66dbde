#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Receives the outcome of requests to a ``ObservedCache``, on the main actor.
///
/// ```swift
/// @MainActor final class LakeView: LoadObserver {
///     func resourceDidLoad(_ image: Image, from url: URL) { show(image) }
/// }
/// ```
///
/// The cache holds an observer weakly: deinitializing it cancels its requests. Each request is answered once. Code that
/// has no main loop, such as a server, awaits ``ObservedCache/value(at:format:depth:priority:)`` instead.
@MainActor
public protocol LoadObserver<Value>: AnyObject, Sendable {
    /// What is loaded.
    associatedtype Value: CacheableValue

    /// Called with the loaded value.
    func resourceDidLoad(_ value: Value, from url: URL)

    /// Called if the value could not be loaded from the requested depth. Does nothing by default.
    func resourceDidFail(_ error: CacheError, from url: URL)
}

extension LoadObserver {
    public func resourceDidFail(_ error: CacheError, from url: URL) {}
}

/// An observer within the module that is told at once, on any thread.
protocol ResourceListener<Value>: AnyObject, Sendable {
    associatedtype Value: CacheableValue

    func resourceDidLoad(_ value: Value, from url: URL)
    func resourceDidFail(_ error: CacheError, from url: URL)
}
