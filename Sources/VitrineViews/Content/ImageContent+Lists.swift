#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import VitrineCache
public import VitrineCore
public import VitrineNetwork

extension ImageContent where Value: CacheableValue {
    /// The best of several URLs of one thing, and until it is there the best that is (R144).
    ///
    /// The best is looked for as far as it takes, the others no further than `secondaryDepth`; what is worse than what
    /// is shown is not loaded. A target that shows one of them goes on showing it until a better one is there.
    ///
    /// - Parameters:
    ///   - urls: Best first.
    ///   - resources: Loads.
    ///   - format: In which form, the same for all targets.
    ///   - secondaryDepth: How far the others than the best are looked for. Default: on disk.
    public static func urls(
        _ urls: [URL], in resources: ObservedCache<Value>, format: FormatName = .original, secondaryDepth: CacheLevel = .disk
    ) -> ImageContent {
        ImageContent { _ in
            let cache = resources.cache, keys = urls.map { resources.key(for: $0) }
            let key = CacheKey(parts: keys.map(\.identity))
            return Prepared(
                identity: ContentIdentity(owner: ObjectIdentifier(cache), key: key, form: format.rawValue)
            ) {
                for (index, key) in keys.enumerated() {
                    if let value = cache[key, format] { return (value, index == 0) }
                }
                return nil
            } start: { priority, report in
                let watch = ListWatch(report)
                let list = ImageAlternatives(
                    resources, format: format, secondaryDepth: secondaryDepth, priority: priority
                ) {
                    CallbackQueue.main.perform { MainActor.assumeIsolated { watch.look() } }
                }
                watch.list = list
                list.show(urls)
                watch.look()
                return ContentLoad(cancel: { list.cancel() })
            }
        }
    }
}

/// Tells what a list shows whenever that has changed.
@MainActor
private final class ListWatch<Value: CacheableValue> {
    private let report: @MainActor @Sendable (ContentStep<Value>) -> Void
    weak var list: ImageAlternatives<Value>?
    private var shown: URL?
    private var isOver = false

    init(_ report: @escaping @MainActor @Sendable (ContentStep<Value>) -> Void) { self.report = report }

    func look() {
        guard let list, !isOver else { return }
        let best = list.shown
        isOver = list.isSettled
        if isOver, let best, best.isBest {
            report(.done(.success(best.value)))
            return
        }
        if let best, best.url != shown {
            shown = best.url
            report(.interim(best.value))
        }
        guard isOver else { return }
        let nothing = CacheError.notFound(key: CacheKey(list.urls.first?.absoluteString ?? ""))
        report(.done(.failure(list.failure ?? nothing)))
    }
}
