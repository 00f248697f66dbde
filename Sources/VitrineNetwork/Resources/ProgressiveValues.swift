#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

extension ObservedCache {
    /// Better and better values of one thing that several URLs stand for, until the best is there (R144).
    ///
    /// ```swift
    /// for try await step in pictures.values(at: [large, medium, small]) { show(step.value) }
    /// ```
    ///
    /// - Parameters:
    ///   - urls: Best first.
    ///   - format: In which form.
    ///   - secondaryDepth: How far the others than the best are looked for. Default: on disk.
    ///   - priority: How urgent it is.
    public func values(
        at urls: [URL], format: FormatName = .original, secondaryDepth: CacheLevel = .disk, priority: Priority = .normal
    ) -> ProgressiveValues<Value> {
        ProgressiveValues(
            resources: self, urls: urls, format: format, secondaryDepth: secondaryDepth, priority: priority)
    }
}

/// Better and better values, from ``ObservedCache/values(at:format:secondaryDepth:priority:)``.
///
/// Ends after the best. If that cannot be had it ends, after the others that were there, by throwing why. A slow reader
/// gets the best of the moment only.
public struct ProgressiveValues<Value: CacheableValue>: AsyncSequence, Sendable {
    public typealias Element = ProgressiveValue<Value>
    public typealias Failure = CacheError

    let resources: ObservedCache<Value>
    let urls: [URL]
    let format: FormatName
    let secondaryDepth: CacheLevel
    let priority: Priority

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    public struct AsyncIterator: AsyncIteratorProtocol {
        private let loads: ProgressiveLoads<Value>
        private var changes: AsyncStream<Void>.Iterator
        private var version = 0
        private var isOver = false

        fileprivate init(_ sequence: ProgressiveValues) {
            let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            changes = stream.makeAsyncIterator()
            loads = ProgressiveLoads(
                sequence.resources, sequence.format, sequence.secondaryDepth, sequence.priority
            ) {
                continuation.yield()
            }
            loads.replace(with: sequence.urls)
        }

        /// Something better than the last, as soon as it is there; nil after the best.
        ///
        /// - Throws: Why the best could not be had; `CacheError.cancelled(key:)` when the task is cancelled, which
        ///   lets transfers go on that have begun.
        public mutating func next(
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

        public mutating func next() async throws(CacheError) -> ProgressiveValue<Value>? {
            try await next(isolation: nil)
        }
    }
}
