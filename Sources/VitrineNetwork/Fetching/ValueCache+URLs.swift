#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore

/// Calls that load a URL with a ``NetworkFetcher``. Other calls, such as `refresh(from:)` and those with cache levels,
/// take the fetcher itself.
extension ValueCache {
    /// Returns the value of a URL from memory, from disk or from the network.
    ///
    /// ```swift
    /// let image = try await SharedCaches.images.value(from: url)
    /// ```
    ///
    /// - Parameters:
    ///   - url: The URL, whose scheme is `http`, `https`, `file`, `data`, or one registered with the loader.
    ///   - id: The identity of the value, which replaces the URL in the key. Use it for signed URLs.
    ///   - format: The format of the value.
    ///   - priority: The priority.
    ///   - options: The options of the load.
    ///   - progress: Receives the progress of the body and the end of the load.
    /// - Throws: `CacheError.source` with a ``NetworkError`` if the load fails, and the errors of
    ///   `value(from:format:levels:priority:)`.
    public func value(
        from url: URL, id: String? = nil, format: FormatName = .original,
        priority: RequestPriority = .normal, options: FetchOptions = .default, progress: TransferProgress? = nil
    ) async throws(CacheError) -> Value {
        let fetcher = NetworkFetcher<Value>(url: url, id: id, options: options, progress: progress)
        do throws(CacheError) {
            let value = try await value(from: fetcher, format: format, priority: priority)
            progress?.end(isComplete: true)
            return value
        } catch {
            progress?.end(isComplete: false)
            throw error
        }
    }
}
