#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import VitrineCache
import VitrineCore

/// What a progressive list shows, loads and still wants. Pure: says what is to be done, does nothing.
struct ProgressiveState<Value: CacheableValue> {
    /// Something to do.
    enum Action {
        /// To be looked for so deep; again if it is looked for less deep already.
        case load(URL, CacheLevel, again: Bool)
        case cancel(URL)
    }

    let secondaryDepth: CacheLevel
    private(set) var urls: [URL] = []
    /// The places of the URLs, which may be many and be asked for at every arrival.
    private var places: [URL: Int] = [:]
    private(set) var shown: ProgressiveValue<Value>?
    /// Counts what was shown.
    private(set) var version = 0
    /// What is being loaded, and how deep.
    private(set) var running: [URL: CacheLevel] = [:]
    /// How deep was looked in vain, and why.
    private var failed: [URL: (depth: CacheLevel, error: CacheError)] = [:]
    private var isPaused = false

    init(secondaryDepth: CacheLevel) { self.secondaryDepth = secondaryDepth }

    /// Why the best could not be had; nil as long as that is not known.
    var failure: CacheError? {
        guard let best = urls.first, let failed = failed[best], failed.depth >= depth(at: 0) else { return nil }
        return failed.error
    }

    /// Whether nothing better will come.
    var isSettled: Bool { shown?.isBest == true || urls.isEmpty || next() == nil && running.isEmpty }

    /// How far may be looked for what stands at a place: for the best as far as it takes.
    private func depth(at index: Int) -> CacheLevel { index == 0 ? .source : secondaryDepth }

    // MARK: Changing

    /// Another list, best first. What is shown stays if it is in that as well.
    mutating func replace(with urls: [URL]) {
        var places: [URL: Int] = [:]
        var list: [URL] = []
        for url in urls where places.updateValue(places[url] ?? list.count, forKey: url) == nil { list.append(url) }
        self.urls = list
        self.places = places
        failed = [:]
        isPaused = false
        guard let shown else { return }
        if let index = places[shown.url] {
            guard index != shown.index else { return }
            self.shown = ProgressiveValue(url: shown.url, value: shown.value, index: index)
        } else {
            self.shown = nil
        }
        version += 1
    }

    /// Loads nothing more until there is another list.
    ///
    /// - Returns: What was being loaded.
    mutating func pause() -> [URL] {
        isPaused = true
        defer { running = [:] }
        return Array(running.keys)
    }

    mutating func loaded(_ value: Value, _ url: URL) {
        running[url] = nil
        guard let index = places[url], index < shown?.index ?? .max else { return }
        shown = ProgressiveValue(url: url, value: value, index: index)
        version += 1
    }

    mutating func failed(_ error: CacheError, _ url: URL) {
        guard let depth = running.removeValue(forKey: url) else { return }
        failed[url] = (depth, error)
    }

    // MARK: What is to be done

    /// What is to be done next; nil for nothing. Nothing worse than what is shown is loaded.
    func next() -> Action? {
        let end = isPaused ? 0 : shown?.index ?? urls.count
        if let url = running.keys.first(where: { (places[$0] ?? .max) >= end }) { return .cancel(url) }
        for index in 0..<end {
            let (url, depth) = (urls[index], depth(at: index))
            guard let reached = running[url] ?? failed[url]?.depth, reached >= depth else {
                return .load(url, depth, again: running[url] != nil)
            }
        }
        return nil
    }

    /// Notes that an action is under way.
    mutating func begin(_ action: Action) {
        switch action {
        case .load(let url, let depth, _): running[url] = depth
        case .cancel(let url): running[url] = nil
        }
    }
}
