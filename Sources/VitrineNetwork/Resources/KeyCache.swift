#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCore

/// The keys of the URLs asked for lately: taking a URL apart costs more than the lookup in memory it is done for.
final class KeyCache: Sendable {
    private let keys = Locked<[URL: CacheKey]>([:])

    /// The key of a URL, made if it is not known.
    func key(for url: URL, _ make: () -> CacheKey) -> CacheKey {
        // Inline data would be kept twice.
        guard url.absoluteString.utf8.count <= Self.longestURL else { return make() }
        if let key = keys.withLock({ $0[url] }) { return key }
        let key = make()
        keys.withLock { keys in
            if keys.count >= Self.limit { keys.removeAll(keepingCapacity: true) }
            keys[url] = key
        }
        return key
    }

    /// A few screens' worth.
    private static let limit = 2048
    private static let longestURL = 1024
}
